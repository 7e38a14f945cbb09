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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/egressd/egressd/internal/proxytest"
)

// doors are the ways in over TLS and without, each with a client.
func doors(t *testing.T, h *house) map[string]struct {
	client *http.Client
	scheme string
} {
	list := map[string]struct {
		client *http.Client
		scheme string
	}{
		"tunnel":         {h.explicit().HTTP(), "https"},
		"absolute":       {h.explicit().HTTP(), "http"},
		"captured TLS":   {h.captured("ok.test", 443).HTTP(), "https"},
		"captured plain": {h.captured("ok.test", 80).HTTP(), "http"},
		"HTTP/2":         {h.explicit().HTTP2(), "https"},
	}
	for _, d := range list {
		t.Cleanup(d.client.CloseIdleConnections)
	}
	return list
}

// TestEventStreamIsFlushed: head and event are at the client before the next
// event exists, and within 5 ms. The quickest of ten events counts: a buffer
// that waits would hold all of them, a busy machine does not.
func TestEventStreamIsFlushed(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/**")
	for name, d := range doors(t, h) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		resp, err := get(ctx, d.client, d.scheme+"://ok.test/events?ms=50")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		best := time.Hour
		lines := bufio.NewScanner(resp.Body)
		for i := 1; i <= 10 && lines.Scan(); {
			var n int
			var sent int64
			if _, err := fmt.Sscanf(lines.Text(), "data: %d %d", &n, &sent); err != nil {
				continue // the blank line between events
			}
			if n != i {
				t.Errorf("%s: event %d, want %d", name, n, i)
			}
			best = min(best, time.Since(time.Unix(0, sent)))
			i++
		}
		if best > 5*time.Millisecond {
			t.Errorf("%s: the quickest event took %v", name, best)
		}
		cancel()
		resp.Body.Close()
	}
}

func get(ctx context.Context, c *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return nil, err
	}
	return c.Do(req)
}

// TestWebSocketEcho runs messages of three sizes through each HTTP/1.1 door.
func TestWebSocketEcho(t *testing.T) {
	h, _ := newSiteHouse(t, "GET ok.test/ws")
	for name, d := range doors(t, h) {
		if name == "HTTP/2" {
			continue // not offered: RFC 8441 clients fall back to HTTP/1.1
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c, _, err := websocket.Dial(ctx, d.scheme+"://ok.test/ws", &websocket.DialOptions{HTTPClient: d.client})
		if err != nil {
			t.Errorf("%s: dialling: %v", name, err)
			continue
		}
		c.SetReadLimit(1 << 20)
		for _, size := range []int{1, 4000, 300_000} {
			message := strings.Repeat("x", size)
			if err := c.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
				t.Errorf("%s: writing: %v", name, err)
			}
			if _, got, err := c.Read(ctx); err != nil || string(got) != message {
				t.Errorf("%s: read %d bytes of %d: %v", name, len(got), size, err)
			}
		}
		if err := c.Close(websocket.StatusNormalClosure, "done"); err != nil {
			t.Errorf("%s: closing: %v", name, err)
		}
	}
	_, _, err := websocket.Dial(t.Context(), "wss://ok.test/other", &websocket.DialOptions{HTTPClient: h.explicit().HTTP()})
	if err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a WebSocket to another path: %v, want 403", err)
	}
}

// TestGRPC calls unary and streaming methods over HTTP/2 on both legs, with
// the status and the trailers of the service.
func TestGRPC(t *testing.T) {
	h, _ := newSiteHouse(t, "POST ok.test"+proxytest.EchoMethod, "POST ok.test"+proxytest.EchoStream)
	for name, trust := range map[string]proxytest.Trust{"tunnel": h.explicit(), "captured": h.captured("ok.test", 443)} {
		conn, err := grpc.NewClient("passthrough:///ok.test:443",
			grpc.WithContextDialer(trust.Dial),
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: trust.Roots})),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(proxytest.RawCodec())))
		if err != nil {
			t.Fatalf("making client: %v", err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		grpcUnary(ctx, t, name, conn)
		grpcBidi(ctx, t, name, conn)
		in, out := []byte("x"), []byte(nil)
		if err := conn.Invoke(ctx, "/proxytest.Echo/Other", &in, &out); status.Code(err) != codes.PermissionDenied && status.Code(err) != codes.Unknown {
			t.Errorf("%s: a method that no rule allows: %v", name, err)
		}
	}
	for _, r := range h.sink.of("request") {
		if r.Verdict == "allow" && (r.Proto != "h2" || r.UpstreamProto != "h2") {
			t.Errorf("gRPC went over %q and %q", r.Proto, r.UpstreamProto)
		}
	}
}

func grpcUnary(ctx context.Context, t *testing.T, name string, conn *grpc.ClientConn) {
	t.Helper()
	for _, message := range []string{"hello", "", strings.Repeat("x", 200_000)} {
		in, out := []byte(message), []byte(nil)
		var trailer metadata.MD
		if err := conn.Invoke(ctx, proxytest.EchoMethod, &in, &out, grpc.Trailer(&trailer)); err != nil || string(out) != message {
			t.Errorf("%s: unary: %d bytes of %d, %v", name, len(out), len(message), err)
		}
		if got := trailer.Get("x-echoed"); !slices.Equal(got, []string{"1"}) {
			t.Errorf("%s: unary: trailer %q", name, got)
		}
	}
	in, out := []byte("fail"), []byte(nil)
	var trailer metadata.MD
	err := conn.Invoke(ctx, proxytest.EchoMethod, &in, &out, grpc.Trailer(&trailer))
	if s, _ := status.FromError(err); s.Message() != "asked to fail" || !slices.Equal(trailer.Get("x-echoed"), []string{"1"}) {
		t.Errorf("%s: a failing call: %v, trailer %v", name, err, trailer)
	}
}

func grpcBidi(ctx context.Context, t *testing.T, name string, conn *grpc.ClientConn) {
	t.Helper()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, proxytest.EchoStream)
	if err != nil {
		t.Errorf("%s: opening stream: %v", name, err)
		return
	}
	for i := range 20 {
		in, out := fmt.Appendf(nil, "message %d", i), []byte(nil)
		if err := stream.SendMsg(&in); err != nil {
			t.Errorf("%s: sending: %v", name, err)
			return
		}
		// The echo comes before the next message is sent: nothing waits for the end.
		if err := stream.RecvMsg(&out); err != nil || string(out) != string(in) {
			t.Errorf("%s: got %q, %v", name, out, err)
			return
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Errorf("%s: closing: %v", name, err)
	}
	var none []byte
	if err := stream.RecvMsg(&none); !errors.Is(err, io.EOF) {
		t.Errorf("%s: the end of the stream: %v", name, err)
	}
	if got := stream.Trailer().Get("x-echoed"); !slices.Equal(got, []string{"20"}) {
		t.Errorf("%s: trailer %q", name, got)
	}
}

// TestDuplexEcho sends a body in pieces, each after the echo of the one before,
// so that neither direction waits for the other's end.
func TestDuplexEcho(t *testing.T) {
	h, _ := newSiteHouse(t, "POST ok.test/echo")
	for name, d := range doors(t, h) {
		body, pieces := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), "POST", d.scheme+"://ok.test/echo", body)
		if err != nil {
			t.Fatal(err)
		}
		go func() { io.WriteString(pieces, "piece 0\n") }()
		resp, err := d.client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		lines := bufio.NewScanner(resp.Body)
		for i := 0; i < 5 && lines.Scan(); i++ {
			if want := fmt.Sprintf("piece %d", i); lines.Text() != want {
				t.Errorf("%s: got %q, want %q", name, lines.Text(), want)
			}
			if i < 4 {
				fmt.Fprintf(pieces, "piece %d\n", i+1)
			} else {
				pieces.Close()
			}
		}
		if err := lines.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		resp.Body.Close()
	}
}

// TestRawTunnel runs bytes both ways through a tunnel that is not looked into,
// and passes the end of one direction on.
func TestRawTunnel(t *testing.T) {
	h, _ := newSiteHouse(t, "CONNECT db.test:5432")
	l := h.listen()
	defer l.Close()
	h.kernel = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c) // until the client has ended its direction
		fmt.Fprintf(c, "got %d", len(all))
	}()
	c, err := h.explicit().Dial(t.Context(), "db.test:5432")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := io.ReadAll(c); err != nil || string(got) != "got 1048576" {
		t.Errorf("read %q, %v", got, err)
	}
}
