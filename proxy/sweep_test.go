package proxy_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
	"github.com/egressd/egressd/netguard"
	"github.com/egressd/egressd/proxy"
	"github.com/egressd/egressd/rules"
)

// countedRules counts how often rules are asked about what runs already.
type countedRules struct {
	*rules.Set
	again atomic.Int64
}

func (c *countedRules) Judge(at time.Time, charge bool, method, scheme, host string, port int, target string, header map[string][]string, length int64) (string, int64, func(), error) {
	if !charge {
		c.again.Add(1)
	}
	return c.Set.Judge(at, charge, method, scheme, host, port, target, header, length)
}

// TestRunningRequestsCostNothing: rules that cannot answer otherwise are not
// asked again and again about what runs, or a client with thousands of requests
// with long paths keeps a processor busy. A swap asks once.
func TestRunningRequestsCostNothing(t *testing.T) {
	h := newHouse(t, nil, casePolicy{})
	h.origin.Scripts = []proxytest.Script{{{On: "body", Send: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"}}}
	enforce := func(list ...any) *countedRules {
		policy := h.policy(list)
		c := &countedRules{Set: h.rules}
		policy.Rules = c
		h.server.SetPolicy(policy)
		return c
	}
	first := enforce("GET ok.test/**", map[string]any{"rule": "GET ok.test/**", "until": "2999-01-01T00:00:00Z"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://ok.test/", nil)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	time.Sleep(2200 * time.Millisecond)
	if n := first.again.Load(); n != 0 {
		t.Errorf("the rules were asked %d times about a request that runs", n)
	}
	second := enforce("GET ok.test/**")
	time.Sleep(1200 * time.Millisecond)
	if n := second.again.Load(); n != 1 {
		t.Errorf("new rules were asked %d times, want 1", n)
	}
	if n := len(h.sink.of(audit.KindRequestOpen)); n != 1 {
		t.Errorf("%d records of open requests", n)
	}
}

// TestOwnAnswersAreRecorded: an answer of ours that cannot be recorded is not
// given.
func TestOwnAnswersAreRecorded(t *testing.T) {
	h := newHouse(t, []any{"OPTIONS ok.test/**"}, casePolicy{})
	h.sink.full.Store(true)
	for _, in := range []string{
		"GET /policy HTTP/1.1\r\nHost: egressd.internal\r\nConnection: close\r\n\r\n",
		"OPTIONS / HTTP/1.1\r\nHost: ok.test\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n",
	} {
		name := "egressd.internal"
		if in[0] == 'O' {
			name = "ok.test"
		}
		p := proxytest.NewPeer(h.dial(h.capture(netip.AddrPortFrom(h.table.Addr(name), 80))))
		p.Send([]byte(in))
		p.Closed(3 * time.Second)
		if got, _ := p.Got(); string(got[:min(len(got), 13)]) != "HTTP/1.1 503 " {
			t.Errorf("the client got %q", got)
		}
		p.Close()
	}
}

// TestClosedAddresses: a swap that closes an address breaks off what runs over
// it, and no other; one that comes between the judgement and the dial as well.
func TestClosedAddresses(t *testing.T) {
	h := newHouse(t, nil, casePolicy{})
	h.origin.Raw = true
	list := []any{"CONNECT db.test:5432", "CONNECT gone.test:5432"}
	h.server.SetPolicy(h.policy(list))
	kept, err := h.explicit().Dial(t.Context(), "db.test:5432")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	gone, err := h.explicit().Dial(t.Context(), "gone.test:5432")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	closed := h.policy(list)
	closed.Holds = func(addr, remote string) error {
		if _, err := netip.ParseAddrPort(remote); err != nil || addr == "gone.test:5432" {
			return &netguard.Refusal{}
		}
		return nil
	}
	h.server.SetPolicy(closed)
	gone.SetReadDeadline(time.Now().Add(3 * time.Second))
	if _, err := gone.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the tunnel goes on: %v", err)
	}
	list2 := h.sink.wait(audit.KindRequest, 1, 3*time.Second)
	if len(list2) != 1 || list2[0].Reason != "revoked" || list2[0].Host != "gone.test" {
		t.Errorf("records %+v", list2)
	}
	kept.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := kept.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the other tunnel: %v", err)
	}

	h.server.SetPolicy(h.policy(list)) // dials on, and is swapped before it is there
	h.kernel = func(ctx context.Context, network, addr string) (net.Conn, error) {
		h.server.SetPolicy(closed)
		return h.origin.Dial(ctx, network, addr)
	}
	late, err := h.explicit().Dial(t.Context(), "gone.test:5432")
	if err == nil {
		defer late.Close()
		late.SetDeadline(time.Now().Add(3 * time.Second))
		late.Write([]byte("late"))
		late.Read(make([]byte, 1))
	}
	list2 = h.sink.wait(audit.KindRequest, 2, 3*time.Second)
	if len(list2) != 2 || list2[1].Reason != "revoked" || list2[1].BytesOut != 0 {
		t.Errorf("records %+v", list2)
	}
}

// stuckSink has no place for the records of what is open, and says so late.
type stuckSink struct {
	*memorySink
	stuck atomic.Bool
	tried atomic.Int64
}

func (s *stuckSink) Append(records ...*audit.Record) error {
	if r := records[0]; r.Kind == audit.KindRequestOpen && s.stuck.Load() {
		s.tried.Add(1)
		time.Sleep(300 * time.Millisecond)
		return &audit.Unavailable{Err: errors.New("no room")}
	}
	return s.memorySink.Append(records...)
}

// TestEndsThoughRecordsWait: what a rule's end breaks off does not wait for
// records that find no place, and those are written once there is one.
func TestEndsThoughRecordsWait(t *testing.T) {
	h := newHouse(t, []any{"GET ok.test/**"}, casePolicy{})
	sink := &stuckSink{memorySink: h.sink}
	sink.stuck.Store(true)
	h.restart(func(c *proxy.Config) { c.Sink = sink })
	for range 20 {
		h.origin.Scripts = append(h.origin.Scripts, proxytest.Script{{On: "body", Send: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"}})
	}
	until := time.Now().Add(2500 * time.Millisecond).UTC()
	h.server.SetPolicy(h.policy([]any{"GET ok.test/a/**", map[string]any{"rule": "GET ok.test/b", "until": until.Format(time.RFC3339Nano)}}))
	var last *proxytest.Peer
	for i := range 20 {
		path := "/a/"
		if i == 19 {
			path = "/b"
		}
		last = proxytest.NewPeer(h.dial(h.proxyAddr))
		last.Send([]byte("GET http://ok.test" + path + " HTTP/1.1\r\nHost: ok.test\r\n\r\n"))
	}
	if !last.Closed(5*time.Second) || time.Since(until) > 2*time.Second || time.Now().Before(until) {
		t.Errorf("ended %v behind its rule", time.Since(until))
	}
	sink.stuck.Store(false)
	if list := h.sink.wait(audit.KindRequestOpen, 19, 3*time.Second); len(list) < 19 {
		t.Errorf("%d records of what is open, %d tried", len(list), sink.tried.Load())
	}
}
