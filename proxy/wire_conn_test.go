package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const wireGet = "GET /%d HTTP/1.1\r\nHost: ok.test\r\n\r\n"

// Pipelined heads, bodies between them and a fault at the end are answered in
// order, and nothing behind the fault is.
func TestWirePipeline(t *testing.T) {
	s := startWire(t, wireConfig{}, nil)
	c := s.dial(t)
	c.send(fmt.Sprintf(wireGet, 1) +
		"POST /2 HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 3\r\n\r\nabc" +
		"POST /3 HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" +
		fmt.Sprintf(wireGet, 4) + "GET /5\r\n\r\n" + fmt.Sprintf(wireGet, 6))
	for i := range 4 {
		if got := c.answer(); got != "200 ok" {
			t.Errorf("answer %d is %q", i+1, got)
		}
	}
	if got := c.answer(); got != "400 bad_request" {
		t.Errorf("answer to the fault is %q", got)
	}
	c.closed()
	lines := s.lines()
	if len(lines) != 5 {
		t.Fatalf("saw %q, want 5 requests", lines)
	}
	for i, line := range lines[:4] {
		if !strings.Contains(line, fmt.Sprintf(" /%d HTTP/1.1", i+1)) {
			t.Errorf("request %d is %s", i+1, line)
		}
	}
}

// Behind a request that ends the connection nothing is a request.
func TestWireLastRequest(t *testing.T) {
	for _, head := range []string{"GET / HTTP/1.1\r\nConnection: close\r\n", "GET / HTTP/1.1\r\nConnection: x, Close\r\n", "GET / HTTP/1.0\r\n"} {
		s := startWire(t, wireConfig{}, nil)
		c := s.dial(t)
		c.send(head + "Host: ok.test\r\n\r\n" + fmt.Sprintf(wireGet, 2) + strings.Repeat("x", 100<<10))
		if got := c.answer(); got != "200 ok" {
			t.Errorf("answer is %q", got)
		}
		c.closed()
		if n := len(s.lines()); n != 1 {
			t.Errorf("%q: %d requests, want 1", head, n)
		}
	}
}

// An answer is not eaten by the reset that unread bytes cause.
func TestWireLingers(t *testing.T) {
	s := startWire(t, wireConfig{}, nil)
	for range 20 {
		c := s.dial(t)
		c.send("GET /\r\n" + strings.Repeat("x", 200<<10))
		if got := c.answer(); got != "400 bad_request" {
			t.Fatalf("answer is %q", got)
		}
		c.Close()
	}
}

// Time limits: a late head is answered, a silent or idle client is not, and
// neither a slow body nor a slow answer is late.
func TestWireTimeouts(t *testing.T) {
	const wait = 60 * time.Millisecond
	cfg := wireConfig{headerTimeout: wait, idleTimeout: wait}
	tests := []struct {
		name   string
		send   []string // a pause of 2/3 wait between them
		want   []string
		reason string
	}{
		{"silent", nil, nil, "timeout"},
		{"half a head", []string{"GET / HTTP/1.1\r\n"}, []string{"408 timeout"}, ""},
		{"line by line", []string{"GET / HTTP/1.1\r\n", "Host: ok.test\r\n", "X: 1\r\n"}, []string{"408 timeout"}, ""},
		{"two pieces", []string{"GET / HTTP/1.1\r\n", "Host: ok.test\r\n\r\n"}, []string{"200 ok"}, "timeout"},
		{"idle", []string{fmt.Sprintf(wireGet, 1)}, []string{"200 ok"}, "timeout"},
		{"not idle for long", []string{fmt.Sprintf(wireGet, 1), fmt.Sprintf(wireGet, 2), fmt.Sprintf(wireGet, 3)}, []string{"200 ok", "200 ok", "200 ok"}, "timeout"},
		{"slow body", []string{"POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 4\r\n\r\n", "a", "b", "c", "d"}, []string{"200 ok"}, "timeout"},
		{"slow chunks", []string{"POST / HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n", "1", "\r", "\n", "a\r\n0", "\r\n", "\r\n"}, []string{"200 ok"}, "timeout"},
		{"half a head behind a request", []string{fmt.Sprintf(wireGet, 1) + "GET "}, []string{"200 ok", "408 timeout"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startWire(t, cfg, nil)
			c := s.dial(t)
			go func() {
				for _, p := range tt.send {
					if _, err := io.WriteString(c, p); err != nil {
						return
					}
					time.Sleep(wait * 2 / 3)
				}
			}()
			for _, want := range tt.want {
				if got := c.answer(); got != want {
					t.Errorf("answer %q, want %q", got, want)
				}
			}
			c.closed()
			if _, reason := s.conn().ended(); reason != tt.reason {
				t.Errorf("ended for %q, want %q", reason, tt.reason)
			}
		})
	}
}

