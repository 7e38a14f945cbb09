package proxytest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Trust is how a client reaches the internet: through a proxy, or, where
// Captured is set, by dialling what leads to a captured listener.
type Trust struct {
	// Proxy is the address of the explicit door.
	Proxy string
	// Captured is the address of a captured listener, dialled for every host.
	Captured string
	// Roots are what the client trusts: the session's authority.
	Roots *x509.CertPool
}

// Dial makes a connection to "host:port" as a client's own dialler does:
// through CONNECT, or captured.
func (t Trust) Dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	if t.Captured != "" {
		return d.DialContext(ctx, "tcp", t.Captured)
	}
	c, err := d.DialContext(ctx, "tcp", t.Proxy)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		c.SetDeadline(deadline)
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", addr, addr)
	r := bufio.NewReader(c)
	answer, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("reading answer to CONNECT: %w", err)
	}
	if answer.StatusCode != 200 {
		c.Close()
		return nil, fmt.Errorf("CONNECT %s: %s", addr, answer.Status)
	}
	c.SetDeadline(time.Time{})
	head, _ := r.Peek(r.Buffered())
	return &replay{Conn: c, head: head}, nil
}

// HTTP is a client of HTTP/1.1, plain and over TLS. Plain requests go to the
// proxy in absolute form. It is the caller's to close idle connections.
func (t Trust) HTTP() *http.Client {
	transport := &http.Transport{TLSClientConfig: clientTLS(t), DisableCompression: true}
	if t.Captured != "" {
		transport.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) { return t.Dial(ctx, addr) }
	} else {
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: t.Proxy})
	}
	return &http.Client{Transport: transport}
}

// HTTP2 is a client of HTTP/2 over TLS alone.
func (t Trust) HTTP2() *http.Client {
	only := new(http.Protocols)
	only.SetHTTP2(true)
	cfg := clientTLS(t, "h2")
	return &http.Client{Transport: &http.Transport{
		DisableCompression: true,
		Protocols:          only,
		DialTLSContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			c, err := t.Dial(ctx, addr)
			if err != nil {
				return nil, err
			}
			named := cfg.Clone()
			named.ServerName = host
			client := tls.Client(c, named)
			if err := client.HandshakeContext(ctx); err != nil {
				c.Close()
				return nil, fmt.Errorf("handshake with %s: %w", addr, err)
			}
			return client, nil
		},
	}}
}
