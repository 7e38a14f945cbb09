package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// wireServer is an http.Server with the wire in front, and what its handler saw.
type wireServer struct {
	addr string

	mu   sync.Mutex
	seen []string
	last *wireConn
}

// describe is a request in one line: what it is, its fields in order of name,
// its body, its trailers.
func describe(method, target, host, proto, expect string, fields http.Header, body string, trailers http.Header) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s %s host=%q expect=%q", method, target, proto, host, expect)
	for _, h := range []http.Header{fields, trailers} {
		s.WriteString(" [")
		names := make([]string, 0, len(h))
		for name := range h {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&s, " %s=%q", name, h[name])
		}
		s.WriteString(" ]")
		if body != "" {
			fmt.Fprintf(&s, " %q", body)
			body = ""
		}
	}
	return s.String()
}

// serveHead answers one request and gives a line about it.
func serveHead(w http.ResponseWriter, r *http.Request) string {
	http.NewResponseController(w).EnableFullDuplex()
	h, ok := takeHead(r)
	if !ok {
		return "not on a wire"
	}
	answer := func(status int, text string) {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
	if h.Fault != nil {
		answer(h.Fault.Status, h.Fault.Reason)
		return fmt.Sprintf("fault %d %s", h.Fault.Status, h.Fault.Reason)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fault := bodyFault(r)
		if fault == nil {
			return "body ended"
		}
		w.Header().Set("Connection", "close")
		answer(fault.Status, fault.Reason)
		var bad *wireError
		if !errors.As(err, &bad) {
			return "body fault that the error does not tell"
		}
		return fmt.Sprintf("body fault %d %s", fault.Status, fault.Reason)
	}
	for name, values := range r.Trailer {
		if values == nil {
			delete(r.Trailer, name) // announced and not sent
		}
	}
	answer(200, "ok")
	return describe(h.Method, h.Target, h.Host, h.Proto, h.Expect, r.Header, string(body), r.Trailer)
}

// startWire serves on a loopback port until the test ends. handler nil is
// serveHead.
func startWire(t testing.TB, cfg wireConfig, handler http.HandlerFunc) *wireServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &wireServer{addr: l.Addr().String()}
	if handler == nil {
		handler = func(w http.ResponseWriter, r *http.Request) { s.note(serveHead(w, r)) }
	}
	server := &http.Server{
		Handler: handler, DisableGeneralOptionsHandler: true, MaxHeaderBytes: 1 << 20,
		ConnContext: wireContext,
		ConnState:   func(c net.Conn, state http.ConnState) { c.(*wireConn).stateChanged(state) },
	}
	go server.Serve(wireListener{l, cfg, s})
	t.Cleanup(func() { server.Close() })
	return s
}

func (s *wireServer) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, line)
}

func (s *wireServer) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *wireServer) conn() *wireConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

type wireListener struct {
	net.Listener
	cfg wireConfig
	s   *wireServer
}

func (l wireListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	w := newWire(c, l.cfg)
	l.s.mu.Lock()
	l.s.last = w
	l.s.mu.Unlock()
	return w, nil
}

// dial opens a connection that ends with the test.
func (s *wireServer) dial(t testing.TB) *wireClient {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	return &wireClient{c, bufio.NewReader(c), t}
}

type wireClient struct {
	net.Conn
	r *bufio.Reader
	t testing.TB
}

func (c *wireClient) send(pieces ...string) {
	c.t.Helper()
	for _, p := range pieces {
		if _, err := io.WriteString(c, p); err != nil {
			c.t.Errorf("sending: %v", err)
		}
	}
}

// answer reads one answer: its status and body.
func (c *wireClient) answer() string {
	c.t.Helper()
	r, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return "error: " + err.Error()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%d %s", r.StatusCode, body)
}

// closed waits for the end of the connection and fails if more bytes come.
func (c *wireClient) closed() {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	if err != nil {
		c.t.Errorf("waiting for the close: %v", err)
	}
	if len(rest) > 0 {
		c.t.Errorf("got %q before the close, want nothing", rest)
	}
}