// A request that runs long is not idle, though the next may come at once or
// begin meanwhile.
func TestWireLongRequest(t *testing.T) {
	const wait = 50 * time.Millisecond
	for _, early := range []string{"", "GE", fmt.Sprintf(wireGet, 2)} {
		s := startWire(t, wireConfig{headerTimeout: 10 * time.Second, idleTimeout: wait}, func(w http.ResponseWriter, r *http.Request) {
			takeHead(r)
			time.Sleep(3 * wait)
			io.WriteString(w, "ok")
		})
		c := s.dial(t)
		c.send(fmt.Sprintf(wireGet, 1) + early)
		if got := c.answer(); got != "200 ok" {
			t.Errorf("behind %q: answer is %q", early, got)
		}
		if early == "GE" {
			time.Sleep(2 * wait)
			c.send("T /2 HTTP/1.1\r\nHost: ok.test\r\n\r\n")
		}
		if early != "" {
			if got := c.answer(); got != "200 ok" {
				t.Errorf("behind %q: second answer is %q", early, got)
			}
		}
		c.closed()
	}
}

// A server that closes does not wait for clients that were told to read an
// answer, and a client that never reads holds a connection for half a second.
func TestWireCloseEnds(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	w := newWire(server, wireConfig{})
	go io.WriteString(client, "GET /\r\n")
	if n, err := w.Read(make([]byte, 100)); n == 0 || err != nil {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	start := time.Now()
	w.Close()
	if d := time.Since(start); d > lingerTime/2 {
		t.Errorf("Close took %v", d)
	}
	client.SetReadDeadline(time.Now().Add(4 * lingerTime))
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection ended with %v, want EOF", err)
	}
}

// A head is only taken by the request that was made from it.
func TestWireTakeHead(t *testing.T) {
	plain, err := http.NewRequestWithContext(t.Context(), "GET", "/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := takeHead(plain); ok {
		t.Error("took a head without a wire")
	}
	client, server := net.Pipe()
	defer client.Close()
	w := newWire(server, wireConfig{})
	go fmt.Fprintf(client, wireGet, 1)
	if _, err := w.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	r := plain.WithContext(wireContext(t.Context(), w))
	for _, uri := range []string{"/2", "/1"} { // another number, then none left
		r.RequestURI = uri
		if h, ok := takeHead(r); !ok || h.Fault == nil || h.Fault.Reason != "internal" {
			t.Errorf("%s: got %+v, %t, want an internal fault", uri, h, ok)
		}
	}
}

// A client that goes away while its request runs ends the request's context,
// behind an upgrade or CONNECT too.
func TestWireClientGone(t *testing.T) {
	for _, head := range []string{"GET / HTTP/1.1\r\n", "CONNECT ok.test:443 HTTP/1.1\r\n", "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n",
		"GET / HTTP/1.1\r\nConnection: close\r\n"} {
		for _, early := range []string{"", "early bytes"} {
			if early != "" && !strings.Contains(head, "grade") {
				continue // net/http looks no further than a first byte
			}
			gone := make(chan error, 1)
			s := startWire(t, wireConfig{}, func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-r.Context().Done():
					gone <- nil
				case <-time.After(5 * time.Second):
					gone <- fmt.Errorf("not noticed")
				}
			})
			c := s.dial(t)
			c.send(head + "Host: ok.test\r\n\r\n" + early)
			time.Sleep(20 * time.Millisecond)
			c.Close()
			if err := <-gone; err != nil {
				t.Errorf("%q: %v", head, err)
			}
		}
	}
}

