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
	for _, other := range []string{"GET / HTTP/1.1", "SSH-2.0-x\r\n", "\x16\x10", "\x16\x00\x00\x00\x00", "\x16\x03\x01\x00\x05\x02", "\x16\x03\x01\x00\x04\x01\x00\x00\x05", "\x15\x03\x01\x00\x02\x02", "\x15\x00\x00\x00\x03"} {
		if _, state := readHello([]byte(other)); state != helloOther {
			t.Errorf("%q: state %d", other, state)
		}
	}
}

// TestHiddenHellos: what servers take for a ClientHello, though no client sends
// it so, never passes for something else.
func TestHiddenHellos(t *testing.T) {
	hello := clientHello(t, "evil.test")
	version := func(b byte) []byte {
		c := append([]byte(nil), hello...)
		c[1] = b
		return c
	}
	for name, tt := range map[string]struct {
		bytes []byte
		want  helloState
	}{
		"behind an empty record (OpenSSL)":   {append([]byte("\x16\x03\x01\x00\x00"), hello...), helloBad},
		"behind a warning (Go)":              {append([]byte("\x15\x03\x01\x00\x02\x01\x5a"), hello...), helloBad},
		"behind a warning of version 4 (Go)": {append([]byte("\x15\x04\x01\x00\x02\x01\x5a"), hello...), helloBad},
		"a record of version 4 (Go)":         {version(4), helloWhole},
		"a record of version 0 (Go)":         {version(0), helloWhole},
		"over 64 KiB (OpenSSL)":              {[]byte("\x16\x03\x01\x40\x00\x01\x01\x00\x01\x03\x03"), helloBad},
		"cut by an alert":                    {append(append([]byte(nil), inRecords(hello, 2)[:5+(len(hello)-5)/2]...), "\x15\x03\x01\x00\x02\x01\x5a"...), helloBad},
		"extensions that do not fit":         {append([]byte("\x16\x03\x01\x00\x2e\x01\x00\x00\x2a\x03\x03"), append(make([]byte, 36), 0, 9, 0, 0)...), helloBad},
	} {
		if sni, state := readHello(tt.bytes); state != tt.want || state == helloWhole && sni != "evil.test" {
			t.Errorf("%s: %q, state %d, want %d", name, sni, state, tt.want)
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
		if ok && state != helloBad && (state != helloWhole || name != theirs) {
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
