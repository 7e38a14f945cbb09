package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
	"github.com/egressd/egressd/proxy"
)

// protoOrigin is a TLS server that speaks these protocols alone and answers
// with the one it was asked in. ask, if not nil, wants client certificates.
func protoOrigin(t *testing.T, ca *proxytest.CA, ask *tls.Config, protocols ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := ca.ServerConfig("127.0.0.1", "", protocols...)
	if ask != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, ask.ClientCAs
	}
	p := new(http.Protocols)
	for _, name := range protocols {
		p.SetHTTP1(p.HTTP1() || name == "http/1.1")
		p.SetHTTP2(p.HTTP2() || name == "h2")
	}
	server := &http.Server{TLSConfig: config, Protocols: p, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Proto, body)
	})}
	server.ErrorLog = log.New(io.Discard, "", 0)
	if !p.HTTP1() {
		l = strictListener{l}
	}
	go server.ServeTLS(l, "", "")
	t.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

// strictListener refuses a ClientHello that does not offer h2, as servers do
// that have nothing else; crypto/tls lets such a client in.
type strictListener struct{ net.Listener }

func (l strictListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		hello := make([]byte, 16<<10)
		n, err := c.Read(hello)
		if err == nil && strings.Contains(string(hello[:n]), "\x02h2") {
			return &ahead{Conn: c, b: hello[:n]}, nil
		}
		c.Write([]byte{21, 3, 3, 0, 2, 2, 120}) // fatal alert: no_application_protocol
		c.Close()
	}
}

// ahead is a connection of which some bytes were read.
type ahead struct {
	net.Conn
	b []byte
}

func (a *ahead) Read(p []byte) (int, error) {
	if len(a.b) > 0 {
		n := copy(p, a.b)
		a.b = a.b[n:]
		return n, nil
	}
	return a.Conn.Read(p)
}

