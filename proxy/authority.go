package proxy

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// authority is a host and port as the proxy compares them: the name canonical,
// the port filled in.
type authority struct {
	host    string
	port    int
	written bool // the port was written out
	shared  bool // the address of the stub that names no host
	unnamed bool // an address of the stub's pool that nobody was given
}

// field is the value of a Host field that names this authority: canonical, with
// the port as it was sent.
func (a authority) field() string {
	host := a.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if a.written {
		return host + ":" + strconv.Itoa(a.port)
	}
	return host
}

// splitAuthority parts host and port (RFC 3986 section 3.2). The host keeps the
// brackets of an IPv6 address; port is -1 where none is written.
func splitAuthority(s string) (host string, port int, err error) {
	if strings.Contains(s, "@") {
		return "", 0, &denial{reason: "bad_host", detail: "A user name has no place in an authority."}
	}
	host, rest := s, ""
	if strings.HasPrefix(s, "[") {
		i := strings.IndexByte(s, ']')
		if i < 0 {
			return "", 0, &denial{reason: "bad_host"}
		}
		host, rest = s[:i+1], s[i+1:]
	} else if i := strings.IndexByte(s, ':'); i >= 0 {
		host, rest = s[:i], s[i:]
	}
	if host == "" {
		return "", 0, badRequest("The authority has no host.")
	}
	if rest == "" {
		return host, -1, nil
	}
	if rest[0] != ':' {
		return "", 0, &denial{reason: "bad_host"}
	}
	port, ok := parsePort(rest[1:])
	if !ok {
		return "", 0, badRequest("The port is not a number from 1 to 65535.")
	}
	return host, port, nil
}

func parsePort(s string) (int, bool) {
	if s == "" || len(s) > 5 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, n > 0 && n < 1<<16
}

// authorityOf reads an authority as the client sent it. An address that the
// DNS stub gave out means its name.
func (x *exchange) authorityOf(s string, defaultPort int) (authority, error) {
	host, port, err := splitAuthority(s)
	if err != nil {
		return authority{}, err
	}
	a := authority{port: port, written: port >= 0}
	if !a.written {
		a.port = defaultPort
	}
	if t := &x.client.target; host == t.host && t.host != "" && !t.shared && !t.unnamed {
		a.host = host // as the tunnel's, which is canonical
		return a, nil
	}
	if a.host, err = x.force.canonical(host); err != nil {
		return authority{}, err
	}
	a.host, a.shared, a.unnamed = x.server.named(a.host)
	return a, nil
}

// named is the name that a canonical host stands for, where it is an address
// of the DNS stub.
func (s *Server) named(host string) (name string, shared, unnamed bool) {
	if s.cfg.Names == nil || !looksLikeAddress(host) {
		return host, false, false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host, false, false
	}
	name, pool := s.cfg.Names.Lookup(addr)
	switch {
	case name == "*":
		return host, true, false
	case name != "":
		return name, false, false
	}
	return host, false, pool
}

// looksLikeAddress is true for every canonical address and for few names.
func looksLikeAddress(host string) bool {
	if host == "" {
		return false
	}
	last := host[len(host)-1]
	return '0' <= last && last <= '9' || strings.Contains(host, ":")
}

func errMismatch() error { return &denial{reason: "authority_mismatch"} }

// agree compares every authority of a request: what the connection was opened
// for, the server name, an absolute target, Host, and the hosts of forwarding
// fields. It returns the one they all name.
func (x *exchange) agree(target string) (authority, error) {
	c, h := x.client, &x.head
	std := 80
	if c.target.tls {
		std = 443
	}
	host, err := x.authorityOf(h.host, std)
	if err != nil {
		return host, err
	}
	if target != "" {
		t, err := x.authorityOf(target, std)
		if err != nil {
			return t, err
		}
		if t.host != host.host || t.port != host.port {
			return host, errMismatch()
		}
	}
	if h.second != "" && h.second != h.host {
		other, err := x.authorityOf(h.second, std)
		if err != nil || other.host != host.host || other.port != host.port {
			return host, errMismatch()
		}
	}
	if t := &c.target; t.tunnel {
		if t.badSNI || host.port != t.port {
			return host, errMismatch()
		}
		switch {
		case t.shared && !t.tls: // Host alone names it
		case t.shared && host.shared: // the address again: the server name names it
			host.host, host.shared = t.sni, false
		case t.shared && host.host != t.sni, !t.shared && host.host != t.host:
			return host, errMismatch()
		}
		if t.sni != "" && t.sni != host.host {
			return host, errMismatch()
		}
	}
	if !x.forwardedAgree(host, std) {
		return host, errMismatch()
	}
	return host, nil
}

// forwardedAgree looks at X-Forwarded-Host and Forwarded, whose hosts some
// servers believe before Host. Names of fields compare with _ as -, as CGI
// folds them.
func (x *exchange) forwardedAgree(host authority, std int) bool {
	for name, values := range x.header {
		if len(name) != len("X-Forwarded-Host") && len(name) != len("Forwarded") || name[0] != 'X' && name[0] != 'F' {
			continue
		}
		switch foldName(name) {
		case "x-forwarded-host":
			for _, v := range values {
				for one := range strings.SplitSeq(v, ",") {
					if !x.sameHost(one, host, std) {
						return false
					}
				}
			}
		case "forwarded":
			for _, v := range values {
				if !x.forwardedMembersAgree(v, host, std) {
					return false
				}
			}
		}
	}
	return true
}

// forwardedMembersAgree looks at every host parameter of a Forwarded field (RFC
// 7239 section 5.3).
func (x *exchange) forwardedMembersAgree(v string, host authority, std int) bool {
	for _, member := range splitQuoted(v, ',') {
		for _, pair := range splitQuoted(member, ';') {
			name, value, _ := strings.Cut(pair, "=")
			if !strings.EqualFold(strings.Trim(name, " \t"), "host") {
				continue
			}
			value = strings.Trim(value, " \t")
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = strings.ReplaceAll(value[1:len(value)-1], `\`, "")
			}
			if !x.sameHost(value, host, std) {
				return false
			}
		}
	}
	return true
}

func (x *exchange) sameHost(s string, host authority, std int) bool {
	s = strings.Trim(s, " \t")
	if s == "" {
		return true
	}
	a, err := x.authorityOf(s, std)
	return err == nil && a.host == host.host && a.port == host.port
}

// foldName is a field name in lower case with _ as -.
func foldName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// connectionNames says whether a field is named by Connection, and so stays on
// this side.
func connectionNames(h http.Header, name string) bool {
	for _, line := range h["Connection"] {
		for one := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(one, " \t"), name) {
				return true
			}
		}
	}
	return false
}
