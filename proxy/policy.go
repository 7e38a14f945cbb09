package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"net/url"
	"time"
)

// Rules decides. Each method takes and gives basic types only, so that
// *rules.Set is one without knowing this package. Implementations are safe for
// concurrent use.
type Rules interface {
	// Judge answers one request: the canonical text of the allow rule that
	// decided, the largest body in bytes it lets through (-1 for any), and, where
	// a rate was charged, how to give it back. A refusal is an error with
	// Reason() string; Hint, Note and RetryAfter are looked for too. With charge
	// false nothing is counted. length is -1 where it is not known.
	Judge(at time.Time, charge bool, method, scheme, host string, port int, target string, header map[string][]string, length int64) (rule string, limit int64, refund func(), err error)
	// Connect answers whether a connection to host and port is a tunnel that is
	// not looked into (rule is not empty), or one whose requests are judged
	// inside (inspect), or refused.
	Connect(at time.Time, charge bool, host string, port int) (rule string, inspect bool, err error)
	// Canonical spells a host name in the one way that is compared and sent.
	Canonical(host string) (string, error)
}

// Issuer makes the certificates that the client sees. *ca.Issuer is one.
type Issuer interface {
	// Leaf returns a certificate for a canonical name or an address literal.
	Leaf(host string) (*tls.Certificate, error)
}

// Names tells what the addresses of the DNS stub stand for. A nil Names knows
// none: every address is a plain one.
type Names interface {
	// Lookup returns the name an address was given out for, or "*" for the
	// address that all unknown names share. pool with an empty name is an address
	// of the pool that nobody was given; pool false is a plain address.
	Lookup(addr netip.Addr) (name string, pool bool)
}

// DialFunc opens one connection to "host:port". Its errors have Reason().
type DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// Policy is what one version of the policy file means to the proxy. It is never
// changed once handed over; a reload is a new one. The zero value refuses
// everything.
type Policy struct {
	// Rules decide; nil denies every request (no_rule).
	Rules Rules
	// Dial opens every connection to an origin, past the address guard; nil
	// refuses every connection (connect).
	Dial DialFunc
	// Holds says whether a connection to addr ("host:port") that an older policy
	// opened to remote ("ip:port") may stay; its errors have Reason(). It is asked
	// at a swap about what runs; nil lets stay what the rules let stay.
	Holds func(addr, remote string) error

	// Broker keeps placeholders and secrets where they belong; nil refuses every
	// request (internal): nobody would look at it.
	Broker Broker

	// Roots give what verifies origins, when the first connection needs it: to
	// parse all the roots of a host takes longer than many a run. It is called
	// often and by many goroutines; nil gives the system's.
	Roots func() *x509.CertPool
	// ClientCertificates are shown to the origin of that canonical host.
	ClientCertificates map[string]tls.Certificate
	// MinUpstreamTLS is the lowest version spoken with an origin; 0 is TLS 1.2.
	MinUpstreamTLS uint16
	// UpstreamHTTP2 is "auto" (gRPC, and origins without HTTP/1.1), "always" or
	// "never"; empty is auto.
	UpstreamHTTP2 string
	// UpstreamProxy, where not nil, carries connections to origins.
	UpstreamProxy *UpstreamProxy
	// Timeouts of the origin's side.
	Timeouts Timeouts

	// MaxRequestBytes bounds the body of every request beside the rule's own
	// bound; 0 is none.
	MaxRequestBytes int64
	// Learn lets through what no rule knows, and records it as learned. A deny
	// rule denies all the same.
	Learn bool
	// Page is the JSON that http://egressd.internal/policy answers with.
	Page []byte
	// Hash names this version in every record: "sha256:" and hex digits.
	Hash string
}

func (p *Policy) roots() *x509.CertPool {
	if p.Roots == nil {
		return nil
	}
	return p.Roots()
}

// Timeouts bound each wait for an origin; 0 takes the default.
type Timeouts struct {
	TLS            time.Duration // handshake, 10 s
	ResponseHeader time.Duration // from the end of the request to the head of its answer, 10 min
	Idle           time.Duration // of a connection in the pool, 90 s
}

func (t Timeouts) withDefaults() Timeouts {
	if t.TLS <= 0 {
		t.TLS = 10 * time.Second
	}
	if t.ResponseHeader <= 0 {
		t.ResponseHeader = 10 * time.Minute
	}
	if t.Idle <= 0 {
		t.Idle = 90 * time.Second
	}
	return t
}

// UpstreamProxy is a proxy between this one and the origins. The name of an
// origin is sent to it as a name: what it resolves to there is its word.
type UpstreamProxy struct {
	// URL has the scheme http, https or socks5 (socks5h means the same), and may
	// hold a user and password.
	URL *url.URL
	// NoProxy lists hosts that are dialled directly: names (and every name below
	// them), "*", addresses and prefixes.
	NoProxy []string
	// Dial reaches the proxy itself; nil is a plain net.Dialer, since the proxy
	// is the operator's choice and often has a private address.
	Dial DialFunc
	// Check resolves and judges "host:port" here before it is sent on; its errors
	// have Reason(). Nil checks nothing.
	Check func(ctx context.Context, addr string) error
}

// Limits bound what clients can hold; 0 takes the default.
type Limits struct {
	MaxConnections     int           // of all listeners together, 4096
	MaxHeaderBytes     int           // of a request head, 64 KiB
	ClientHelloTimeout time.Duration // from the start of a tunnel to the end of its handshake, 10 s
	HeaderTimeout      time.Duration // first byte of a connection, and from the first byte of a head to its end, 10 s
	IdleTimeout        time.Duration // between requests, 2 min
}

func (l Limits) withDefaults() Limits {
	if l.MaxConnections <= 0 {
		l.MaxConnections = 4096
	}
	if l.MaxHeaderBytes <= 0 {
		l.MaxHeaderBytes = 64 << 10
	}
	if l.ClientHelloTimeout <= 0 {
		l.ClientHelloTimeout = 10 * time.Second
	}
	if l.HeaderTimeout <= 0 {
		l.HeaderTimeout = 10 * time.Second
	}
	if l.IdleTimeout <= 0 {
		l.IdleTimeout = 2 * time.Minute
	}
	return l
}
