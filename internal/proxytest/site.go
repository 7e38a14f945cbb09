package proxytest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// Site is a server of net/http on loopback, under every name: plain HTTP/1.1,
// and TLS with HTTP/2 and HTTP/1.1. What it serves:
//
//	/            200 "ok"
//	/echo        the request's body, type and trailers, as they come
//	/sink        takes the body; answers its length
//	/stream?n=   n bytes, as fast as they are taken
//	/drip?n=&ms= n lines, one each ms, flushed
//	/slow?ms=    "ok" after ms, unless the client goes
//	/events?ms=  server-sent events, the first at once, then one each ms
//	/ws          WebSocket echo
//
// and the gRPC service of Echo, by content type.
type Site struct {
	Plain, TLS string // addresses, "127.0.0.1:port"

	gone    atomic.Int64
	serving atomic.Int64
	served  atomic.Int64
	streams chan struct{}
}

// NewSite starts a site that ends with the test.
func NewSite(t testing.TB, ca *CA) *Site {
	t.Helper()
	s := &Site{streams: make(chan struct{})}
	grpc := newEchoServer()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.served.Add(1)
		s.serving.Add(1)
		defer s.serving.Add(-1)
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			grpc.ServeHTTP(w, r)
			return
		}
		s.serve(w, r)
	})
	var wait sync.WaitGroup
	start := func(protocols ...string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("listening for site: %v", err)
		}
		server := &http.Server{Handler: handler}
		if len(protocols) > 0 {
			server.TLSConfig = ca.ServerConfig("127.0.0.1", "", protocols...)
			wait.Go(func() { server.ServeTLS(l, "", "") })
		} else {
			wait.Go(func() { server.Serve(l) })
		}
		t.Cleanup(func() { server.Close() })
		return l.Addr().String()
	}
	t.Cleanup(wait.Wait) // runs after the servers are closed
	s.Plain, s.TLS = start(), start("h2", "http/1.1")
	t.Cleanup(func() { close(s.streams); grpc.Stop() })
	return s
}

// Address is where a connection to "host:port" belongs: TLS on 443 and 8443.
func (s *Site) Address(addr string) string {
	if strings.HasSuffix(addr, "443") {
		return s.TLS
	}
	return s.Plain
}

// Gone is the number of requests whose client went before the end.
func (s *Site) Gone() int64 { return s.gone.Load() }

// Served is the number of requests that have come.
func (s *Site) Served() int64 { return s.served.Load() }

// Serving is the number of requests under way.
func (s *Site) Serving() int64 { return s.serving.Load() }

func (s *Site) serve(w http.ResponseWriter, r *http.Request) {
	number := func(name string) int {
		n, _ := strconv.Atoi(r.FormValue(name))
		return n
	}
	rc := http.NewResponseController(w)
	switch r.URL.Path {
	case "/echo":
		s.echo(w, r)
	case "/sink":
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			s.gone.Add(1)
			return
		}
		fmt.Fprint(w, n)
	case "/stream":
		n, _ := strconv.ParseInt(r.FormValue("n"), 10, 64)
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		if _, err := io.CopyN(w, zeros{}, n); err != nil {
			s.gone.Add(1)
		}
	case "/drip":
		for i := range number("n") {
			fmt.Fprintf(w, "line %d\n", i+1)
			rc.Flush()
			if !s.sleep(r, number("ms")) {
				return
			}
		}
	case "/slow":
		if s.sleep(r, number("ms")) {
			io.WriteString(w, "ok")
		}
	case "/events":
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 1; ; i++ {
			fmt.Fprintf(w, "data: %d %d\n\n", i, time.Now().UnixNano())
			rc.Flush()
			if !s.sleep(r, number("ms")) {
				return
			}
		}
	case "/ws":
		s.webSocket(w, r)
	default:
		io.WriteString(w, "ok")
	}
}

// sleep waits, and tells whether the client is still there.
func (s *Site) sleep(r *http.Request, ms int) bool {
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		s.gone.Add(1)
		return false
	case <-s.streams:
		return false
	}
}

func (s *Site) echo(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	if r.ProtoMajor == 1 {
		rc.EnableFullDuplex()
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.Header().Set("X-Proto", r.Proto)
	b := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(b)
		if n > 0 {
			if _, err := w.Write(b[:n]); err != nil {
				s.gone.Add(1)
				return
			}
			rc.Flush()
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.gone.Add(1)
			return
		}
	}
	for name, v := range r.Trailer {
		w.Header()[http.TrailerPrefix+name] = v
	}
}

func (s *Site) webSocket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(1 << 20)
	for {
		kind, message, err := c.Read(r.Context())
		if err != nil {
			return
		}
		if err := c.Write(r.Context(), kind, message); err != nil {
			return
		}
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Zeros reads as n bytes of nought, for uploads.
func Zeros(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

// clientTLS is the configuration of a client that trusts the roots.
func clientTLS(t Trust, protocols ...string) *tls.Config {
	return &tls.Config{RootCAs: t.Roots, NextProtos: protocols}
}