// After Hijack every byte behind the head is there, once, in whatever piece it
// came; also with half a head of a request that was hijacked unasked.
func TestWireHijack(t *testing.T) {
	heads := []string{"CONNECT ok.test:443 HTTP/1.1\r\n", "CONNECT ok.test:443 HTTP/1.0\r\n", "GET / HTTP/1.1\r\nConnection: x, Upgrade\r\nUpgrade: websocket\r\n", "GET / HTTP/1.1\r\n"}
	for _, head := range heads {
		for _, early := range []string{"", "p", "ping", "GET / HT", strings.Repeat("long ", 4000)} {
			if head[0] == 'G' && len(early) > 10 && !strings.Contains(head, "Upgrade") {
				continue
			}
			for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
				t.Run(fmt.Sprintf("%.30s/%.8s/%v", head, early, delay), func(t *testing.T) {
					s := startWire(t, wireConfig{headerTimeout: 50 * time.Millisecond, idleTimeout: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
						takeHead(r)
						time.Sleep(2 * delay)
						c, rw, err := http.NewResponseController(w).Hijack()
						if err != nil {
							t.Errorf("hijacking: %v", err)
							return
						}
						defer c.Close()
						io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
						io.Copy(c, rw)
					})
					c := s.dial(t)
					c.send(head + "Host: ok.test\r\n\r\n")
					time.Sleep(delay)
					c.send(early)
					if got := c.answer(); got != "204 " {
						t.Fatalf("answer is %q", got)
					}
					time.Sleep(70 * time.Millisecond) // past both limits
					c.send(" and late")
					c.Conn.(*net.TCPConn).CloseWrite()
					got, _ := io.ReadAll(c.r)
					if string(got) != early+" and late" {
						t.Errorf("got back %d bytes %.40q, want %d", len(got), got, len(early)+9)
					}
				})
			}
		}
	}
}

// An upgrade or a CONNECT that is answered as a request is followed by the next.
func TestWireUpgradeDenied(t *testing.T) {
	s := startWire(t, wireConfig{headerTimeout: 5 * time.Second}, nil)
	c := s.dial(t)
	c.send("CONNECT ok.test:1 HTTP/1.1\r\nHost: x\r\n\r\n" + "GET /2 HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\nb" + fmt.Sprintf(wireGet, 3))
	for i := range 3 {
		if got := c.answer(); got != "200 ok" {
			t.Errorf("answer %d is %q", i+1, got)
		}
	}
	c.send("GET /4 HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")
	if got := c.answer(); got != "200 ok" {
		t.Errorf("answer is %q", got)
	}
	c.send("GE")
	time.Sleep(10 * time.Millisecond)
	c.send("T /5 HTTP/1.1\r\nHost: x\r\n\r\n")
	if got := c.answer(); got != "200 ok" {
		t.Errorf("answer is %q", got)
	}
}

// Many wake-ups by the server's deadlines lose no byte of a head.
func TestWireDeadlines(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	w := newWire(server, wireConfig{headerTimeout: 10 * time.Second})
	defer w.Close()
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			w.SetReadDeadline(time.Unix(1, 0))
			time.Sleep(50 * time.Microsecond)
			w.SetReadDeadline(time.Time{})
			time.Sleep(50 * time.Microsecond)
		}
	}()
	const send = "POST /x HTTP/1.1\r\nHost: ok.test\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nX-B: 2\r\n\r\n"
	const want = "POST /1 HTTP/1.1\r\nHost: egressd\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-B: 2\r\n\r\n"
	go func() {
		for i := range len(send) {
			client.Write([]byte(send[i : i+1]))
			time.Sleep(100 * time.Microsecond)
		}
	}()
	var got []byte
	var woken int
	for p := make([]byte, 100); len(got) < len(want); {
		n, err := w.Read(p)
		got = append(got, p[:n]...)
		if os.IsTimeout(err) {
			woken++
		} else if err != nil {
			t.Fatalf("reading: %v", err)
		}
	}
	stop.Store(true)
	<-done
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if woken == 0 {
		t.Error("no Read was woken")
	}
}

// The clock of a head starts with its first byte and is not started anew by
// wake-ups.
func TestWireClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		w := newWire(server, wireConfig{headerTimeout: 10 * time.Second, idleTimeout: time.Minute})
		defer w.Close()
		start := time.Now()
		go func() {
			time.Sleep(9 * time.Second)
			client.Write([]byte("GET / HTTP/1.1\r\n"))
			for range 5 {
				time.Sleep(time.Second)
				w.SetReadDeadline(time.Unix(1, 0))
				time.Sleep(time.Second)
				w.SetReadDeadline(time.Time{})
			}
		}()
		for p := make([]byte, 100); ; {
			n, err := w.Read(p)
			if os.IsTimeout(err) {
				time.Sleep(time.Millisecond)
				continue
			}
			if err != nil || !strings.Contains(string(p[:n]), "Connection: close") {
				t.Fatalf("got %q, %v", p[:n], err)
			}
			break
		}
		if d := time.Since(start).Round(time.Second); d != 19*time.Second {
			t.Errorf("the head was late after %v, want 19s", d)
		}
	})
}
