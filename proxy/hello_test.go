package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"
)

// clientHello is the ClientHello that crypto/tls writes for a server name.
func clientHello(t testing.TB, name string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		tls.Client(theirs, &tls.Config{ServerName: name, InsecureSkipVerify: name == ""}).Handshake()
		theirs.Close()
	}()
	buf := make([]byte, 16<<10)
	n, err := ours.Read(buf)
	if err != nil {
		t.Fatalf("reading a ClientHello: %v", err)
	}
	return buf[:n]
}

// TestReadHello: every beginning of a ClientHello is one, the whole is whole,
// whatever records it comes in, and what is none is told at its first odd byte.
func TestReadHello(t *testing.T) {
	hello := clientHello(t, "db.test")
	for _, records := range []int{1, 2, 7} {
		whole := inRecords(hello, records)
		for i := 1; i < len(whole); i++ {
			if _, state := readHello(whole[:i]); state != helloMore {
				t.Fatalf("%d records, the first %d of %d bytes: state %d", records, i, len(whole), state)
			}
		}
		if name, state := readHello(append(whole, "more"...)); name != "db.test" || state != helloWhole {
			t.Errorf("%d records: %q, state %d", records, name, state)
		}
	}
	if name, state := readHello(clientHello(t, "")); name != "" || state != helloWhole {
		t.Errorf("without a name: %q, state %d", name, state)
	}
	for _, other := range []string{"GET / HTTP/1.1", "SSH-2.0-x\r\n", "\x16\x02", "\x16\x03\x01\x00\x00", "\x16\x03\x01\xff\xff", "\x16\x03\x01\x00\x05\x02", "\x16\x03\x01\x00\x04\x01\xff\xff\xff"} {
		if _, state := readHello([]byte(other)); state != helloOther {
			t.Errorf("%q: state %d", other, state)
		}
	}
}

// inRecords writes the message of one record in n of them.
func inRecords(record []byte, n int) []byte {
	message := record[5:]
	var out []byte
	for i := range n {
		part := message[len(message)*i/n : len(message)*(i+1)/n]
		out = append(out, 22, 3, 1, byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
	}
	return out
}

// FuzzReadHello: what crypto/tls takes for a ClientHello has the same server
// name for us, so that no tunnel carries a name that was not seen.
func FuzzReadHello(f *testing.F) {
	f.Add(clientHello(f, "db.test"))
	f.Add(inRecords(clientHello(f, "a.b.test"), 3))
	f.Add(clientHello(f, ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, state := readHello(b)
		theirs, ok := nameByTLS(b)
		if ok && (state != helloWhole || name != theirs) {
			t.Errorf("crypto/tls reads %q, we read %q, state %d", theirs, name, state)
		}
	})
}

// nameByTLS is the server name that a crypto/tls server reads.
func nameByTLS(b []byte) (name string, ok bool) {
	stop := errors.New("seen")
	server := tls.Server(&scripted{b: b}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, ok = h.ServerName, true
		return nil, stop
	}})
	server.Handshake()
	return name, ok
}

// scripted is a connection that brings b and then ends.
type scripted struct{ b []byte }

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, s.b)
	s.b = s.b[n:]
	return n, nil
}
func (s *scripted) Write(p []byte) (int, error)      { return len(p), nil }
func (s *scripted) Close() error                     { return nil }
func (s *scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *scripted) SetDeadline(time.Time) error      { return nil }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }
