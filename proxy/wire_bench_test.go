package proxy

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

const benchHead = "GET /v1/models/some-model?alt=sse HTTP/1.1\r\nHost: api.example.test\r\nUser-Agent: some-agent/1.2.3 (linux; x64)\r\n" +
	"Accept: application/json\r\nAccept-Encoding: gzip, br, zstd\r\nAuthorization: Bearer 0123456789012345678901234567890123456789\r\nConnection: keep-alive\r\n\r\n"

// loopConn gives the same bytes again and again.
type loopConn struct {
	fuzzConn
	all, rest string
}

func (c *loopConn) Read(p []byte) (int, error) {
	if c.rest == "" {
		c.rest = c.all
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// BenchmarkWireHead is the cost of one head of a keep-alive GET.
func BenchmarkWireHead(b *testing.B) {
	w := newWire(&loopConn{all: benchHead}, wireConfig{headerTimeout: time.Minute, idleTimeout: time.Minute})
	p := make([]byte, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(benchHead)))
	for b.Loop() {
		for n := 0; ; {
			m, err := w.Read(p)
			if err != nil {
				b.Fatal(err)
			}
			if n += m; string(p[m-4:m]) == "\r\n\r\n" {
				break
			}
		}
		w.done.Add(1)
		w.heads = w.heads[:0]
	}
}

// BenchmarkWireBody is the cost of a body, read as net/http does.
func BenchmarkWireBody(b *testing.B) {
	const head = "POST / HTTP/1.1\r\nHost: x\r\n"
	data := strings.Repeat("x", 1<<20)
	for _, bb := range []struct{ name, send string }{
		{"length", head + "Content-Length: 1048576\r\n\r\n" + data},
		{"chunks", head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("8000\r\n"+data[:0x8000]+"\r\n", 32) + "0\r\n\r\n"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w := newWire(&loopConn{all: bb.send}, wireConfig{})
			p := make([]byte, 32<<10)
			b.ReportAllocs()
			b.SetBytes(1 << 20)
			for b.Loop() {
				for first := true; first || w.flow.state != atHead || w.flow.out != nil; first = false {
					if _, err := w.Read(p); err != nil {
						b.Fatal(err)
					}
				}
				w.done.Add(1)
				w.heads = w.heads[:0]
			}
		})
	}
}

// BenchmarkOriginHead is the cost of one head of an answer.
func BenchmarkOriginHead(b *testing.B) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: 2\r\nX-Request-Id: 0123456789\r\n\r\nok"
	o := checkOrigin(&loopConn{all: answer}, originWireConfig{})
	p := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		o.expect("GET", false)
		for first := true; first || o.flow.state != atHead || o.flow.out != nil; first = false {
			if _, err := o.Read(p); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// A wire that waits holds no buffer.
func TestWireIdleMemory(t *testing.T) {
	const conns = 500
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	wires := make([]*wireConn, conns)
	for i := range wires {
		client, server := net.Pipe()
		defer client.Close()
		wires[i] = newWire(server, wireConfig{})
		go io.WriteString(client, benchHead)
		for p := make([]byte, 4096); ; {
			n, err := wires[i].Read(p)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(string(p[:n]), "\r\n\r\n") {
				break
			}
		}
	}
	runtime.GC()
	runtime.GC() // the pool gives up what it keeps at the second
	runtime.ReadMemStats(&after)
	if each := int64(after.HeapAlloc-before.HeapAlloc) / conns; each > 4<<10 {
		t.Errorf("a waiting connection holds %d bytes, want at most 4 KiB", each)
	}
	runtime.KeepAlive(wires)
}
