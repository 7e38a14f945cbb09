package proxy_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
)

const liveSecret = "tok-live-7Qm4x9Zr2Lp8"

// liveSite is liveCase with a Site under every name.
func liveSite(t *testing.T) *credHouse {
	t.Helper()
	h := liveCase(t)
	site := proxytest.NewSite(t, h.roots)
	h.kernel = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, site.Address(addr))
	}
	return h
}

// TestWebSocketOfBoundHost: what an origin sends back over a WebSocket is looked
// through in messages of any size, and the record says what happened.
func TestWebSocketOfBoundHost(t *testing.T) {
	h := liveSite(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "https://ok.test/ws", &websocket.DialOptions{HTTPClient: h.explicit().HTTP(), CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	c.SetReadLimit(1 << 20)
	stars := strings.Repeat("*", len(liveSecret))
	for _, pad := range []int{0, 100, 200_000} {
		around := strings.Repeat("x", pad)
		if err := c.Write(ctx, websocket.MessageText, []byte(around+liveSecret+around)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.Read(ctx); err != nil || string(got) != around+stars+around {
			t.Errorf("%d: read %d bytes, %v: %.300q", pad, len(got), err, got)
		}
	}
	if err := c.Close(websocket.StatusNormalClosure, "done"); err != nil {
		t.Errorf("closing: %v", err)
	}
	h.wantRecord("allow", "rule", "api")
	if n := len(h.sink.of(audit.KindRedaction)); n == 0 {
		t.Error("no record of a redaction")
	}
}

// TestGRPCOfBoundHost: calls run in both directions, and what comes back is
// looked through message by message.
func TestGRPCOfBoundHost(t *testing.T) {
	h := liveSite(t)
	trust := h.explicit()
	conn, err := grpc.NewClient("passthrough:///ok.test:443",
		grpc.WithContextDialer(trust.Dial),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: trust.Roots})),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(proxytest.RawCodec())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	grpcUnary(ctx, t, "bound", conn)
	grpcBidi(ctx, t, "bound", conn)
	stars := strings.Repeat("*", len(liveSecret))
	for _, pad := range []int{0, 100, 200_000} {
		around := strings.Repeat("x", pad)
		in, out := []byte(around+liveSecret+around), []byte(nil)
		if err := conn.Invoke(ctx, proxytest.EchoMethod, &in, &out); err != nil || string(out) != around+stars+around {
			t.Errorf("%d: %v: %.300q", pad, err, out)
		}
	}
}
