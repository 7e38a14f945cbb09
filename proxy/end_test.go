package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/egressd/egressd/audit"
)

// within waits for a condition.
func within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// TestClientGoneCancelsOrigin: a request whose client has gone runs at the
// origin for a second at most (fault O6).
func TestClientGoneCancelsOrigin(t *testing.T) {
	h, site := newSiteHouse(t, "GET,POST ok.test/**")
	n := 0
	for name, d := range doors(t, h) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			resp, err := get(ctx, d.client, d.scheme+"://ok.test/slow?ms=60000")
			if err == nil {
				resp.Body.Close()
			}
			failed <- err
		}()
		if !within(5*time.Second, func() bool { return site.Serving() == 1 }) {
			t.Fatalf("%s: the origin got no request", name)
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		n++
		if !within(time.Second, func() bool { return site.Gone() == int64(n) && site.Serving() == 0 }) {
			t.Errorf("%s: the origin still works for a client that has gone", name)
		}
		list := h.sink.wait(audit.KindRequest, n, time.Second)
		if len(list) != n || list[n-1].Reason != "client_gone" || list[n-1].Verdict != "error" {
			t.Errorf("%s: records %+v", name, list)
		}
	}
}

// running opens an endless event stream, a WebSocket and a raw tunnel; each
// function returned waits for the end of one.
func running(t *testing.T, h *house) map[string]func() error {
	t.Helper()
	events, err := get(t.Context(), h.explicit().HTTP(), "https://ok.test/events?ms=20")
	if err != nil {
		t.Fatalf("opening events: %v", err)
	}
	t.Cleanup(func() { events.Body.Close() })
	if _, err := bufio.NewReader(events.Body).ReadString('\n'); err != nil {
		t.Fatalf("reading the first event: %v", err)
	}
	socket, _, err := websocket.Dial(t.Context(), "wss://ok.test/ws", &websocket.DialOptions{HTTPClient: h.explicit().HTTP()})
	if err != nil {
		t.Fatalf("opening WebSocket: %v", err)
	}
	t.Cleanup(func() { socket.CloseNow() })
	tunnel, err := h.explicit().Dial(t.Context(), "db.test:5432")
	if err != nil {
		t.Fatalf("opening tunnel: %v", err)
	}
	t.Cleanup(func() { tunnel.Close() })
	return map[string]func() error{
		"events":    func() error { _, err := io.Copy(io.Discard, events.Body); return err },
		"WebSocket": func() error { _, _, err := socket.Read(t.Context()); return err },
		"tunnel":    func() error { _, err := io.Copy(io.Discard, tunnel); return err },
	}
}

var runningRules = []any{"GET ok.test/**", "CONNECT db.test:5432"}

// TestShutdownWaits: what runs goes on for the grace, then it is closed and
// recorded (fault O1).
func TestShutdownWaits(t *testing.T) {
	h, _ := newSiteHouse(t, runningRules...)
	ends := map[string]chan time.Time{}
	for name, wait := range running(t, h) {
		ended := make(chan time.Time, 1)
		ends[name] = ended
		go func() { wait(); ended <- time.Now() }()
	}
	const grace = 700 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), grace)
	defer cancel()
	begin := time.Now()
	h.server.Shutdown(ctx)
	if took := time.Since(begin); took < grace-50*time.Millisecond || took > grace+3*time.Second {
		t.Errorf("shutdown took %v, the grace is %v", took, grace)
	}
	for name, ended := range ends {
		select {
		case at := <-ended:
			if at.Sub(begin) < grace-50*time.Millisecond {
				t.Errorf("%s was cut off after %v, before the grace", name, at.Sub(begin))
			}
		case <-time.After(3 * time.Second):
			t.Errorf("%s runs on after the shutdown", name)
		}
	}
	if list := h.sink.wait(audit.KindRequest, len(ends), time.Second); len(list) != len(ends) {
		t.Errorf("%d final records, want %d: %+v", len(list), len(ends), list)
	}
	if n := h.sink.held(); n != 0 {
		t.Errorf("%d reservations are left", n)
	}
	if _, err := net.DialTimeout("tcp", h.proxyAddr, time.Second); err == nil {
		t.Error("the listener is still open")
	}
}

