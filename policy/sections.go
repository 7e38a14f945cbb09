package policy

import (
	"net/netip"
	"net/url"
	"time"
)

// Upstream is how egressd speaks to origins. Paths are absolute or below the
// policy file's folder.
type Upstream struct {
	// CAFiles are further roots (PEM).
	CAFiles []string
	// Resolve maps a canonical "host:port" to "ip:port", the operator's word.
	Resolve map[string]string
	// Proxy is the corporate proxy (http, https, socks5, socks5h), or nil;
	// NoProxy are the hosts, .suffixes, addresses and ranges it is not used for.
	Proxy   *url.URL
	NoProxy []string
	// ClientCertificates are by canonical host.
	ClientCertificates map[string]KeyPair
	// DNS is the resolver; the zero AddrPort is the system's.
	DNS netip.AddrPort
	// MinTLS is "1.2" or "1.3".
	MinTLS string
	// HTTP2 is auto, always or never.
	HTTP2    string
	Timeouts Timeouts
}

// KeyPair names PEM files of a certificate and its key.
type KeyPair struct{ Cert, Key string }

// Timeouts are of one request to an origin.
type Timeouts struct{ Connect, TLS, ResponseHeader, Idle time.Duration }

// Audit is where and how the record is kept.
type Audit struct {
	// File is the record's path, "" for one for each session in the state
	// folder. SQLite and OTLP are "" where off.
	File, SQLite, OTLP string
	// OnFailure is block or warn.
	OnFailure    string
	BlockTimeout time.Duration
	// MaxSize is of one file, MaxTotal of one session, in bytes; Keep is a
	// number of sessions.
	MaxSize, MaxTotal int64
	Keep              int
	// Query is names, none or full; Path is full or rule.
	Query, Path string
}

// Limits are the limits of the proxy.
type Limits struct {
	MaxConnections int
	// MaxHeaderBytes in bytes; MaxRequestBytes too, 0 for no limit.
	MaxHeaderBytes, MaxRequestBytes int64
	ClientHelloTimeout              time.Duration
	HeaderTimeout                   time.Duration
	IdleTimeout                     time.Duration
	ShutdownGrace                   time.Duration
}

// TLS is the side that faces the sandbox.
type TLS struct {
	// MinVersion is "1.2" or "1.3".
	MinVersion string
	LeafTTL    time.Duration
	// CA is nil for an authority of the session's own.
	CA    *KeyPair
	HTTP2 bool
}

// Approval is who is asked about a request that no rule allows.
type Approval struct {
	// Mode is off or ask.
	Mode       string
	Timeout    time.Duration
	MaxWaiting int
	// Hook is the argv of a program that decides, nil for none.
	Hook []string
}

// Metrics is where totals are served; Listen is "" for nowhere.
type Metrics struct{ Listen string }

// Tools are the tools that are granted.
type Tools struct {
	// Preset is readonly, readwrite, full or "".
	Preset      string
	Allow, Deny []string
	// Agents are names whose agents/NAME/config.yaml belongs to the policy.
	Agents []string
	// OnCall is the argv of a program that decides each call, nil for none.
	OnCall []string
}

// Test is a request and the verdict it must get.
type Test struct {
	Method, URL string
	// Allow is the verdict wanted.
	Allow bool
	Pos   Position
}

// defaults are the sections of a file that holds none of them.
func (p *Policy) defaults() {
	p.Upstream = Upstream{MinTLS: "1.2", HTTP2: "auto", Timeouts: Timeouts{
		Connect: 10 * time.Second, TLS: 10 * time.Second, ResponseHeader: 10 * time.Minute, Idle: 90 * time.Second,
	}}
	p.Audit = Audit{OnFailure: "block", BlockTimeout: 5 * time.Second, MaxSize: 100 << 20, Keep: 1000,
		MaxTotal: 1 << 30, Query: "names", Path: "full"}
	p.Limits = Limits{MaxConnections: 4096, MaxHeaderBytes: 64 << 10, ClientHelloTimeout: 10 * time.Second,
		HeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ShutdownGrace: 15 * time.Second}
	p.TLS = TLS{MinVersion: "1.2", LeafTTL: 24 * time.Hour, HTTP2: true}
	p.Approval = Approval{Mode: "off", Timeout: 2 * time.Minute, MaxWaiting: 32}
}
