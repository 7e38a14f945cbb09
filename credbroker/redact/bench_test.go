package redact

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/scan"
)

// endless is a body of one piece again and again.
type endless struct {
	piece string
	at    int
	left  int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && e.left > 0 {
		k := copy(p[n:], e.piece[e.at:])
		n, e.at, e.left = n+k, (e.at+k)%len(e.piece), e.left-int64(k)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

const benchBody = 64 << 20

func benchmarkBody(b *testing.B, content string, build func() *http.Response) {
	cfg, _ := config()
	p := make([]byte, 32<<10)
	b.SetBytes(benchBody)
	b.ReportAllocs()
	for b.Loop() {
		res := build()
		res.Body = io.NopCloser(&endless{content, 0, benchBody})
		if err := Answer(res, cfg); err != nil {
			b.Fatal(err)
		}
		for {
			_, err := res.Body.Read(p)
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

const benchLine = "2026-11-30T12:00:00Z GET /v1/things/4711 200 took 12 ms, \"agent\" wrote a line of log like any other\n"

// What the scanner itself costs, for comparison.
func BenchmarkScan(b *testing.B) {
	set := scan.New(secrets())
	in := []byte(strings.Repeat(benchLine, readSize/len(benchLine)))
	var out []byte
	b.SetBytes(benchBody)
	for b.Loop() {
		s := set.Stream(scan.Text)
		for range benchBody / len(in) {
			out = s.Write(out[:0], in)
		}
		out = s.Close(out)
	}
}

func BenchmarkText(b *testing.B) {
	benchmarkBody(b, benchLine, func() *http.Response {
		res, _ := answerOf(200, chunked, "")
		return res
	})
}

func BenchmarkGRPC(b *testing.B) {
	benchmarkBody(b, message(0, benchLine), func() *http.Response {
		res, _ := answerOf(200, chunked, "", "Content-Type", "application/grpc")
		return res
	})
}

func BenchmarkHead(b *testing.B) {
	cfg, _ := config()
	b.ReportAllocs()
	for b.Loop() {
		res, _ := answerOf(200, 2, "{}", "Content-Type", "application/json", "Date", "Mon, 30 Nov 2026 12:00:00 GMT", "Cache-Control", "no-store", "Etag", `"0123456789abcdef"`,
			"X-Request-Id", "6f1c9b0e-7f57-4f0a-9a7f-1f2e3d4c5b6a", "Strict-Transport-Security", "max-age=31536000; includeSubDomains", "Vary", "Accept-Encoding")
		if err := Answer(res, cfg); err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			b.Fatal(err)
		}
	}
}
