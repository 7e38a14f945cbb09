package proxy_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// TestOneLeafForManyFirsts: 200 clients meet a name for the first time at once,
// and all of them get the same certificate (fault T8).
func TestOneLeafForManyFirsts(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**")
	trust := h.explicit()
	var serials sync.Map
	var wait sync.WaitGroup
	begin := make(chan struct{})
	for range 200 {
		wait.Go(func() {
			<-begin
			c, err := trust.Dial(t.Context(), "ok.test:443")
			if err != nil {
				t.Errorf("CONNECT: %v", err)
				return
			}
			defer c.Close()
			client := tls.Client(c, &tls.Config{ServerName: "ok.test", RootCAs: trust.Roots})
			if err := client.HandshakeContext(t.Context()); err != nil {
				t.Errorf("handshake: %v", err)
				return
			}
			serials.Store(client.ConnectionState().PeerCertificates[0].SerialNumber.String(), true)
		})
	}
	close(begin)
	wait.Wait()
	n := 0
	serials.Range(func(any, any) bool { n++; return true })
	if n != 1 || h.issuer.Minted() != 1 {
		t.Errorf("clients saw %d leaves, %d were minted", n, h.issuer.Minted())
	}
}

// TestManyConnections has 2,000 clients inside at once, each with a connection
// of its own, a request answered, and the connection still open.
func TestManyConnections(t *testing.T) {
	const clients = 2000
	h, _ := newSiteHouse(t, "GET ok.test/**")
	var open, served atomic.Int64
	var wait sync.WaitGroup
	all := make(chan struct{})
	slots := make(chan struct{}, 100) // dials under way, not connections
	for range clients {
		wait.Go(func() {
			slots <- struct{}{}
			c := h.dialQuietly()
			if c == nil {
				<-slots
				return
			}
			defer c.Close()
			answered := request(c, "http://ok.test/", "ok.test")
			<-slots
			if answered && open.Add(1) == clients {
				close(all)
			}
			select {
			case <-all:
			case <-time.After(60 * time.Second):
				return
			}
			if request(c, "http://ok.test/again", "ok.test") {
				served.Add(1)
			}
		})
	}
	wait.Wait()
	if open.Load() != clients || served.Load() != clients {
		t.Errorf("of %d clients %d were served at once, %d again", clients, open.Load(), served.Load())
	}
}

// request sends one GET in absolute form and reads its answer.
func request(c netConn, url, host string) bool {
	c.SetDeadline(time.Now().Add(60 * time.Second))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", url, host)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == 200 && string(body) == "ok"
}

// TestSilentTunnels: 500 clients send CONNECT and no hello. Others are served
// meanwhile, and all 500 are closed within the hello's limit (fault O2).
func TestSilentTunnels(t *testing.T) {
	const silent, limit = 500, 2 * time.Second
	more := casePolicy{"limits": {"client_hello_timeout": limit.String()}}
	h, _ := newLimitedSiteHouse(t, more, "GET ok.test/**")
	trust := h.explicit()
	var wait sync.WaitGroup
	var closed atomic.Int64
	slots := make(chan struct{}, 50)
	begin := time.Now()
	for range silent {
		wait.Go(func() {
			slots <- struct{}{}
			c, err := trust.Dial(t.Context(), "ok.test:443")
			<-slots
			if err != nil {
				t.Errorf("CONNECT: %v", err)
				return
			}
			defer c.Close()
			c.SetReadDeadline(time.Now().Add(limit + 20*time.Second))
			if n, err := c.Read(make([]byte, 1)); n == 0 && err == io.EOF {
				closed.Add(1)
			}
		})
	}
	client := trust.HTTP()
	defer client.CloseIdleConnections()
	for range 20 {
		resp, err := get(t.Context(), client, "https://ok.test/")
		if err != nil {
			t.Fatalf("another client beside the silent ones: %v", err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("20 requests beside the silent clients took %v", took)
	}
	wait.Wait()
	if closed.Load() != silent {
		t.Errorf("%d of %d silent clients were closed", closed.Load(), silent)
	}
	list := h.sink.wait("connection", silent, 5*time.Second)
	if len(list) != silent {
		t.Errorf("%d records of connections, want %d", len(list), silent)
	}
	for _, r := range list {
		if r.Reason != "timeout" || r.Verdict != "error" {
			t.Errorf("a silent client's record says %s %s", r.Verdict, r.Reason)
			break
		}
	}
}

// TestConstantMemory moves a body that is far larger than what the process may
// grow by, up and down, over each protocol: 64 MiB, or 1 GiB in make soak.
func TestConstantMemory(t *testing.T) {
	size := int64(64 << 20)
	if os.Getenv("EGRESSD_SOAK") != "" {
		size = 1 << 30
	}
	const growth = 24 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // so that what is measured lives
	h, _ := newSiteHouse(t, "GET,POST ok.test/**")
	for name, d := range doors(t, h) {
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		stop := watchHeap()
		down(t, d.client, d.scheme+"://ok.test/stream?n="+fmt.Sprint(size), size)
		up(t, d.client, d.scheme+"://ok.test/sink", size)
		if peak := stop(); peak > before.HeapAlloc+growth {
			t.Errorf("%s: heap grew from %d to %d MiB for %d MiB", name, before.HeapAlloc>>20, peak>>20, size>>20)
		}
	}
}

func down(t *testing.T, c *http.Client, url string, size int64) {
	t.Helper()
	resp, err := get(t.Context(), c, url)
	if err != nil {
		t.Errorf("downloading: %v", err)
		return
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Errorf("downloaded %d of %d bytes: %v", n, size, err)
	}
}

func up(t *testing.T, c *http.Client, url string, size int64) {
	t.Helper()
	resp, err := c.Post(url, "application/octet-stream", io.NopCloser(proxytest.Zeros(size)))
	if err != nil {
		t.Errorf("uploading: %v", err)
		return
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); string(got) != fmt.Sprint(size) || err != nil {
		t.Errorf("uploaded %s of %d bytes: %v", got, size, err)
	}
}

// watchHeap samples the heap until stopped and returns the highest value.
func watchHeap() (stop func() uint64) {
	var peak uint64
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(end); <-done; return peak }
}