// TestShutdownLetsFinish: what ends within the grace ends whole, and shutdown
// does not wait longer.
func TestShutdownLetsFinish(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**")
	type outcome struct {
		name, body string
		err        error
	}
	results := make(chan outcome, 8)
	n := 0
	for name, d := range doors(t, h) {
		resp, err := get(t.Context(), d.client, d.scheme+"://ok.test/drip?n=20&ms=20")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n++
		go func() {
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			results <- outcome{name, string(body), err}
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	begin := time.Now()
	if err := h.server.Shutdown(ctx); err != nil {
		t.Errorf("shutting down: %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("shutdown took %v", took)
	}
	for range n {
		if r := <-results; r.err != nil || !strings.HasSuffix(r.body, "line 20\n") {
			t.Errorf("%s: %v, %q", r.name, r.err, r.body)
		}
	}
}

// TestReloadRevokes: what the new policy forbids is broken off at once and
// recorded as revoked; what it still allows goes on; the next request of a
// kept connection is judged by the new rules (fault O11).
func TestReloadRevokes(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**", "CONNECT db.test:5432", "GET kept.test/**")
	kept, err := get(t.Context(), h.explicit().HTTP(), "https://kept.test/events?ms=20")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Body.Close()
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	if code, _ := fetch(t, client, "https://ok.test/"); code != 200 {
		t.Fatalf("before the reload: %d", code)
	}
	ends := running(t, h)
	begin := time.Now()
	h.server.SetPolicy(h.policy([]any{"GET kept.test/**"}))
	for name, wait := range ends {
		ended := make(chan error, 1)
		go func() { ended <- wait() }()
		select {
		case err := <-ended:
			if name == "events" && err == nil {
				t.Error("events: the broken stream looks complete")
			}
		case <-time.After(3 * time.Second):
			t.Errorf("%s runs on after %v", name, time.Since(begin))
		}
	}
	if code, body := fetch(t, client, "https://ok.test/"); code != 403 || !strings.Contains(body, "no_rule") {
		t.Errorf("the next request of a kept connection: %d %s", code, body)
	}
	lines := bufio.NewReader(kept.Body)
	for range 20 {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Errorf("a stream that is still allowed: %v", err)
			break
		}
	}
	revoked := 0
	for _, r := range h.sink.wait(audit.KindRequest, 5, 2*time.Second) {
		if r.Reason == "revoked" {
			revoked++
			if r.Verdict != "deny" {
				t.Errorf("a revoked record has verdict %q", r.Verdict)
			}
		}
	}
	if revoked != len(ends) {
		t.Errorf("%d records say revoked, want %d", revoked, len(ends))
	}
	open := h.sink.of(audit.KindRequestOpen)
	if len(open) != len(ends)+1 {
		t.Errorf("%d records of kind request_open, want %d", len(open), len(ends)+1)
	}
}

func fetch(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := get(t.Context(), c, url)
	if err != nil {
		t.Errorf("getting %s: %v", url, err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("reading %s: %v", url, err)
	}
	return resp.StatusCode, string(body)
}

// TestShutdownLeavesNothing: no goroutine of the proxy outlives it, whatever
// ran.
func TestShutdownLeavesNothing(t *testing.T) {
	h, _ := newSiteHouse(t, runningRules...)
	for _, d := range doors(t, h) {
		fetch(t, d.client, d.scheme+"://ok.test/")
		fetch(t, d.client, d.scheme+"://evil.test/")
	}
	running(t, h)
	h.dial(h.proxyAddr) // says nothing
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	h.server.Shutdown(ctx)
	var left string
	gone := within(3*time.Second, func() bool {
		all := make([]byte, 4<<20)
		all = all[:runtime.Stack(all, true)]
		left = ""
		for stack := range strings.SplitSeq(string(all), "\n\n") {
			if strings.Contains(stack, "egressd/proxy.") {
				left = stack
			}
		}
		return left == ""
	})
	if !gone {
		t.Errorf("a goroutine is left:\n%s", left)
	}
}

// TestUntilEnds: an allow rule past its time breaks off what runs under it,
// without a reload.
func TestUntilEnds(t *testing.T) {
	until := time.Now().Add(1500 * time.Millisecond).UTC()
	h, _ := newSiteHouse(t, map[string]any{"rule": "GET ok.test/**", "until": until.Format(time.RFC3339Nano)})
	resp, err := get(t.Context(), h.explicit().HTTP(), "https://ok.test/events?ms=20")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, resp.Body); ended <- err }()
	select {
	case err := <-ended:
		if time.Now().Before(until) || err == nil {
			t.Errorf("ended at %v of %v: %v", time.Now(), until, err)
		}
	case <-time.After(6 * time.Second):
		t.Error("the stream runs on past the rule's end")
	}
}
