package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"
)

// poolPerHost is how many idle HTTP/1 connections to one origin are kept: the
// default of two would cost nearly each request a handshake at 16 clients.
const poolPerHost = 1024

// poolAll is how many are kept in all: below a wildcard there are as many hosts
// as a client cares to ask for, and each would hold a descriptor for as long as
// idle connections last.
const poolAll = 2048

// upstream is how one policy reaches origins. HTTP/1.1 has the deep pool and
// carries upgrades; HTTP/2 is for what needs it.
type upstream struct {
	policy  *Policy
	times   Timeouts
	h1      *http.Transport
	h2      *http.Transport
	absolut *http.Transport // plain http through an HTTP proxy; nil without one

	tls1, tls2 *tls.Config
	// speaks remembers origins that lack one of the two protocols:
	// "host:port" → "h1" or "h2".
	speaks sync.Map
}

func newUpstream(p *Policy) *upstream {
	u := &upstream{policy: p, times: p.Timeouts.withDefaults()}
	config := &tls.Config{MinVersion: max(p.MinUpstreamTLS, tls.VersionTLS12)}
	// The caches are apart: a session is resumed with the protocol it had.
	u.tls1, u.tls2 = config, config.Clone()
	u.tls1.NextProtos, u.tls2.NextProtos = []string{"http/1.1"}, []string{"h2"}
	u.tls1.ClientSessionCache = tls.NewLRUClientSessionCache(1024)
	u.tls2.ClientSessionCache = tls.NewLRUClientSessionCache(256)

	u.h1 = u.transport(u.dialPlain, u.dialTLS1)
	u.h2 = u.transport(u.dialPlain, u.dialTLS2)
	u.h2.Protocols = new(http.Protocols)
	u.h2.Protocols.SetHTTP2(true)
	// One connection carries every stream to an origin: one that is dead must be
	// found before all of them have waited for their time-outs.
	u.h2.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	if up := p.UpstreamProxy; up != nil && up.absolute() {
		u.absolut = u.transport(u.dialAbsolute, nil)
		u.absolut.Proxy = http.ProxyURL(up.plainURL())
	}
	return u
}

type dialContext = func(ctx context.Context, network, addr string) (net.Conn, error)

// transport has every wait bounded but that for a body, adds no field, unpacks
// nothing, and reads no proxy variables.
func (u *upstream) transport(plain, secure dialContext) *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return &http.Transport{
		DialContext: plain, DialTLSContext: secure, Protocols: p,
		DisableCompression: true, MaxIdleConnsPerHost: poolPerHost, MaxIdleConns: poolAll,
		IdleConnTimeout: u.times.Idle, ResponseHeaderTimeout: u.times.ResponseHeader,
		ExpectContinueTimeout: expectContinue, MaxResponseHeaderBytes: maxAnswerHead,
	}
}

// close ends the idle connections, and those in use when they become idle.
func (u *upstream) close() {
	u.h1.CloseIdleConnections()
	u.h2.CloseIdleConnections()
	if u.absolut != nil {
		u.absolut.CloseIdleConnections()
	}
}

// roundTripper is the transport of ReverseProxy, which carries upgrades.
type roundTripper struct{}

func (roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r.Context())
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &x.body // ReverseProxy's does not pass Close on
	}
	// ReverseProxy made this trace for this request alone.
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		method, upgrade := r.Method, x.forward.upgradeKey != ""
		trace.GotConn = func(info httptrace.GotConnInfo) { x.gotConn(info.Conn, method, upgrade) }
		if x.body.asks.Load() {
			x.answer.guardInterim(trace)
		}
	}
	res, err := x.roundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Request = r
	return res, nil
}

// roundTrip sends a request by the policy it was judged by. It is the place
// where secrets are attached: after hop-by-hop stripping, where no field of the
// client can take them off again.
func (x *exchange) roundTrip(r *http.Request) (*http.Response, error) {
	b := x.force.Broker
	if b == nil {
		return nil, noBroker()
	}
	return x.throughBroker(b, r)
}

// gotConn notes which connection carries the request, and tells the checker of
// its answer what was asked (a HEAD has no body, a 101 is only for an upgrade).
// From here on the origin may see the request: whatever is refused later, a
// rate that was charged stays charged, or a body that breaks off on purpose
// would make every request a free one.
func (x *exchange) gotConn(c net.Conn, method string, upgrade bool) {
	x.refund = nil
	if o, ok := c.(*pooled); ok {
		o.expect(method, upgrade)
		x.forward.proto, x.forward.conn = "http/1.1", o.originConn
		x.reaches(c, o.addr)
		return
	}
	x.forward.proto = "h2"
	x.streams.Store(true)
	x.reaches(c, remote(c))
}

// reaches notes the address that c, which will carry the request, leads to. It
// breaks off before a byte is sent where a swap in the meantime has closed that
// address.
func (x *exchange) reaches(c net.Conn, addr string) {
	x.mu.Lock()
	x.forward.upstream = addr
	x.mu.Unlock()
	if now := x.server.current.Load(); now != x.force && !x.holds(now) {
		c.Close()
		x.revoke()
	}
}

// holds says whether a policy lets the connection stay that carries x, if there
// is one. By way of an upstream proxy its address is the proxy's.
func (x *exchange) holds(f *inForce) bool {
	x.mu.Lock()
	addr := x.forward.upstream
	x.mu.Unlock()
	if up := x.force.UpstreamProxy; addr == "" || f.Holds == nil || up != nil && !up.bypasses(x.forward.host.host) {
		return true
	}
	return f.Holds(x.forward.hostPort(), addr) == nil
}

