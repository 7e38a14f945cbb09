package proxy

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// fuzzLimit is small, so that heads meet it often, and below what net/http
// takes as a trailer section.
const fuzzLimit = 400

var fuzzSeeds = []string{
	"GET /x HTTP/1.1\r\nHost: ok.test\r\n\r\n",
	"\r\nGET http://ok.test/a|b HTTP/1.1\r\nhOST:ok.test\r\nPragma: no-cache\r\nX-A: 1\r\nX-A:\r\n\r\n",
	"POST /x?y HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 3\r\n\r\nabc",
	"POST / HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"PUT / HTTP/1.1\r\nHost: a\r\nTrailer: X-Sum\r\nTransfer-Encoding: Chunked\r\nExpect: 100-continue\r\n\r\n00a;x=\"\\\";\" ;y\r\n0123456789\r\n1 \r\nx\r\n0\r\nX-Sum: 1\r\nHost: b\r\n\r\n",
	"CONNECT ok.test:443 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /s HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
	"HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: x\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}

// fuzzConn gives its bytes in pieces of a size that the seed draws, then ends.
type fuzzConn struct {
	mu   sync.Mutex
	rest string
	dice *rand.Rand
	end  chan struct{}
	once sync.Once
}

func (c *fuzzConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest == "" {
		return 0, io.EOF
	}
	most := []int{1, 2, 7, 30, 5000}[c.dice.IntN(5)]
	n := copy(p[:min(len(p), 1+c.dice.IntN(most))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *fuzzConn) Write(p []byte) (int, error) { return len(p), nil }
func (c *fuzzConn) Close() error                { c.once.Do(func() { close(c.end) }); return nil }

func (c *fuzzConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *fuzzConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *fuzzConn) SetDeadline(time.Time) error      { return nil }
func (c *fuzzConn) SetReadDeadline(time.Time) error  { return nil }
func (c *fuzzConn) SetWriteDeadline(time.Time) error { return nil }

// fuzzServer serves connections that are handed to it and keeps what the
// handler saw on each.
type fuzzServer struct {
	conns chan net.Conn
	mu    sync.Mutex
	seen  []string
}

func (s *fuzzServer) Accept() (net.Conn, error) {
	c, ok := <-s.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (s *fuzzServer) Close() error   { return nil }
func (s *fuzzServer) Addr() net.Addr { return &net.TCPAddr{} }

func startFuzz(t testing.TB) *fuzzServer {
	s := &fuzzServer{conns: make(chan net.Conn)}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			line := serveHead(w, r)
			s.mu.Lock()
			s.seen = append(s.seen, line)
			s.mu.Unlock()
		}),
		DisableGeneralOptionsHandler: true, MaxHeaderBytes: 1 << 20, ConnContext: wireContext,
		ConnState: func(c net.Conn, state http.ConnState) { c.(*wireConn).stateChanged(state) },
	}
	go server.Serve(s)
	t.Cleanup(func() { close(s.conns) })
	return s
}

// check sends b and compares what the handler saw with the plain reader.
func (s *fuzzServer) check(t *testing.T, b string, seed uint64) {
	t.Helper()
	s.seen = nil
	c := &fuzzConn{rest: b, dice: rand.New(rand.NewPCG(seed, 1)), end: make(chan struct{})}
	s.conns <- newWire(c, wireConfig{maxHeader: fuzzLimit, headerTimeout: time.Minute, idleTimeout: time.Minute})
	select {
	case <-c.end:
	case <-time.After(10 * time.Second):
		t.Fatalf("hanging on %q, seed %d", b, seed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	want, early := plainReader(b, fuzzLimit)
	for i := range s.seen {
		for _, fault := range []string{"fault", "body fault"} {
			if strings.HasPrefix(s.seen[i], fault+" ") {
				s.seen[i] = fault
			}
		}
	}
	got := strings.Join(s.seen, "\n")
	if got != strings.Join(want, "\n") && (early == nil || got != strings.Join(early, "\n")) {
		t.Errorf("sent %q, seed %d\nsaw  %s\nwant %s\nor   %s", b, seed, got, strings.Join(want, "\n"), strings.Join(early, "\n"))
	}
}

// FuzzWire sends bytes in pieces: net/http sees the requests that the plain
// reader sees, and no other.
func FuzzWire(f *testing.F) {
	for i, seed := range fuzzSeeds {
		f.Add(seed+fuzzSeeds[(i+3)%len(fuzzSeeds)], uint64(i))
	}
	s := startFuzz(f)
	f.Fuzz(func(t *testing.T, b string, seed uint64) { s.check(t, b, seed) })
}

// The same with requests that are slightly wrong, which chance alone seldom
// makes.
func TestWireMutations(t *testing.T) {
	s := startFuzz(t)
	dice := rand.New(rand.NewPCG(7, 7))
	for range 5000 {
		s.check(t, mutate(dice, fuzzSeeds), dice.Uint64())
		if t.Failed() {
			return
		}
	}
}

// mutate strings a few seeds together and breaks them in a few places.
func mutate(dice *rand.Rand, seeds []string) string {
	var b []byte
	for range 1 + dice.IntN(3) {
		b = append(b, seeds[dice.IntN(len(seeds))]...)
	}
	bits := []string{"\r", "\n", "\r\n", "\r\n\r\n", " ", "\t", ":", ";", ",", "0", "1", "\x00", "\x7f", "\xe9", "\"", "\\", "a", "-", "=", "chunked",
		"Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n", "Host: y\r\n", "X: " + strings.Repeat("x", 350) + "\r\n", "HTTP/1.1", "Connection: close\r\n"}
	for range dice.IntN(4) {
		i := dice.IntN(len(b) + 1)
		j := min(len(b), i+dice.IntN(4))
		switch dice.IntN(4) {
		case 0: // cut
			b = append(b[:i:i], b[j:]...)
		case 1: // twice
			b = append(b[:j:j], b[i:]...)
		default:
			b = append(b[:i:i], append([]byte(bits[dice.IntN(len(bits))]), b[i+dice.IntN(2)*(j-i):]...)...)
		}
	}
	return string(b)
}