// TestUpstreamHTTP2: HTTP/1.1 to origins, HTTP/2 for gRPC, where the policy
// says so, and where an origin has nothing else; and back where one lacks it.
func TestUpstreamHTTP2(t *testing.T) {
	both, only1, only2 := []string{"h2", "http/1.1"}, []string{"http/1.1"}, []string{"h2"}
	for _, tt := range []struct {
		mode   string
		origin []string
		kind   string
		want   string // protocol at the origin, or the reason
	}{
		{"", both, "", "HTTP/1.1"},
		{"", both, "application/grpc+proto", "HTTP/2.0"},
		{"", both, "application/grpc-web", "HTTP/1.1"},
		{"", only2, "", "HTTP/2.0"},
		{"", only1, "application/grpc", "HTTP/1.1"},
		{"always", both, "", "HTTP/2.0"},
		{"always", only1, "", "HTTP/1.1"},
		{"never", both, "application/grpc", "HTTP/1.1"},
		{"never", only2, "", "upstream_tls"},
	} {
		roots := proxytest.NewCA(t)
		addr := protoOrigin(t, roots, nil, tt.origin...)
		h := newHouseWith(t, []any{"* ok.test/**"}, casePolicy{}, roots)
		h.kernel = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		policy := h.policy([]any{"* ok.test/**"})
		policy.UpstreamHTTP2 = tt.mode
		h.server.SetPolicy(policy)
		client := h.explicit().HTTP()
		for range 2 { // the second knows what the first found out
			req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://ok.test/x", strings.NewReader("body"))
			if tt.kind != "" {
				req.Header.Set("Content-Type", tt.kind)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatalf("%+v: %v", tt, err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if got := string(body); got != tt.want+" body" && !strings.Contains(got, `"`+tt.want+`"`) {
				t.Errorf("%+v: %s", tt, got)
			}
		}
		client.CloseIdleConnections()
	}
}

// TestClientCertificate: an origin that wants one gets the one of its host.
func TestClientCertificate(t *testing.T) {
	roots, people := proxytest.NewCA(t), proxytest.NewCA(t)
	addr := protoOrigin(t, roots, &tls.Config{ClientCAs: people.Pool()}, "http/1.1")
	h := newHouseWith(t, []any{"* ok.test/**"}, casePolicy{}, roots)
	h.kernel = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	if code, body := fetch(t, client, "https://ok.test/"); code != 502 {
		t.Errorf("without a certificate: %d %s", code, body)
	}
	leaf, err := people.Leaf("me.test", "")
	if err != nil {
		t.Fatal(err)
	}
	policy := h.policy([]any{"* ok.test/**"})
	policy.ClientCertificates = map[string]tls.Certificate{"ok.test": *leaf}
	h.server.SetPolicy(policy)
	code, body := fetch(t, client, "https://ok.test/")
	if code == 200 || !strings.Contains(body, "upstream") {
		// The test authority's leaves are for servers, and the origin looks.
		t.Errorf("with a server's certificate: %d %s", code, body)
	}
}

// TestTLSFaultIsNamed: the 502 says what is wrong with an origin's certificate,
// in words of ours (fault T21).
func TestTLSFaultIsNamed(t *testing.T) {
	for flaw, want := range map[string]string{"expired": "expired", "selfsigned": "authority", "wrongname": "another name"} {
		h := newHouse(t, []any{"GET ok.test/**"}, casePolicy{})
		h.origin.Flaw = flaw
		client := h.explicit().HTTP()
		code, body := fetch(t, client, "https://ok.test/")
		client.CloseIdleConnections()
		if code != 502 || !strings.Contains(body, "upstream_tls") || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", flaw, code, body)
		}
	}
}

// TestAbsoluteForm: plain http goes to an upstream proxy in absolute form, byte
// for byte, with its password, once Check has let the name through; no_proxy is
// dialled directly.
func TestAbsoluteForm(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**", "GET bad.test/**", "GET direct.test/**")
	l := h.listen()
	defer l.Close()
	asked := make(chan *http.Request, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					asked <- req
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nproxied")
				}
			}()
		}
	}()
	policy := h.policy([]any{"GET ok.test/**", "GET bad.test/**", "GET direct.test/**"})
	policy.UpstreamProxy = &proxy.UpstreamProxy{
		URL:     &url.URL{Scheme: "http", Host: l.Addr().String(), User: url.UserPassword("u", "p")},
		NoProxy: []string{"direct.test"},
		Check: func(_ context.Context, addr string) error {
			if strings.HasPrefix(addr, "bad.test:") {
				return refusal("private_address")
			}
			return nil
		},
	}
	h.server.SetPolicy(policy)
	p := proxytest.NewPeer(h.dial(h.proxyAddr))
	defer p.Close()
	for _, target := range []string{"/a|b?c", "//x/y"} {
		p.Send([]byte("GET http://ok.test" + target + " HTTP/1.1\r\nHost: ok.test\r\n\r\n"))
		select {
		case r := <-asked:
			if r.RequestURI != "http://ok.test"+target || r.Host != "ok.test" || r.Header.Get("Proxy-Authorization") != "Basic dTpw" {
				t.Errorf("the proxy was asked %q for %q: %v", r.RequestURI, r.Host, r.Header)
			}
		case <-time.After(3 * time.Second):
			t.Fatal("the proxy was not asked")
		}
	}
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	for u, want := range map[string]string{"http://bad.test/": "private_address", "https://bad.test:443/": "private_address", "http://direct.test/": "ok"} {
		if _, body := fetch(t, client, u); !strings.Contains(body, want) {
			t.Errorf("%s: %s", u, body)
		}
	}
}

// refusal is an error with a reason.
type refusal string

func (r refusal) Error() string  { return "refusing: " + string(r) }
func (r refusal) Reason() string { return string(r) }

// TestSOCKS: a SOCKS5 proxy is sent the name, and carries both schemes.
func TestSOCKS(t *testing.T) {
	h, site := newSiteHouse(t, "GET ok.test/**")
	l := h.listen()
	defer l.Close()
	asked := make(chan string, 8)
	go serveSOCKS(l, site, asked)
	policy := h.policy([]any{"GET ok.test/**"})
	policy.UpstreamProxy = &proxy.UpstreamProxy{URL: &url.URL{Scheme: "socks5", Host: l.Addr().String()}}
	h.server.SetPolicy(policy)
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	for _, u := range []string{"https://ok.test/", "http://ok.test/"} {
		if code, body := fetch(t, client, u); code != 200 || body != "ok" {
			t.Errorf("%s: %d %s", u, code, body)
		}
	}
	if a, b := <-asked, <-asked; a != "ok.test:443" || b != "ok.test:80" {
		t.Errorf("the proxy was asked %s and %s", a, b)
	}
	l.Close()
	h.server.SetPolicy(policy)
	if code, body := fetch(t, client, "https://ok.test/"); code != 502 || !strings.Contains(body, `"connect"`) {
		t.Errorf("a proxy that is gone: %d %s", code, body)
	}
}

func serveSOCKS(l net.Listener, site *proxytest.Site, asked chan<- string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 262)
			if _, err := io.ReadFull(c, b[:2]); err != nil {
				return
			}
			io.ReadFull(c, b[:b[1]])
			c.Write([]byte{5, 0})
			io.ReadFull(c, b[:5]) // version, CONNECT, 0, domain name, its length
			n := int(b[4])
			io.ReadFull(c, b[:n+2])
			addr := fmt.Sprintf("%s:%d", b[:n], int(b[n])<<8|int(b[n+1]))
			asked <- addr
			far, err := net.Dial("tcp", site.Address(addr))
			if err != nil {
				return
			}
			defer far.Close()
			c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
			go func() { io.Copy(far, c); far.Close() }()
			io.Copy(c, far)
		}()
	}
}

// TestNothingIsReachedWithoutPolicy: the zero policy refuses.
func TestNothingIsReachedWithoutPolicy(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**")
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	bare := &proxy.Policy{}
	h.server.SetPolicy(bare)
	if code, body := fetch(t, client, "http://ok.test/"); code != 403 || !strings.Contains(body, "no_rule") {
		t.Errorf("without rules: %d %s", code, body)
	}
	h.server.SetPolicy(&proxy.Policy{Rules: h.rules, Broker: h.broker})
	if code, body := fetch(t, client, "http://ok.test/"); code != 502 || !strings.Contains(body, `"connect"`) {
		t.Errorf("without a dialler: %d %s", code, body)
	}
	whole := h.policy([]any{"GET ok.test/**", "TRACE ok.test/**"})
	whole.Broker = nil
	h.server.SetPolicy(whole)
	if code, body := fetch(t, client, "http://ok.test/"); code != 500 || !strings.Contains(body, `"internal"`) {
		t.Errorf("without a broker: %d %s", code, body)
	}
	req, err := http.NewRequestWithContext(t.Context(), "TRACE", "http://ok.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Max-Forwards", "0")
	if resp, err := client.Do(req); err != nil || resp.StatusCode != 500 {
		t.Errorf("answered here without a broker: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	if list := h.sink.wait(audit.KindRequest, 4, time.Second); len(list) != 4 {
		t.Errorf("records %+v", list)
	}
	if _, err := proxy.New(proxy.Config{}); err == nil {
		t.Error("a proxy without issuer and sink was built")
	}
}
