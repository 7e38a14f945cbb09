package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/internal/proxytest"
	"github.com/egressd/egressd/proxy"
)

// BenchmarkRequest is a GET of 1 KiB over warm connections, TLS on both sides,
// with the real record, rules and broker. Client and origin speak bytes, so that
// nearly all allocations are the proxy's.
func BenchmarkRequest(b *testing.B) {
	roots := proxytest.NewCA(b)
	l, err := tls.Listen("tcp", "127.0.0.1:0", roots.ServerConfig("ok.test", "", "http/1.1"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go answerAlike(l)
	broker, err := credbroker.New(b.Context(), credbroker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	log, err := audit.Open(audit.Config{State: b.TempDir(), Session: audit.NewSession(), Mask: broker.Mask, MaxTotal: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { log.Close("") })
	h := newHouseWith(b, []any{"* ok.test/**"}, nil, roots)
	h.kernel = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
	}
	h.broker = broker
	h.restart(func(c *proxy.Config) { c.Sink, c.Policy = log, h.policy([]any{"* ok.test/**"}) })

	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		raw, err := h.explicit().Dial(b.Context(), "ok.test:443")
		if err != nil {
			b.Error(err)
			return
		}
		defer raw.Close()
		c := tls.Client(raw, &tls.Config{RootCAs: h.trust(), ServerName: "ok.test"})
		request := []byte("GET /v1/models?limit=20 HTTP/1.1\r\nHost: ok.test\r\nUser-Agent: bench/1\r\nAccept: */*\r\n\r\n")
		buf := make([]byte, 8<<10)
		for pb.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			if err := readAnswer(c, buf); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// answerAlike gives every head that comes in one piece the same answer.
func answerAlike(l net.Listener) {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1024\r\nDate: Tue, 01 Dec 2026 06:00:00 GMT\r\n\r\n" + strings.Repeat("x", 1024))
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			buf := make([]byte, 4<<10)
			for {
				if n, err := c.Read(buf); err != nil || !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
					return
				}
				if _, err := c.Write(answer); err != nil {
					return
				}
			}
		}()
	}
}

// readAnswer reads one answer with a body of 1 KiB.
func readAnswer(c net.Conn, buf []byte) error {
	for n := 0; ; {
		m, err := c.Read(buf[n:])
		if err != nil {
			return err
		}
		n += m
		if head := bytes.Index(buf[:n], []byte("\r\n\r\n")); head >= 0 {
			_, err := io.ReadFull(c, buf[n:max(n, head+4+1024)])
			return err
		}
	}
}
