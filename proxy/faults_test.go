package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
	"github.com/egressd/egressd/proxy"
)

// TestProxyAuth: a client without the token gets a 407 that it can answer on
// the same connection (faults C7, C8).
func TestProxyAuth(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**")
	h.restart(func(c *proxy.Config) { c.Token = "s3cret-token" })
	c := h.dial(h.proxyAddr)
	r := bufio.NewReader(c)
	ask := func(method, target, auth string) *http.Response {
		c.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: ok.test:443\r\n%s\r\n", method, target, auth)
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s %s: %v", method, target, err)
		}
		if resp.StatusCode != 200 {
			io.Copy(io.Discard, resp.Body)
		}
		return resp
	}
	for _, auth := range []string{"", "Proxy-Authorization: Basic eDp5\r\n", "Proxy-Authorization: Bearer other\r\n"} {
		resp := ask("CONNECT", "ok.test:443", auth)
		if resp.StatusCode != 407 || !strings.HasPrefix(resp.Header.Get("Proxy-Authenticate"), "Basic ") || resp.Close {
			t.Errorf("with %q: %s, %v, close %v", auth, resp.Status, resp.Header, resp.Close)
		}
	}
	// user egressd or any: the token is the password.
	if resp := ask("CONNECT", "ok.test:443", "Proxy-Authorization: Basic eDpzM2NyZXQtdG9rZW4=\r\n"); resp.StatusCode != 200 {
		t.Errorf("with the token: %s", resp.Status)
	}
	for _, rec := range h.sink.of(audit.KindRequest) {
		if rec.Reason != "proxy_auth" || rec.Status != 407 || rec.Verdict != "deny" {
			t.Errorf("record %+v", rec)
		}
	}
	if n := len(h.sink.of(audit.KindRequest)); n != 3 {
		t.Errorf("%d records of the three that were refused", n)
	}
}

// TestUnrecordableIsRefused: without room for its record a request does not
// leave.
func TestUnrecordableIsRefused(t *testing.T) {
	h, site := newSiteHouse(t, "GET ok.test/**", "CONNECT db.test:5432")
	h.sink.full.Store(true)
	for name, d := range doors(t, h) {
		resp, err := get(t.Context(), d.client, d.scheme+"://ok.test/")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), `"audit_unavailable"`) {
			t.Errorf("%s: %s %v %s", name, resp.Status, resp.Header, body)
		}
	}
	if _, err := h.explicit().Dial(t.Context(), "db.test:5432"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a tunnel: %v, want 503", err)
	}
	if n := site.Served(); n != 0 {
		t.Errorf("%d requests reached the origin", n)
	}
}

// recordsConn splits the first TLS record it is given into two (fault T20).
type recordsConn struct {
	net.Conn
	done bool
}

func (c *recordsConn) Write(b []byte) (int, error) {
	if c.done || len(b) < 20 {
		return c.Conn.Write(b)
	}
	c.done = true
	n := int(b[3])<<8 | int(b[4])
	first := 7
	out := append([]byte{b[0], b[1], b[2], 0, byte(first)}, b[5:5+first]...)
	out = append(out, b[0], b[1], b[2], byte((n-first)>>8), byte(n-first))
	out = append(out, b[5+first:]...)
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// TestHelloInTwoRecords: a large hello, with the post-quantum share, spread
// over two records.
func TestHelloInTwoRecords(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**")
	for name, trust := range map[string]proxytest.Trust{"tunnel": h.explicit(), "captured": h.captured("ok.test", 443)} {
		c, err := trust.Dial(t.Context(), "ok.test:443")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		client := tls.Client(&recordsConn{Conn: c}, &tls.Config{
			ServerName: "ok.test", RootCAs: trust.Roots,
			CurvePreferences: []tls.CurveID{tls.X25519MLKEM768, tls.X25519},
		})
		client.SetDeadline(time.Now().Add(10 * time.Second))
		if err := client.Handshake(); err != nil {
			t.Errorf("%s: handshake: %v", name, err)
			continue
		}
		fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %v, %v", name, resp, err)
		}
	}
}

// TestUpstreamProxy: origins are reached through another proxy, one that
// answers CONNECT in HTTP/1.0 too, and the leaf is the target's (O17, T27).
func TestUpstreamProxy(t *testing.T) {
	for _, version := range []string{"HTTP/1.0", "HTTP/1.1"} {
		h, site := newSiteHouse(t, "GET ok.test/**")
		l := h.listen()
		defer l.Close()
		asked := make(chan string, 8)
		go serveUpstreamProxy(l, version, site, asked)
		policy := h.policy([]any{"GET ok.test/**"})
		policy.UpstreamProxy = &proxy.UpstreamProxy{URL: &url.URL{Scheme: "http", Host: l.Addr().String()}}
		h.server.SetPolicy(policy)
		client := h.explicit().HTTP()
		if code, body := fetch(t, client, "https://ok.test/"); code != 200 || body != "ok" {
			t.Errorf("%s: %d %q", version, code, body)
		}
		select {
		case line := <-asked:
			if !strings.HasPrefix(line, "CONNECT ok.test:443 ") {
				t.Errorf("%s: the proxy was asked %q", version, line)
			}
		case <-time.After(time.Second):
			t.Errorf("%s: the proxy was not asked", version)
		}
		client.CloseIdleConnections()
	}
}

