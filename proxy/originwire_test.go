package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// originScript is an origin that reads whole requests and sends the answers in
// order, one a request, over as many connections as are opened. An answer that
// ends in "$" is followed by a close.
type originScript struct {
	addr     string
	requests atomic.Int64
	conns    atomic.Int64
}

func startOrigin(t testing.TB, piece int, answers ...string) *originScript {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &originScript{addr: l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			go s.serve(c, piece, answers)
		}
	}()
	return s
}

func (s *originScript) serve(c net.Conn, piece int, answers []string) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		q, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, q.Body)
		n := s.requests.Add(1)
		if int(n) > len(answers) {
			return
		}
		answer, end := strings.CutSuffix(answers[n-1], "$")
		for part := range slices.Chunk([]byte(answer), piece) {
			if _, err := c.Write(part); err != nil {
				return
			}
		}
		if end {
			return
		}
	}
}

// through gives a round tripper whose connections are checked.
func through(t testing.TB, addr string) func(method, path string, upgrade bool) (*http.Response, error) {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return checkOrigin(c, originWireConfig{maxHeader: 4 << 10}), nil
		},
		DisableCompression: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return func(method, path string, upgrade bool) (*http.Response, error) {
		trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { i.Conn.(*originConn).expect(method, upgrade) }}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), method, "http://ok.test"+path, nil)
		if err != nil {
			return nil, err
		}
		if upgrade {
			r.Header.Set("Connection", "upgrade")
			r.Header.Set("Upgrade", "websocket")
		}
		return transport.RoundTrip(r)
	}
}

