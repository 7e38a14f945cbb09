package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/egressd/egressd/netguard"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/proxy"
)

// calls is the transport of the broker's own calls: to token endpoints and to a
// Vault. They go the way of requests (upstream settings), but no rule is asked,
// since their hosts are the operator's word. For the same reason private
// addresses are open to them, this host's too; link-local ones and those of
// clouds' metadata are not. It follows no redirect, as no transport does.
//
// It is made at the first call: most runs make none.
type calls struct {
	make func() *http.Transport
}

func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) { return c.make().RoundTrip(r) }

func newCalls(p *policy.Policy, dialer *netguard.Dialer, roots func() *x509.CertPool, certs map[string]tls.Certificate) *calls {
	return &calls{sync.OnceValue(func() *http.Transport {
		own := *dialer
		own.Guard = netguard.New(netguard.Config{Allow: netguard.Allow{All: true, Prefixes: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128"),
		}}})
		dial := own.DialContext
		if p.Upstream.Proxy != nil {
			way := proxy.UpstreamProxy{URL: p.Upstream.Proxy, NoProxy: p.Upstream.NoProxy, Check: checkNames(&own)}
			dial = way.Through(own.DialContext)
		}
		t := p.Upstream.Timeouts
		return &http.Transport{
			DialContext: dial,
			DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				host, _, err := net.SplitHostPort(addr)
				if err != nil {
					c.Close()
					return nil, fmt.Errorf("splitting %q: %w", addr, err)
				}
				config := &tls.Config{ServerName: host, RootCAs: roots(), MinVersion: tlsVersion(p.Upstream.MinTLS)}
				if cert, ok := certs[host]; ok {
					config.Certificates = []tls.Certificate{cert}
				}
				ctx, cancel := context.WithTimeout(ctx, t.TLS)
				defer cancel()
				secure := tls.Client(c, config)
				if err := secure.HandshakeContext(ctx); err != nil {
					c.Close()
					return nil, err
				}
				return secure, nil
			},
			// A token endpoint that hangs must not hold requests for minutes.
			ResponseHeaderTimeout: 30 * time.Second, IdleConnTimeout: t.Idle, MaxResponseHeaderBytes: 64 << 10,
		}
	})}
}