func serveUpstreamProxy(l net.Listener, version string, site *proxytest.Site, asked chan<- string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r := bufio.NewReader(c)
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			asked <- req.Method + " " + req.RequestURI + " "
			far, err := net.Dial("tcp", site.Address(req.RequestURI))
			if err != nil {
				return
			}
			defer far.Close()
			fmt.Fprintf(c, "%s 200 OK\r\n\r\n", version)
			go func() { io.Copy(far, r); far.Close() }()
			io.Copy(c, far)
		}()
	}
}

// TestLearn: what no rule knows goes through and is recorded as learned; a deny
// rule denies all the same.
func TestLearn(t *testing.T) {
	h, _ := newSiteHouse(t)
	policy := h.policy([]any{"!* ok.test/secret"})
	policy.Learn = true
	h.server.SetPolicy(policy)
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	for _, u := range []string{"https://ok.test/", "http://new.test/", "https://new.test:8443/"} {
		if code, body := fetch(t, client, u); code != 200 {
			t.Errorf("%s: %d %s", u, code, body)
		}
	}
	if code, body := fetch(t, client, "https://ok.test/secret"); code != 403 || !strings.Contains(body, "deny_rule") {
		t.Errorf("a denied path: %d %s", code, body)
	}
	learned := 0
	for _, r := range h.sink.wait(audit.KindRequest, 4, 2*time.Second) {
		if r.Reason == "learned" && r.Verdict == "allow" {
			learned++
		}
	}
	if learned != 3 {
		t.Errorf("%d records say learned, want 3", learned)
	}
}

// TestRefusedUpgradeIsRecorded: an origin that answers 403 to an upgrade leaves
// a record with that status (fault A11).
func TestRefusedUpgradeIsRecorded(t *testing.T) {
	h := newHouse(t, []any{"GET ok.test/**"}, nil)
	h.origin.Scripts = []proxytest.Script{{{On: "body", Send: "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"}}}
	p := proxytest.NewPeer(h.dial(h.proxyAddr))
	defer p.Close()
	p.Send([]byte("GET http://ok.test/s HTTP/1.1\r\nHost: ok.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	list := h.sink.wait(audit.KindRequest, 1, 5*time.Second)
	if len(list) != 1 || list[0].Status != 403 || list[0].Verdict != "allow" || list[0].BytesIn != 2 {
		t.Errorf("records %+v", list)
	}
}

// TestRebinding: a name that turns private between two connections is judged at
// each dial, also when the first connection was kept.
func TestRebinding(t *testing.T) {
	h := newHouse(t, []any{"GET ok.test/**"}, nil)
	h.resolver.Answers = map[string][][]string{"ok.test": {{proxytest.PublicAddr}, {"169.254.169.254"}}}
	closing := proxytest.Script{{On: "body", Send: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", Close: true}}
	h.origin.Scripts = []proxytest.Script{closing, closing}
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	if code, _ := fetch(t, client, "https://ok.test/"); code != 200 {
		t.Errorf("the first dial: %d", code)
	}
	code, body := fetch(t, client, "https://ok.test/")
	for _, word := range []string{`"code":"private_address"`, "egress_allow_private_destinations", "upstream.resolve", "}\n"} {
		if code != 403 || !strings.Contains(body, word) {
			t.Errorf("the second dial: %d %s, without %q", code, body, word)
		}
	}
	for _, d := range h.origin.Seen().Dialled {
		if d.Addr() != netip.MustParseAddr(proxytest.PublicAddr) {
			t.Errorf("%v was dialled", d)
		}
	}
}

// TestOriginThatNeverAnswers: the head of an answer has its time-out, 504.
func TestOriginThatNeverAnswers(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**")
	policy := h.policy([]any{"GET ok.test/**"})
	policy.Timeouts.ResponseHeader = 300 * time.Millisecond
	h.server.SetPolicy(policy)
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	if code, body := fetch(t, client, "https://ok.test/slow?ms=60000"); code != 504 || !strings.Contains(body, `"timeout"`) {
		t.Errorf("%d %s", code, body)
	}
}

// TestDialErrors: each kind of failure has its reason, and no text of it names
// what the client must not learn.
func TestDialErrors(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**")
	for _, c := range []struct {
		err    error
		reason string
		status int
	}{
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, "connect", 502},
		{context.DeadlineExceeded, "timeout", 504},
	} {
		h.kernel = func(context.Context, string, string) (net.Conn, error) { return nil, c.err }
		client := h.explicit().HTTP()
		if code, body := fetch(t, client, "https://ok.test/"); code != c.status || !strings.Contains(body, `"`+c.reason+`"`) {
			t.Errorf("%v: %d %s", c.err, code, body)
		}
		client.CloseIdleConnections()
	}
	h.resolver.Unresolved = true
	if code, body := fetch(t, h.explicit().HTTP(), "https://ok.test/"); code != 502 || !strings.Contains(body, `"dns"`) {
		t.Errorf("an unknown name: %d %s", code, body)
	}
}
