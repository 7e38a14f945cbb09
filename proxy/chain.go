package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	xproxy "golang.org/x/net/proxy"
)

// chainTimeout bounds the conversation with an upstream proxy before it has
// connected.
const chainTimeout = 10 * time.Second

// errChain is an upstream proxy that did not connect us.
var errChain = &denial{reason: "connect", detail: "The upstream proxy did not connect to the origin."}

// absolute says that plain http goes to this proxy in absolute form.
func (p *UpstreamProxy) absolute() bool { return p.URL.Scheme == "http" || p.URL.Scheme == "https" }

// plainURL is the proxy as http.Transport is told of it: our dialler speaks TLS
// with it where that is wanted.
func (p *UpstreamProxy) plainURL() *url.URL {
	return &url.URL{Scheme: "http", Host: p.addr(), User: p.URL.User}
}

// addr is the proxy's own address with its port filled in.
func (p *UpstreamProxy) addr() string {
	port := p.URL.Port()
	if port == "" {
		switch p.URL.Scheme {
		case "https":
			port = "443"
		case "http":
			port = "80"
		default:
			port = "1080"
		}
	}
	return net.JoinHostPort(p.URL.Hostname(), port)
}

// bypasses says that a host is dialled directly.
func (p *UpstreamProxy) bypasses(host string) bool {
	addr, addrErr := netip.ParseAddr(host)
	for _, entry := range p.NoProxy {
		entry = strings.ToLower(strings.TrimSuffix(entry, "."))
		if entry == "*" || entry == host {
			return true
		}
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			if addrErr == nil && prefix.Contains(addr) {
				return true
			}
			continue
		}
		if name := strings.TrimPrefix(strings.TrimPrefix(entry, "*"), "."); name != "" && strings.HasSuffix(host, "."+name) {
			return true
		}
	}
	return false
}

func (p *UpstreamProxy) bypassesAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && p.bypasses(host)
}

// connect reaches the proxy itself.
func (p *UpstreamProxy) connect(ctx context.Context) (net.Conn, error) {
	dial := p.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c, err := dial(ctx, "tcp", p.addr())
	if err != nil {
		return nil, &denial{reason: "connect", detail: "The upstream proxy could not be reached."}
	}
	if p.URL.Scheme != "https" {
		return c, nil
	}
	t := tls.Client(c, &tls.Config{ServerName: p.URL.Hostname(), MinVersion: tls.VersionTLS12})
	if err := t.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, &denial{reason: "upstream_tls", detail: "The TLS handshake with the upstream proxy failed."}
	}
	return t, nil
}

// dialAbsolute reaches the proxy for a plain request, once its target was
// checked.
func (u *upstream) dialAbsolute(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := u.policy.UpstreamProxy.connect(ctx)
	if err != nil {
		return nil, err
	}
	return newPooled(c), nil
}

// tunnel asks the proxy for a connection to addr, sent as a name. What it
// answers is never quoted.
func (p *UpstreamProxy) tunnel(ctx context.Context, network, addr string) (net.Conn, error) {
	if p.Check != nil {
		if err := p.Check(ctx, addr); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, chainTimeout)
	defer cancel()
	if !p.absolute() {
		return p.socks(ctx, network, addr)
	}
	c, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	rest, err := p.ask(c, addr)
	if !stop() || err != nil {
		c.Close()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, &denial{reason: "timeout", detail: "The upstream proxy did not answer in time."}
		}
		return nil, errChain
	}
	if len(rest) > 0 {
		return &prefixed{Conn: c, pre: rest}, nil
	}
	return c, nil
}

// ask sends the CONNECT and reads the head of its answer, HTTP/1.0 or 1.1.
func (p *UpstreamProxy) ask(c net.Conn, addr string) (rest []byte, err error) {
	head := "CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n"
	if user := p.URL.User; user != nil {
		password, _ := user.Password()
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(c, head+"\r\n"); err != nil {
		return nil, err
	}
	in := bufio.NewReader(io.LimitReader(c, maxAnswerHead))
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		return nil, errors.New("asking the upstream proxy: status " + strconv.Itoa(res.StatusCode))
	}
	rest, err = in.Peek(in.Buffered())
	return rest, err
}

// socks asks a SOCKS5 proxy (RFC 1928).
func (p *UpstreamProxy) socks(ctx context.Context, network, addr string) (net.Conn, error) {
	var auth *xproxy.Auth
	if user := p.URL.User; user != nil {
		password, _ := user.Password()
		auth = &xproxy.Auth{User: user.Username(), Password: password}
	}
	d, err := xproxy.SOCKS5("tcp", p.addr(), auth, chainDialer{p})
	if err != nil {
		return nil, errChain
	}
	c, err := d.(xproxy.ContextDialer).DialContext(ctx, network, addr)
	if err != nil {
		var known *denial
		switch {
		case errors.As(err, &known):
			return nil, known
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil, &denial{reason: "timeout", detail: "The upstream proxy did not answer in time."}
		}
		return nil, errChain
	}
	return c, nil
}

// chainDialer is the way to the proxy that x/net/proxy takes.
type chainDialer struct{ p *UpstreamProxy }

func (d chainDialer) Dial(_, _ string) (net.Conn, error) { return d.p.connect(context.Background()) }

func (d chainDialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return d.p.connect(ctx)
}

// prefixed is a connection of which some bytes were read ahead.
type prefixed struct {
	net.Conn
	pre []byte
}

func (c *prefixed) Read(p []byte) (int, error) {
	if len(c.pre) > 0 {
		n := copy(p, c.pre)
		c.pre = c.pre[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}