// pooled is a checked HTTP/1 connection with its address written out once for
// all the records of its requests.
type pooled struct {
	*originConn
	addr string
}

func newPooled(c net.Conn) *pooled {
	return &pooled{originConn: checkOrigin(c, originWireConfig{maxHeader: maxAnswerHead}), addr: remote(c)}
}

func remote(c net.Conn) string {
	if a := c.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

func (u *upstream) roundTrip(x *exchange, r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" {
		if up := u.policy.UpstreamProxy; u.absolut != nil && !up.bypasses(x.forward.host.host) {
			if up.Check != nil {
				if err := up.Check(x, x.forward.hostPort()); err != nil {
					return nil, err
				}
			}
			if r.URL.Opaque != "" { // net/http adds the scheme
				whole, second := *r.URL, *r
				whole.Opaque = "//" + whole.Host + whole.Opaque
				second.URL = &whole
				r = &second
			}
			return u.absolut.RoundTrip(r)
		}
		return u.h1.RoundTrip(r)
	}
	if !u.wantsH2(r, x.forward.upgradeKey != "") {
		res, err := u.h1.RoundTrip(r)
		if errors.Is(err, errNoHTTP1) && u.policy.UpstreamHTTP2 != "never" && x.forward.upgradeKey == "" && x.unread(r) {
			u.speaks.Store(r.URL.Host, "h2")
			return u.h2.RoundTrip(x.again(r))
		}
		return res, err
	}
	res, err := u.h2.RoundTrip(r)
	if errors.Is(err, errNoHTTP2) && x.unread(r) {
		u.speaks.Store(r.URL.Host, "h1")
		return u.h1.RoundTrip(x.again(r))
	}
	return res, err
}

// unread says that nothing of the body of r was read yet to be sent.
func (x *exchange) unread(r *http.Request) bool {
	if b, ok := r.Body.(*sentBody); ok {
		return !b.started.Load()
	}
	return !x.body.started.Load()
}

// again is a request whose first way ended before its body was asked for: the
// transport has closed that one, but for a body of the broker's.
func (x *exchange) again(r *http.Request) *http.Request {
	if r.Body == nil {
		return r
	}
	if _, ok := r.Body.(*sentBody); ok {
		return r
	}
	second := *r
	second.Body = &x.body
	return &second
}

// wantsH2 says which protocol a request takes first. An upgrade is never made
// over HTTP/2.
func (u *upstream) wantsH2(r *http.Request, upgrade bool) bool {
	if upgrade || u.policy.UpstreamHTTP2 == "never" {
		return false
	}
	wants := u.policy.UpstreamHTTP2 == "always" || isGRPC(r.Header)
	if known, ok := u.speaks.Load(r.URL.Host); ok {
		return known == "h2"
	}
	return wants
}

// isGRPC knows application/grpc and its kinds, but not gRPC-Web, which is made
// for HTTP/1.1.
func isGRPC(h http.Header) bool {
	v := h["Content-Type"]
	if len(v) != 1 {
		return false
	}
	rest, ok := strings.CutPrefix(strings.ToLower(v[0]), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';' || rest[0] == ' ')
}

// dial opens a connection to an origin, by way of the upstream proxy where
// there is one.
func (u *upstream) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if up := u.policy.UpstreamProxy; up != nil && !up.bypassesAddr(addr) {
		return up.tunnel(ctx, network, addr)
	}
	if u.policy.Dial == nil {
		return nil, &denial{reason: "connect"}
	}
	return u.policy.Dial(ctx, network, addr)
}

func (u *upstream) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := u.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newPooled(c), nil
}

func (u *upstream) dialTLS1(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := u.handshake(ctx, network, addr, u.tls1)
	if err != nil {
		return nil, err
	}
	if below, ok := c.NetConn().(*prompt); ok {
		return newPooled(&records{c, below}), nil
	}
	return newPooled(c), nil
}

func (u *upstream) dialTLS2(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := u.handshake(ctx, network, addr, u.tls2)
	if err != nil {
		return nil, err
	}
	if c.ConnectionState().NegotiatedProtocol != "h2" {
		c.Close()
		return nil, errNoHTTP2
	}
	return c, nil
}

// handshake dials and speaks TLS with the origin, which is verified by the name
// that was judged.
func (u *upstream) handshake(ctx context.Context, network, addr string, base *tls.Config) (*tls.Conn, error) {
	raw, err := u.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		raw.Close()
		return nil, err
	}
	config := base.Clone()
	config.ServerName, config.RootCAs = host, u.policy.roots()
	if cert, ok := u.policy.ClientCertificates[host]; ok {
		config.Certificates = []tls.Certificate{cert}
	}
	below := raw
	if base == u.tls1 {
		if p, ok := newPrompt(raw); ok {
			below = p
		}
	}
	c := tls.Client(below, config)
	limited, cancel := context.WithTimeout(ctx, u.times.TLS)
	defer cancel()
	if err := c.HandshakeContext(limited); err != nil {
		raw.Close()
		if ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
			return nil, &denial{reason: "timeout", detail: "The TLS handshake with the origin did not end in time."}
		}
		return nil, handshakeError(err, base == u.tls1)
	}
	return c, nil
}