// outcome is an answer in a line, or the reason of its error.
func outcome(r *http.Response, err error) string {
	var refusal interface{ Reason() string }
	if err != nil {
		if errors.As(err, &refusal) {
			return refusal.Reason()
		}
		return "error: " + err.Error()
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	s := fmt.Sprintf("%d %q", r.StatusCode, body)
	if errors.As(err, &refusal) {
		return s + " " + refusal.Reason()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return s + " broken"
	}
	if err != nil {
		return s + " error: " + err.Error()
	}
	for name, v := range r.Trailer {
		s += fmt.Sprintf(" %s=%q", name, v)
	}
	return s
}

func TestOriginAnswers(t *testing.T) {
	const reset = "upstream_reset"
	ok := "HTTP/1.1 200 OK\r\n"
	tests := []struct{ name, method, answer, want string }{
		{"length", "GET", ok + "Content-Length: 2\r\n\r\nok", `200 "ok"`},
		{"no reason", "GET", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", `200 "ok"`},
		{"empty reason", "GET", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", `200 "ok"`},
		{"chunks", "GET", ok + "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n06\r\n world\r\n0\r\n\r\n", `200 "hello world"`},
		{"trailers", "GET", ok + "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\nContent-Length: 7\r\n\r\n", `200 "abc" X-Sum=["42"]`},
		{"trailer names framing", "GET", ok + "Trailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", `200 "abc"`},
		{"till the end", "GET", ok + "\r\ntill the end$", `200 "till the end"`},
		{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\n\r\ntill the end$", `200 "till the end"`},
		{"HEAD with chunks", "HEAD", ok + "Transfer-Encoding: chunked\r\n\r\n", `200 ""`},
		{"HEAD with a length", "HEAD", ok + "Content-Length: 5\r\n\r\n", `200 ""`},
		{"HEAD with a body", "HEAD", ok + "Content-Length: 5\r\n\r\nhello", `200 ""`},
		{"204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", `204 ""`},
		{"204 with a length", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", `204 ""`},
		{"304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", `304 ""`},
		{"interim", "GET", "HTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 3\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nok", `200 "ok"`},
		{"equal lengths", "GET", ok + "Content-Length: 2\r\nContent-Length: 2, 2\r\n\r\nok", `200 "ok"`},
		{"unusual status", "GET", "HTTP/1.1 999 x\r\nContent-Length: 2\r\n\r\nok", `999 "ok"`},

		{"two lengths", "GET", ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", reset},
		{"list of two", "GET", ok + "Content-Length: 2, 3\r\n\r\nok", reset},
		{"empty length", "GET", ok + "Content-Length: \r\n\r\nok", reset},
		{"negative", "GET", ok + "Content-Length: -1\r\n\r\nok", reset},
		{"length and chunks", "GET", ok + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", reset},
		{"gzip", "GET", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", reset},
		{"chunked twice", "GET", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", reset},
		{"chunks of HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", reset},
		{"bad name", "GET", ok + "Bad Name: 1\r\nContent-Length: 2\r\n\r\nok", reset},
		{"space before the colon", "GET", ok + "X : 1\r\nContent-Length: 2\r\n\r\nok", reset},
		{"fold", "GET", ok + "X: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok", reset},
		{"bare newline", "GET", "HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nok", reset},
		{"control", "GET", ok + "X: a\x00b\r\nContent-Length: 2\r\n\r\nok", reset},
		{"no HTTP", "GET", "hello there\r\n$", reset},
		{"no HTTP, no line", "GET", "hello there$", reset},
		{"HTTP/2.0", "GET", "HTTP/2.0 200 OK\r\n\r\n", reset},
		{"two digits", "GET", "HTTP/1.1 20 OK\r\n\r\n", reset},
		{"four digits", "GET", "HTTP/1.1 2000 OK\r\n\r\n", reset},
		{"status 099", "GET", "HTTP/1.1 099 OK\r\n\r\n", reset},
		{"half a head", "GET", ok + "X: 1\r\n$", reset},
		{"over the limit", "GET", ok + "X: " + strings.Repeat("x", 5000) + "\r\n\r\n", reset},
		{"unasked switch", "GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", reset},
		{"bad after interim", "GET", "HTTP/1.1 103 Early Hints\r\n\r\nnonsense\r\n", reset},
		{"bad chunk", "GET", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\n", `200 "hello" ` + reset},
		{"bad trailer", "GET", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nBad Name: 1\r\n\r\n", `200 "hello" ` + reset},
		{"broken length", "GET", ok + "Content-Length: 7\r\n\r\nhello$", `200 "hello" broken`},
		{"broken chunks", "GET", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n$", `200 "hello" broken`},
	}
	for _, tt := range tests {
		for _, piece := range []int{1 << 20, 1, 5} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, piece), func(t *testing.T) {
				s := startOrigin(t, piece, tt.answer)
				if got := outcome(through(t, s.addr)(tt.method, "/", false)); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if n := s.requests.Load(); n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
			})
		}
	}
}

// A connection is used again after a good answer, also a malformed one on it is
// an error and not sent again, and what stands behind an answer is never the
// answer to the next request.
func TestOriginReuse(t *testing.T) {
	const good = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	tests := []struct {
		name    string
		answers []string
		want    []string
		conns   int64
	}{
		{"good", []string{good, good, good}, []string{`200 "ok"`, `200 "ok"`, `200 "ok"`}, 1},
		{"malformed", []string{good, "nonsense\r\n", good}, []string{`200 "ok"`, "upstream_reset", `200 "ok"`}, 2},
		{"answer behind an answer", []string{good + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", good}, []string{`200 "ok"`, `200 "ok"`}, 2},
		{"body behind a 304", []string{"HTTP/1.1 304 Not Modified\r\n\r\nevil", good}, []string{`304 ""`, `200 "ok"`}, 2},
		{"body behind chunks", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n0\r\n\r\n", good}, []string{`200 "x"`, `200 "ok"`}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startOrigin(t, 1<<20, tt.answers...)
			send := through(t, s.addr)
			for i, want := range tt.want {
				if got := outcome(send("GET", "/", false)); got != want {
					t.Errorf("answer %d is %s, want %s", i+1, got, want)
				}
				time.Sleep(5 * time.Millisecond) // the transport puts the connection back
			}
			if n := s.requests.Load(); n != int64(len(tt.want)) {
				t.Errorf("%d requests, want %d", n, len(tt.want))
			}
			if n := s.conns.Load(); n != tt.conns {
				t.Errorf("%d connections, want %d", n, tt.conns)
			}
		})
	}
}

// An answer that comes before its request belongs to none.
func TestOriginUnasked(t *testing.T) {
	client, server := net.Pipe()
	o := checkOrigin(client, originWireConfig{})
	go func() {
		io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		server.Close()
	}()
	got, err := io.ReadAll(o)
	var refusal interface{ Reason() string }
	if len(got) > 0 || !errors.As(err, &refusal) || refusal.Reason() != "upstream_reset" {
		t.Errorf("got %q, %v; want nothing and upstream_reset", got, err)
	}
}

// A switch that was asked for gives the bytes behind it as they come.
func TestOriginSwitch(t *testing.T) {
	s := startOrigin(t, 1<<20, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nHTTP/1.1 no\nanswer\x00$")
	r, err := through(t, s.addr)("GET", "/", true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if r.StatusCode != 101 || string(got) != "HTTP/1.1 no\nanswer\x00" || err != nil {
		t.Errorf("got %d, %q, %v", r.StatusCode, got, err)
	}
}

// net/http makes a Cache-Control of Pragma; the connection tells.
func TestOriginPragma(t *testing.T) {
	for _, tt := range []struct {
		fields string
		made   bool
	}{{"Pragma: no-cache\r\n", true}, {"Pragma: no-cache\r\nCache-Control: x\r\n", false}, {"", false}} {
		client, server := net.Pipe()
		o := checkOrigin(client, originWireConfig{})
		o.expect("GET", false)
		go io.WriteString(server, "HTTP/1.1 200 OK\r\n"+tt.fields+"Content-Length: 0\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(o), nil)
		if err != nil {
			t.Fatal(err)
		}
		if o.madeCacheControl() != tt.made || tt.made && r.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%q: made %t, got %v", tt.fields, o.madeCacheControl(), r.Header)
		}
		server.Close()
	}
}
