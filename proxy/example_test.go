package proxy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/proxy"
	"github.com/egressd/egressd/rules"
)

// The proxy in a program of one's own: rules, an authority, a credential and a
// record, in front of an origin that wants a login.
func ExampleNew() {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, logged in: %v", r.Header.Get("Authorization") == "Bearer the-real-secret")
	}))
	issuer, err := ca.New(ca.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	origins, err := ca.New(ca.Config{}) // plays the authority that origins have their certificates of
	if err != nil {
		fmt.Println(err)
		return
	}
	leaf, err := origins.Leaf("api.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	origin.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
	origin.StartTLS()
	defer origin.Close()

	rule, err := rules.Parse("GET api.example.com/v1/**")
	if err != nil {
		fmt.Println(err)
		return
	}
	broker, err := credbroker.New(context.Background(), credbroker.Config{
		Entries: []credbroker.Entry{{ID: "api", Type: credbroker.HTTPSBearer, Targets: []credbroker.Target{{Host: "api.example.com", Port: 443}},
			Source: &source.Source{Env: "API_TOKEN"}, Inject: "missing", Own: "pass"}},
		Sources: source.Config{Getenv: func(string) string { return "the-real-secret" }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(state)
	log, err := audit.Open(audit.Config{State: state, Session: audit.NewSession(), Mask: broker.Mask})
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := proxy.New(proxy.Config{
		Issuer: issuer, Sink: log,
		Policy: &proxy.Policy{
			Rules: rules.New([]rules.Rule{rule}), Broker: broker,
			// A netguard.Dialer belongs here; this one knows a single origin.
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, origin.Listener.Addr().String())
			},
			Roots: func() *x509.CertPool {
				pool := x509.NewCertPool()
				pool.AppendCertsFromPEM(origins.PEM())
				return pool
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = server.ServeProxy(l) }() // ends with Shutdown

	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(issuer.PEM())
	client := &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()}),
		TLSClientConfig: &tls.Config{RootCAs: trust},
	}}
	for _, u := range []string{"https://api.example.com/v1/me", "https://api.example.com/admin"} {
		resp, err := client.Get(u)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		first, _, _ := strings.Cut(string(body), "\n")
		fmt.Println(resp.StatusCode, resp.Header.Get("Content-Type"), first == "hello, logged in: true", err)
	}
	client.CloseIdleConnections()
	if err := server.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(log.Counts()[audit.KindRequest], log.Close("exit"))
	// Output:
	// 200 text/plain; charset=utf-8 true <nil>
	// 403 application/problem+json false <nil>
	// map[allow:1 deny:1] <nil>
}

// Calls of one's own that leave by the operator's proxy, as those of the
// sandbox do.
func ExampleUpstreamProxy() {
	corporate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.Host, r.Header.Get("Proxy-Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer corporate.Close()
	at, err := url.Parse(corporate.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	at.User = url.UserPassword("egressd", "pass")
	through := proxy.UpstreamProxy{URL: at, NoProxy: []string{"corp.example"}}
	dial := through.Through(func(_ context.Context, _, addr string) (net.Conn, error) {
		return nil, fmt.Errorf("dialling %s directly", addr)
	})
	for _, addr := range []string{"api.example.com:443", "wiki.corp.example:443"} {
		_, err := dial(context.Background(), "tcp", addr)
		fmt.Println(err)
	}
	// Output:
	// CONNECT api.example.com:443 Basic ZWdyZXNzZDpwYXNz
	// refusing the request: connect
	// dialling wiki.corp.example:443 directly
}
