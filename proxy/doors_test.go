package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
)

// onlyConnection is the one record of kind connection.
func onlyConnection(t *testing.T, h *house) audit.Record {
	t.Helper()
	list := h.sink.wait(audit.KindConnection, 1, 20*time.Second)
	if len(list) != 1 {
		t.Fatalf("%d records of connections, want 1: %+v", len(list), list)
	}
	return list[0]
}

// TestConnectionsThatBringNothing: each has one record that says why.
func TestConnectionsThatBringNothing(t *testing.T) {
	fast := casePolicy{"limits": {"client_hello_timeout": "200ms", "header_timeout": "200ms"}}
	// Those that must not be late on a busy machine have more time.
	slow := casePolicy{"limits": {"client_hello_timeout": "10s", "header_timeout": "10s"}}
	connect := "CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n"
	for _, tt := range []struct {
		name, reason string
		act          func(h *house, c net.Conn)
	}{
		{"silence on the proxy port", "timeout", func(_ *house, c net.Conn) { io.ReadAll(c) }},
		{"closed at once", "client_gone", func(_ *house, c net.Conn) { c.Close() }},
		{"silence in a tunnel", "timeout", func(_ *house, c net.Conn) { io.WriteString(c, connect); io.ReadAll(c) }},
		{"half a hello", "timeout", func(_ *house, c net.Conn) { io.WriteString(c, connect+"\x16\x03\x01\x02"); io.ReadAll(c) }},
		{"half a hello, then gone", "client_gone", func(_ *house, c net.Conn) {
			io.WriteString(c, connect+"\x16\x03\x01\x02")
			c.(*net.TCPConn).CloseWrite()
			io.ReadAll(c)
		}},
		{"a hello that is none", "protocol", func(_ *house, c net.Conn) {
			io.WriteString(c, connect+"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
			io.ReadAll(c)
		}},
		{"a client that trusts nobody", "protocol", func(_ *house, c net.Conn) {
			io.WriteString(c, connect)
			io.ReadFull(c, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n")))
			tls.Client(c, &tls.Config{ServerName: "ok.test"}).Handshake()
			c.Close()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			limits := slow
			if tt.reason == "timeout" {
				limits = fast
			}
			h := newHouse(t, []any{"GET ok.test/**"}, limits)
			tt.act(h, h.dial(h.proxyAddr))
			r := onlyConnection(t, h)
			if r.Reason != tt.reason || r.Verdict != verdictOf(tt.reason) || r.Capture != "explicit" {
				t.Errorf("record %+v, want %s", r, tt.reason)
			}
			if n := len(h.sink.of(audit.KindRequest)); n != 0 {
				t.Errorf("%d records of requests", n)
			}
		})
	}
}

// TestCapturedOverTheCap: TLS is closed, plain http is told to come again.
func TestCapturedOverTheCap(t *testing.T) {
	h := newHouse(t, []any{"GET ok.test/**"}, casePolicy{"limits": {"max_connections": 1}})
	addr := h.capture(netip.AddrPortFrom(h.table.Addr("ok.test"), 443))
	h.open(1, h.proxyAddr)
	time.Sleep(50 * time.Millisecond)
	c := h.dial(addr)
	if err := tls.Client(c, &tls.Config{ServerName: "ok.test", RootCAs: h.trust()}).Handshake(); err == nil {
		t.Error("a handshake over the cap succeeded")
	}
	c.Close()
	if r := onlyConnection(t, h); r.Reason != "overloaded" || r.Verdict != "deny" || r.Capture != "transparent" {
		t.Errorf("record %+v", r)
	}
	p := proxytest.NewPeer(h.dial(addr))
	defer p.Close()
	p.Send([]byte("GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"))
	if !p.Closed(3 * time.Second) {
		t.Error("a plain connection over the cap stays open")
	}
	if got, _ := p.Got(); !bytes.HasPrefix(got, []byte("HTTP/1.1 503 ")) {
		t.Errorf("a plain connection over the cap got %q", got)
	}
}

// TestCapturedTunnel: a captured connection to a host and port of a CONNECT
// rule is a tunnel, and one whose server name is another's is closed.
func TestCapturedTunnel(t *testing.T) {
	h := newHouse(t, []any{"CONNECT db.test:5432"}, casePolicy{})
	h.origin.Raw = true
	h.origin.Scripts = []proxytest.Script{{{On: "open", Echo: true}}, {{On: "open", Echo: true}}}
	addr := h.capture(netip.AddrPortFrom(h.table.Addr("db.test"), 5432))
	c := h.dial(addr)
	io.WriteString(c, "ping")
	b := make([]byte, 4)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "ping" {
		t.Fatalf("the tunnel gave %q, %v", b, err)
	}
	if open := h.sink.wait(audit.KindRequestOpen, 1, time.Second); len(open) != 1 || !open[0].Tunnel || open[0].Rule != "CONNECT db.test:5432" {
		t.Errorf("open records %+v", open)
	}
	c.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(c); err != nil || len(rest) != 0 {
		t.Errorf("the end of the tunnel: %q, %v", rest, err)
	}
	list := h.sink.wait(audit.KindRequest, 1, 3*time.Second)
	if len(list) != 1 || list[0].BytesOut != 4 || list[0].BytesIn != 4 || list[0].Verdict != "allow" || list[0].Capture != "transparent" {
		t.Errorf("records %+v", list)
	}

	tls.Client(h.dial(addr), &tls.Config{ServerName: "other.test"}).Handshake()
	list = h.sink.wait(audit.KindRequest, 2, 3*time.Second)
	if len(list) != 2 || list[1].Reason != "authority_mismatch" || list[1].Verdict != "deny" || list[1].BytesOut != 0 {
		t.Errorf("records %+v", list)
	}
	if n := len(h.sink.of(audit.KindConnection)); n != 0 {
		t.Errorf("%d records of connections", n)
	}
}

// TestUnnamedPoolAddress: an address of the pool that nobody was given has no
// rule, also where it is dialled.
func TestUnnamedPoolAddress(t *testing.T) {
	h := newHouse(t, []any{"* */**", "GET 198.18.77.7/**"}, casePolicy{})
	p := proxytest.NewPeer(h.dial(h.capture(netip.MustParseAddrPort("198.18.77.7:80"))))
	defer p.Close()
	p.Send([]byte("GET / HTTP/1.1\r\nHost: 198.18.77.7\r\n\r\nGET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"))
	list := h.sink.wait(audit.KindRequest, 2, 3*time.Second)
	if len(list) != 2 || list[0].Reason != "no_rule" || list[1].Reason != "authority_mismatch" {
		t.Errorf("records %+v", list)
	}
	if n := h.resolver.Asked(); len(n) != 0 {
		t.Errorf("looked up %v", n)
	}
}

// TestSharedAddressWithoutServerName: TLS to the address that names no host,
// without a server name, is closed (no_rule).
func TestSharedAddressWithoutServerName(t *testing.T) {
	h := newHouse(t, []any{"* ok.test/**"}, casePolicy{})
	c := h.dial(h.capture(netip.AddrPortFrom(h.table.Addr("unknown.test"), 443)))
	client := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	client.Handshake()
	if n, err := client.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes", n)
	}
	if r := onlyConnection(t, h); r.Reason != "no_rule" || r.Verdict != "deny" {
		t.Errorf("record %+v", r)
	}
}

// TestBodyOverTheLimitWhileStreaming: a body without a length is cut off at the
// limit; nothing above it goes out, and the client reads 413.
func TestBodyOverTheLimitWhileStreaming(t *testing.T) {
	h := newHouse(t, []any{map[string]any{"rule": "POST ok.test/**", "max_request_bytes": 10}}, casePolicy{})
	p := proxytest.NewPeer(h.dial(h.proxyAddr))
	defer p.Close()
	p.Send([]byte("POST http://ok.test/x HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"))
	time.Sleep(100 * time.Millisecond)
	p.Send([]byte("6\r\nworld!\r\n"))
	if !p.Closed(3 * time.Second) {
		t.Error("the connection stays open")
	}
	if got, _ := p.Got(); !bytes.HasPrefix(got, []byte("HTTP/1.1 413 ")) || !bytes.Contains(got, []byte("body_too_large")) {
		t.Errorf("the client got %q", got)
	}
	list := h.sink.wait(audit.KindRequest, 1, 3*time.Second)
	if len(list) != 1 || list[0].Status != 413 || list[0].Verdict != "deny" || list[0].BytesOut != 5 {
		t.Errorf("records %+v", list)
	}
}

// TestDeniedBodyThatNeverComes: a connection whose denied upload is never sent
// is closed once it has been idle.
func TestDeniedBodyThatNeverComes(t *testing.T) {
	h := newHouse(t, []any{"GET ok.test/**"}, casePolicy{"limits": {"idle_timeout": "200ms"}})
	p := proxytest.NewPeer(h.dial(h.proxyAddr))
	defer p.Close()
	p.Send([]byte("POST http://ok.test/x HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 5\r\n\r\n"))
	if !p.Closed(3 * time.Second) {
		t.Error("the connection stays open")
	}
	if got, _ := p.Got(); !bytes.HasPrefix(got, []byte("HTTP/1.1 403 ")) || bytes.Count(got, []byte("HTTP/1.1")) != 1 {
		t.Errorf("the client got %q", got)
	}
}

// TestKeptBehindDeniedBodies: a connection goes on behind denied uploads, small
// ones drained, and ends behind one that is too long to drain.
func TestKeptBehindDeniedBodies(t *testing.T) {
	h := newHouse(t, []any{"GET ok.test/**"}, casePolicy{})
	p := proxytest.NewPeer(h.dial(h.proxyAddr))
	defer p.Close()
	answers := func(n int) bool {
		return p.Wait(3*time.Second, func(got []byte, end bool) bool { return end || bytes.Count(got, []byte("HTTP/1.1 403 ")) == n })
	}
	for n := range 50 {
		p.Send([]byte("POST http://ok.test/x HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 5\r\n\r\nhello"))
		if !answers(n + 1) {
			t.Fatalf("no answer to upload %d", n)
		}
		if n%2 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if p.Closed(50 * time.Millisecond) {
		t.Error("the connection was closed")
	}
	p.Send([]byte("POST http://ok.test/x HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 9999999\r\n\r\n"))
	if !answers(51) {
		t.Error("no answer to the long upload")
	}
	p.Send(make([]byte, 1<<20))
	if !p.Closed(3 * time.Second) {
		t.Error("the connection stays open")
	}
	if list := h.sink.of(audit.KindRequest); len(list) != 51 {
		t.Errorf("%d records", len(list))
	}
}

// TestOldClient: a client of HTTP/1.0 gets no chunks and no interim answer.
func TestOldClient(t *testing.T) {
	h := newHouse(t, []any{"GET ok.test/**"}, casePolicy{})
	h.origin.Scripts = []proxytest.Script{{{On: "body", Send: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}}}
	p := proxytest.NewPeer(h.dial(h.proxyAddr))
	defer p.Close()
	p.Send([]byte("GET http://ok.test/x HTTP/1.0\r\nHost: ok.test\r\nConnection: keep-alive\r\n\r\n"))
	if !p.Closed(3 * time.Second) {
		t.Error("the connection stays open")
	}
	got, _ := p.Got()
	head, body, _ := strings.Cut(string(got), "\r\n\r\n")
	if body != "hello" || !strings.Contains(head, " 200 ") || strings.Contains(head, "chunked") {
		t.Errorf("the client got %q", got)
	}
}

// TestHeadOfAStreamOverTheLimit: over HTTP/2 too the limit is a problem
// document and a record.
func TestHeadOfAStreamOverTheLimit(t *testing.T) {
	small := casePolicy{"limits": {"max_header_bytes": 4096}}
	h, _ := newLimitedSiteHouse(t, small, "GET ok.test/**")
	client := h.explicit().HTTP2()
	defer client.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://ok.test/", nil)
	req.Header.Set("X-Big", strings.Repeat("b", 8000))
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 431 || !strings.Contains(resp.Header.Get("Proxy-Status"), "bad_request") {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if list := h.sink.wait(audit.KindRequest, 1, time.Second); len(list) != 1 || list[0].Status != 431 || list[0].Proto != "h2" {
		t.Errorf("records %+v", list)
	}
}

// TestOptionsAtNought is answered here, with a record that allows.
func TestOptionsAtNought(t *testing.T) {
	h := newHouse(t, []any{"OPTIONS ok.test/**"}, casePolicy{})
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), "OPTIONS", "http://ok.test/", nil)
	req.Header.Set("Max-Forwards", "0")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || len(h.origin.Seen().Dialled) != 0 {
		t.Errorf("%d, dialled %v", resp.StatusCode, h.origin.Seen().Dialled)
	}
	if list := h.sink.wait(audit.KindRequest, 1, time.Second); len(list) != 1 || list[0].Verdict != "allow" || list[0].Status != 200 {
		t.Errorf("records %+v", list)
	}
}

// TestLearnServerFirst: under learn a client that waits for its server to speak
// gets its tunnel.
func TestLearnServerFirst(t *testing.T) {
	h := newHouse(t, nil, casePolicy{})
	policy := h.policy(nil)
	policy.Learn = true
	h.server.SetPolicy(policy)
	h.origin.Raw = true
	h.origin.Scripts = []proxytest.Script{{{On: "open", Send: "220 ready\r\n"}}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c, err := h.explicit().Dial(ctx, "mail.test:25")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 11)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "220 ready\r\n" {
		t.Errorf("the tunnel gave %q, %v", b, err)
	}
	c.Close()
	list := h.sink.wait(audit.KindRequest, 1, 3*time.Second)
	if len(list) != 1 || list[0].Reason != "learned" || !list[0].Tunnel || list[0].Host != "mail.test" {
		t.Errorf("records %+v", list)
	}
}
