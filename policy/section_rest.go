package policy

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

func (d *doc) audit(top *mapping, p *Policy) {
	m := d.section(top, "audit")
	if m == nil {
		return
	}
	a := &p.Audit
	a.File = m.path("file")
	a.SQLite = d.unlessOff(m, "sqlite", d.expand)
	a.OTLP = d.unlessOff(m, "otlp", func(s string) string { return s })
	if u, err := url.Parse(a.OTLP); a.OTLP != "" && (err != nil || !webURL(u)) {
		v, _ := m.get("otlp")
		d.fail(v.spot(), KindValue, "not the URL of a collector, such as https://collector.test:4318")
	}
	m.word("on_failure", &a.OnFailure, "block", "warn")
	m.duration("block_timeout", &a.BlockTimeout)
	m.size("max_size", &a.MaxSize)
	m.number("keep", &a.Keep, 0)
	m.size("max_total", &a.MaxTotal)
	m.word("query", &a.Query, "names", "none", "full")
	m.word("path", &a.Path, "full", "rule")
	p.records = nil
	for _, key := range []string{"file", "sqlite"} {
		text := map[string]string{"file": a.File, "sqlite": a.SQLite}[key]
		if text != "" {
			p.records = append(p.records, grant{text, m.key(key)})
		}
	}
	m.done(nil)
}

// unlessOff reads text; the word off, the default, is none.
func (d *doc) unlessOff(m *mapping, name string, f func(string) string) string {
	s := m.filled(name)
	if s == "" || s == "off" {
		return ""
	}
	return f(s)
}

// webURL says that the URL is http or https with a host and no user.
func webURL(u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.User != nil || u.Fragment != "" || strings.HasSuffix(u.Host, ":") {
		return false
	}
	if u.Port() != "" {
		if _, ok := portNumber(u.Port()); !ok {
			return false
		}
	}
	_, ok := hostName(bracketed(u.Hostname()))
	return ok
}

// proxyLimits are the keys of the top-level limits, sandboxKeys those of the
// sandbox's: each error names the other place.
var (
	proxyLimits = []string{"max_connections", "max_header_bytes", "max_request_bytes", "client_hello_timeout",
		"header_timeout", "idle_timeout", "shutdown_grace"}
	sandboxLimits = []string{"memory", "processes", "open_files", "cpu_seconds"}
)

func (d *doc) limits(top *mapping, p *Policy) {
	m := d.section(top, "limits")
	if m == nil {
		return
	}
	l := &p.Limits
	m.number("max_connections", &l.MaxConnections, 1)
	m.size("max_header_bytes", &l.MaxHeaderBytes)
	m.size("max_request_bytes", &l.MaxRequestBytes)
	m.duration("client_hello_timeout", &l.ClientHelloTimeout)
	m.duration("header_timeout", &l.HeaderTimeout)
	m.duration("idle_timeout", &l.IdleTimeout)
	m.duration("shutdown_grace", &l.ShutdownGrace)
	elsewhere := map[string]string{}
	for _, k := range sandboxLimits {
		elsewhere[k] = "it belongs to sandbox.limits"
	}
	m.done(elsewhere)
}

func (d *doc) tls(top *mapping, p *Policy) {
	m := d.section(top, "tls")
	if m == nil {
		return
	}
	t := &p.TLS
	m.word("min_version", &t.MinVersion, "1.2", "1.3")
	m.duration("leaf_ttl", &t.LeafTTL)
	m.flag("http2", &t.HTTP2)
	if v, ok := m.get("ca"); ok {
		switch {
		case isText(v) && v.node.Value == "session":
		case isText(v):
			d.fail(v.spot(), KindValue, "%s is neither session nor {cert, key}", quoted(v.node.Value))
		default:
			t.CA = d.keyPair(v, "tls.ca")
		}
	}
	m.done(nil)
}

func (d *doc) approval(top *mapping, p *Policy) {
	m := d.section(top, "approval")
	if m == nil {
		return
	}
	a := &p.Approval
	m.word("mode", &a.Mode, "off", "ask")
	m.duration("timeout", &a.Timeout)
	m.number("max_waiting", &a.MaxWaiting, 1)
	if v, ok := m.get("hook"); ok && !(isText(v) && v.node.Value == "none") {
		a.Hook = d.command(v)
	}
	m.done(nil)
}

func (d *doc) metrics(top *mapping, p *Policy) {
	m := d.section(top, "metrics")
	if m == nil {
		return
	}
	if v, ok := m.get("listen"); ok {
		if s, ok := d.text(v); ok && s != "none" {
			if !listenAddress(s) {
				d.fail(v.spot(), KindValue, "%s is no address to listen on, such as 127.0.0.1:9464", quoted(s))
			}
			p.Metrics.Listen = s
		}
	}
	m.done(nil)
}

// listenAddress says that s is address:port, localhost:port or :port.
func listenAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	if _, ok := portNumber(port); !ok {
		return false
	}
	if host == "" || host == "localhost" {
		return true
	}
	_, err = netip.ParseAddr(host)
	return err == nil
}

// toolNames are the tools there are.
var toolNames = []string{"shell", "file_read", "file_write", "file_edit", "grep", "glob"}

func toolName(s string) string {
	if !slices.Contains(toolNames, s) {
		return quoted(s) + " is no tool: " + strings.Join(toolNames, ", ")
	}
	return ""
}

func (d *doc) tools(top *mapping, p *Policy) {
	v, ok := top.get("tools")
	if !ok {
		return
	}
	t := &p.Tools
	if v.node.Kind == sequenceKind {
		t.Allow, _ = d.strings(v, "tools", toolName)
		return
	}
	m := d.mapping(v, "tools")
	if m == nil {
		return
	}
	m.word("preset", &t.Preset, "readonly", "readwrite", "full")
	t.Allow, _ = m.strings("allow", "tools", toolName)
	t.Deny, _ = m.strings("deny", "tools", toolName)
	var at []spot
	seen := map[string]bool{}
	t.Agents, at = m.strings("agents", "names of agents", func(s string) string {
		switch {
		case s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00"):
			return quoted(s) + " is no name of a folder below agents"
		case seen[s]:
			return quoted(s) + " stands here twice"
		}
		seen[s] = true
		return ""
	})
	p.agentSpots = at
	if v, ok := m.get("on_call"); ok {
		t.OnCall = d.command(v)
	}
	m.done(nil)
}
