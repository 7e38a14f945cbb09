package proxytest

import (
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"
)

// The origin records what came, byte for byte, and plays its scripts in turn.
func TestOrigin(t *testing.T) {
	ca := NewCA(t)
	o := NewOrigin(t, ca)
	o.Scripts = []Script{
		{{On: "head", Send: "HTTP/1.1 100 Continue\r\n\r\n"}, {On: "body", Send: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"}},
		{{On: "body", Send: "HTTP/1.1 101 Switching Protocols\r\n\r\n", Echo: true}},
	}
	conn, err := o.Dial(t.Context(), "tcp", "93.184.216.34:443")
	if err != nil {
		t.Fatal(err)
	}
	client := tls.Client(conn, &tls.Config{ServerName: "ok.test", RootCAs: ca.Pool()})
	p := NewPeer(client)
	defer p.Close()
	p.Send([]byte("POST /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 2\r\n\r\n"))
	if !p.Wait(time.Second, func(b []byte, _ bool) bool { return len(b) > 0 }) {
		t.Fatal("no interim answer on the head")
	}
	p.Send([]byte("hiGET /b HTTP/1.1\r\nHost: ok.test\r\n\r\nping"))
	whole := p.Wait(time.Second, func(b []byte, end bool) bool {
		answers, _, rest, err := ParseAnswers(b, nil, end)
		return err == nil && len(answers) == 2 && len(answers[0].Interim) == 1 && string(rest) == "ping"
	})
	if got, _ := p.Got(); !whole {
		t.Errorf("got %q", got)
	}
	s := o.Seen()
	if len(s.Requests) != 2 || s.Requests[0].Body != "hi" || s.Partial != 0 || len(s.Faults) != 0 || s.Dialled[0].Port() != 443 {
		t.Errorf("seen %+v", s)
	}
}

// Certificates with a flaw are refused for it, and no byte of a request comes.
func TestOriginFlaws(t *testing.T) {
	ca := NewCA(t)
	for _, flaw := range []string{"selfsigned", "wrongname", "expired", "refused"} {
		o := NewOrigin(t, ca)
		o.Flaw = flaw
		conn, err := o.Dial(t.Context(), "tcp", "93.184.216.34:443")
		if err != nil {
			if flaw != "refused" {
				t.Errorf("%s: %v", flaw, err)
			}
			continue
		}
		defer conn.Close()
		if err := tls.Client(conn, &tls.Config{ServerName: "ok.test", RootCAs: ca.Pool()}).Handshake(); err == nil {
			t.Errorf("%s: handshake succeeded", flaw)
		}
	}
}

// Frames sends streams as they are written and tells a reset from an answer.
func TestFrames(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	plain := new(http.Protocols)
	plain.SetUnencryptedHTTP2(true)
	srv := &http.Server{Protocols: plain, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(r.Method + " " + r.URL.Path))
	})}
	defer srv.Close()
	go srv.Serve(l)
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFrames(near)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := func(path, name string) [][2]Bytes {
		return [][2]Bytes{{":method", "GET"}, {":scheme", "https"}, {":authority", "ok.test"}, {":path", Bytes(path)}, {Bytes(name), "1"}}
	}
	f.Open(Stream{Headers: head("/1", "x-a")})
	f.Open(Stream{Headers: head("/2", "X-A")})
	f.Open(Stream{Headers: head("/3", "x-b")})
	got := f.Wait(5 * time.Second)
	if len(got) != 3 || got[0].Body != "GET /1" || !got[1].Reset || got[2].Body != "GET /3" || !got[2].Whole {
		t.Errorf("got %+v", got)
	}
}
