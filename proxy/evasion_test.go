package proxy_test

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
)

// TestRateOfBrokenBodies: a request that reached its origin has used up its
// rate, however its body ends. Else a body that is broken on purpose makes every
// request a free one.
func TestRateOfBrokenBodies(t *testing.T) {
	for name, rest := range map[string]string{
		"a chunk that is none":    "zz\r\n",
		"a body over its limit":   "40\r\n" + strings.Repeat("a", 64) + "\r\n",
		"a client that goes away": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, []any{map[string]any{"rule": "POST ok.test/**", "rate": "2/h", "max_request_bytes": 10}}, casePolicy{})
			for i := range 4 {
				p := proxytest.NewPeer(h.dial(h.proxyAddr))
				p.Send(fmt.Appendf(nil, "POST http://ok.test/%d HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", i))
				if i < 2 {
					for end := time.Now().Add(3 * time.Second); len(h.origin.Seen().Bytes) <= i && time.Now().Before(end); {
						time.Sleep(time.Millisecond)
					}
				}
				p.Send([]byte(rest))
				if rest != "" {
					h.sink.wait(audit.KindRequest, i+1, 3*time.Second)
				}
				p.Close()
				h.sink.wait(audit.KindRequest, i+1, 3*time.Second)
			}
			if n := len(h.origin.Seen().Bytes); n != 2 {
				t.Errorf("the origin saw %d requests at a rate of 2", n)
			}
			list := h.sink.of(audit.KindRequest)
			if len(list) != 4 || list[3].Reason != "rate_limited" {
				t.Errorf("records %+v", list)
			}
		})
	}
}

// TestTrailersOfStreams: trailers of HTTP/2 that some servers merge into the
// head go on no more than those of HTTP/1, and are not announced.
func TestTrailersOfStreams(t *testing.T) {
	h := newHouse(t, []any{"POST ok.test/**"}, casePolicy{})
	f, err := proxytest.NewFrames(h.tunnelTLS("ok.test:443", "h2"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bad := []string{"x-http-method-override", "x_http_method", "x-original-url", "x-rewrite-url", "forwarded", "x_forwarded_host"}
	s := proxytest.Stream{Body: "hello", Headers: [][2]proxytest.Bytes{{":method", "POST"}, {":scheme", "https"}, {":authority", "ok.test"}, {":path", "/"}}}
	for _, name := range append(bad, "x-sum") {
		s.Headers = append(s.Headers, [2]proxytest.Bytes{"trailer", proxytest.Bytes(name)})
		s.Trailers = append(s.Trailers, [2]proxytest.Bytes{proxytest.Bytes(name), "/admin"})
	}
	f.Open(s)
	if a := f.Wait(3 * time.Second); len(a) != 1 || a[0].Status != 200 {
		t.Fatalf("answers %+v", a)
	}
	m := h.origin.Seen().Requests[0]
	if len(m.Trailers) != 1 || m.Trailers[0].Name != "X-Sum" || fmt.Sprint(proxytest.Values(m.Fields, "Trailer")) != "[X-Sum]" {
		t.Errorf("the origin got %+v", m)
	}
}

// TestLearnHeedsDenyRules: what nobody looks into is not let through to a host
// and port that a deny rule speaks of, nor to what is no host.
func TestLearnHeedsDenyRules(t *testing.T) {
	for name, tt := range map[string]struct{ target, bytes string }{
		"an empty line before the request": {"ok.test:80", "\r\nGET /denied HTTP/1.1\r\nHost: ok.test\r\n\r\n"},
		"a method in small letters":        {"ok.test:80", "get /denied HTTP/1.1\r\nHost: ok.test\r\n\r\n"},
		"no HTTP to a denied host":         {"gone.test:443", "\x00"},
		"a tunnel that is denied":          {"shut.test:443", "\x00"},
		"the proxy's own name":             {"egressd.internal:25", "\x00"},
		"a name below it":                  {"a.egressd.internal:443", "\x00"},
		"the shared address":               {"198.18.0.1:443", "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, nil, casePolicy{"sandbox": {"egress_allow_private_destinations": true}})
			policy := h.policy([]any{"!* ok.test/denied", "!* gone.test/**", "!CONNECT shut.test:443"})
			policy.Learn = true
			h.server.SetPolicy(policy)
			h.origin.Raw = true
			p := proxytest.NewPeer(h.dial(h.proxyAddr))
			defer p.Close()
			p.Send([]byte("CONNECT " + tt.target + " HTTP/1.1\r\nHost: x\r\n\r\n" + tt.bytes))
			list := h.sink.wait(audit.KindRequest, 1, 3*time.Second)
			if len(list) != 1 || list[0].Verdict != "deny" {
				t.Errorf("records %+v", list)
			}
			if s := h.origin.Seen(); len(s.Dialled) != 0 || len(h.resolver.Asked()) != 0 {
				t.Errorf("dialled %v, looked up %v", s.Dialled, h.resolver.Asked())
			}
		})
	}
}

// TestSharedAddressAsHost: the address that names no host is no host of a rule,
// also where the connection was made to it.
func TestSharedAddressAsHost(t *testing.T) {
	h := newHouse(t, []any{"GET 198.18.0.1/**"}, casePolicy{"sandbox": {"egress_allow_private_destinations": true}})
	p := proxytest.NewPeer(h.dial(h.capture(netip.MustParseAddrPort("198.18.0.1:80"))))
	defer p.Close()
	p.Send([]byte("GET / HTTP/1.1\r\nHost: 198.18.0.1\r\n\r\n"))
	list := h.sink.wait(audit.KindRequest, 1, 3*time.Second)
	if len(list) != 1 || list[0].Reason != "no_rule" || len(h.origin.Seen().Dialled) != 0 {
		t.Errorf("records %+v, dialled %v", list, h.origin.Seen().Dialled)
	}
}

// TestTunnelHidesNoServerName: a ClientHello that only the origin would find
// does not reach it.
func TestTunnelHidesNoServerName(t *testing.T) {
	for name, first := range map[string]string{
		"an empty record": "\x16\x03\x01\x00\x00",
		"a warning":       "\x15\x03\x01\x00\x02\x01\x5a",
		"a long hello":    "\x16\x03\x01\x40\x00\x01\x01\x40\x00\x03\x03",
		"a broken hello":  "\x16\x03\x01\x00\x2e\x01\x00\x00\x2a\x03\x03" + strings.Repeat("\x00", 36) + "\x00\x09\x00\x00",
		"a record of its own version, and another name": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, []any{"CONNECT db.test:5432"}, casePolicy{})
			h.origin.Raw = true
			c := h.dial(h.proxyAddr)
			io.WriteString(c, "CONNECT db.test:5432 HTTP/1.1\r\nHost: x\r\n\r\n")
			hello := helloOf(t, "evil.test")
			if first == "" {
				hello[1] = 4
			}
			c.Write(append([]byte(first), hello...))
			io.ReadAll(c)
			list := h.sink.wait(audit.KindRequest, 1, 3*time.Second)
			if len(list) != 1 || list[0].Verdict != "deny" || list[0].BytesOut != 0 {
				t.Errorf("records %+v", list)
			}
			if s := h.origin.Seen(); len(s.Wire) != 1 || s.Wire[0] != "" {
				t.Errorf("the origin got %q", s.Wire)
			}
		})
	}
}
