package policy

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

func (d *doc) section(top *mapping, name string) *mapping {
	v, ok := top.get(name)
	if !ok {
		return nil
	}
	return d.mapping(v, name)
}

func (d *doc) upstream(top *mapping, p *Policy) {
	m := d.section(top, "upstream")
	if m == nil {
		return
	}
	u := &p.Upstream
	files, _ := m.paths("ca_files")
	for _, f := range files {
		u.CAFiles = append(u.CAFiles, d.expand(f))
	}
	d.resolve(m, u)
	d.upstreamProxy(m, u)
	d.clientCertificates(m, u)
	if v, ok := m.get("dns"); ok {
		if s, ok := d.text(v); ok {
			if u.DNS, ok = resolverAddress(s); !ok {
				d.fail(v.spot(), KindValue, "%s is no address of a resolver, such as 9.9.9.9:53", quoted(s))
			}
		}
	}
	m.word("min_tls", &u.MinTLS, "1.2", "1.3")
	m.word("http2", &u.HTTP2, "auto", "always", "never")
	if v, ok := m.get("timeouts"); ok {
		if t := d.mapping(v, "upstream.timeouts"); t != nil {
			t.duration("connect", &u.Timeouts.Connect)
			t.duration("tls", &u.Timeouts.TLS)
			t.duration("response_header", &u.Timeouts.ResponseHeader)
			t.duration("idle", &u.Timeouts.Idle)
			t.done(nil)
		}
	}
	m.done(nil)
}

// entriesOf gives the entries of a mapping whose keys are the user's own.
func (m *mapping) entriesOf() []entry {
	var out []entry
	for _, e := range m.entries {
		m.asked = append(m.asked, e.name)
		if e.ok {
			out = append(out, e)
		}
	}
	return out
}

func (d *doc) resolve(m *mapping, u *Upstream) {
	v, ok := m.get("resolve")
	if !ok {
		return
	}
	rm := d.mapping(v, "upstream.resolve")
	if rm == nil {
		return
	}
	u.Resolve = map[string]string{}
	for _, e := range rm.entriesOf() {
		host, port, ok := hostPort(e.name)
		if !ok {
			d.fail(e.key, KindValue, "%s is no host:port", quoted(e.name))
		}
		s, isText := d.text(e.value)
		if !isText {
			continue
		}
		addr, err := netip.ParseAddrPort(s)
		if err != nil || addr.Port() == 0 || addr.Addr().Zone() != "" {
			d.fail(e.value.spot(), KindValue, "%s is no address:port", quoted(s))
			continue
		}
		if !ok {
			continue
		}
		name := net.JoinHostPort(host, strconv.Itoa(port))
		if _, twice := u.Resolve[name]; twice {
			d.fail(e.key, KindDuplicate, "%s stands here twice", name)
		}
		u.Resolve[name] = addr.String()
	}
}

// hostPort reads "host:port" or "[ipv6]:port", the host made canonical.
func hostPort(s string) (host string, port int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", 0, false
	}
	port, ok = portNumber(s[i+1:])
	host, good := hostName(s[:i])
	return host, port, ok && good
}

func portNumber(s string) (int, bool) {
	if len(s) > 5 || s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0 && n < 65536
}

func (d *doc) upstreamProxy(m *mapping, u *Upstream) {
	if v, ok := m.get("proxy"); ok {
		if s, ok := d.text(v); ok {
			p, err := url.Parse(s)
			if err != nil || !proxyURL(p) {
				d.fail(v.spot(), KindValue, "not the URL of a proxy, such as http://proxy.corp.test:3128 or socks5://proxy.corp.test:1080")
			} else {
				u.Proxy = p
			}
		}
	}
	var at []spot
	u.NoProxy, at = m.strings("no_proxy", "hosts, addresses and ranges", func(s string) string {
		if !noProxy(s) {
			return quoted(s) + " is no host, .suffix, address or range"
		}
		return ""
	})
	if len(at) > 0 && !m.has("proxy") {
		d.fail(m.key("no_proxy"), KindConflict, "no_proxy needs a proxy beside it")
	}
}

// proxyURL says that the URL is one of a proxy: a scheme that is known, a host
// that is one, a port that is one, and nothing behind it.
func proxyURL(u *url.URL) bool {
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return false
	}
	_, good := hostName(bracketed(u.Hostname()))
	port := strings.HasSuffix(u.Host, ":")
	if u.Port() != "" {
		_, ok := portNumber(u.Port())
		port = !ok
	}
	return good && !port && u.Opaque == "" && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func noProxy(s string) bool {
	if _, err := netip.ParsePrefix(s); err == nil {
		return true
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Zone() == ""
	}
	if _, _, ok := hostPort(s); ok {
		return true
	}
	s = strings.TrimPrefix(strings.TrimPrefix(s, "*"), ".")
	_, ok := hostName(s)
	return ok
}

func (d *doc) clientCertificates(m *mapping, u *Upstream) {
	v, ok := m.get("client_certificates")
	if !ok {
		return
	}
	cm := d.mapping(v, "upstream.client_certificates")
	if cm == nil {
		return
	}
	u.ClientCertificates = map[string]KeyPair{}
	for _, e := range cm.entriesOf() {
		host, ok := hostName(e.name)
		if !ok {
			d.fail(e.key, KindValue, "%s is no host", quoted(e.name))
		}
		if pair := d.keyPair(e.value, "a client certificate"); pair != nil && ok {
			if _, twice := u.ClientCertificates[host]; twice {
				d.fail(e.key, KindDuplicate, "%s stands here twice", host)
			}
			u.ClientCertificates[host] = *pair
		}
	}
}

// keyPair reads {cert, key}.
func (d *doc) keyPair(v value, what string) *KeyPair {
	m := d.mapping(v, what)
	if m == nil {
		return nil
	}
	m.need("cert", "the path of a PEM file")
	m.need("key", "the path of a PEM file")
	pair := &KeyPair{Cert: m.path("cert"), Key: m.path("key")}
	m.done(nil)
	return pair
}

// resolverAddress reads an address with or without a port (53).
func resolverAddress(s string) (netip.AddrPort, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(a, 53), a.Zone() == ""
	}
	a, err := netip.ParseAddrPort(s)
	return a, err == nil && a.Port() != 0 && a.Addr().Zone() == ""
}
