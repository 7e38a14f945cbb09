package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// dripping is a connection whose writes can be kept back.
type dripping struct {
	net.Conn
	keep bool
	kept []byte
}

func (d *dripping) Write(p []byte) (int, error) {
	if d.keep {
		d.kept = append(d.kept, p...)
		return len(p), nil
	}
	return d.Conn.Write(p)
}

// send writes n bytes of what was kept; n below 0 leaves so many.
func (d *dripping) send(t *testing.T, n int) {
	t.Helper()
	if n < 0 {
		n += len(d.kept)
	}
	if _, err := d.Conn.Write(d.kept[:n]); err != nil {
		t.Fatal(err)
	}
	d.kept = d.kept[n:]
}

// recordsOf is a TLS connection to a server whose bytes are kept back.
func recordsOf(t *testing.T) (client *records, server *tls.Conn, wire *dripping) {
	t.Helper()
	roots := proxytest.NewCA(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close(); accepted.Close() })
	below, ok := newPrompt(raw)
	if !ok {
		t.Fatal("no connection of the kernel's")
	}
	wire = &dripping{Conn: accepted}
	server = tls.Server(wire, roots.ServerConfig("ok.test", ""))
	c := tls.Client(below, &tls.Config{ServerName: "ok.test", RootCAs: roots.Pool()})
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	raw.SetDeadline(time.Now().Add(20 * time.Second))
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wire.keep = true
	return &records{c, below}, server, wire
}

func (d *dripping) put(t *testing.T, server *tls.Conn, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := io.WriteString(server, text); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecordsThatAreThere: all the whole records that came are given at once,
// and one that did not come whole is not waited for.
func TestRecordsThatAreThere(t *testing.T) {
	client, server, wire := recordsOf(t)
	p := make([]byte, 64<<10)
	want := func(text string) {
		t.Helper()
		if n, err := client.Read(p); err != nil || string(p[:n]) != text {
			t.Errorf("read %.40q, %v; want %.40q", p[:n], err, text)
		}
	}
	wire.put(t, server, "one ", "two ", strings.Repeat("3", 16<<10), "four")
	wire.send(t, -7)
	want("one two " + strings.Repeat("3", 16<<10))
	wire.put(t, server, " five")
	wire.send(t, -1)
	want("four")
	wire.send(t, len(wire.kept))
	want(" five")
	if n, err := client.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
	wire.put(t, server, "the last")
	if err := server.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	wire.SetDeadline(time.Time{}) // TLS ends the time for writes with it
	wire.send(t, len(wire.kept))
	want("the last")
	if n, err := client.Read(p); n != 0 || err != io.EOF {
		t.Errorf("behind the end: %d, %v", n, err)
	}
}

// TestRecordsThenReset: the records before a reset are given, and then it, as
// often as is asked.
func TestRecordsThenReset(t *testing.T) {
	client, server, wire := recordsOf(t)
	wire.put(t, server, "one")
	wire.send(t, len(wire.kept))
	p := make([]byte, 64<<10)
	if n, err := client.Read(p); err != nil || string(p[:n]) != "one" {
		t.Fatalf("read %q, %v", p[:n], err)
	}
	wire.Conn.(*net.TCPConn).SetLinger(0)
	wire.Conn.Close()
	for range 2 {
		if n, err := client.Read(p); n != 0 || err == nil || err == io.EOF {
			t.Errorf("behind a reset: %d, %v", n, err)
		}
	}
}
