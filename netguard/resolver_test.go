package netguard

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// server is a resolver on loopback that knows a.test, over UDP only.
type server struct {
	conn net.PacketConn
	mu   sync.Mutex
	got  []string
}

func startServer(t *testing.T) *server {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{conn: conn}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			s.mu.Lock()
			s.got = append(s.got, q.Name.String())
			s.mu.Unlock()
			m.Header.Response, m.Additionals = true, nil
			switch {
			case q.Name.String() != "a.test.":
				m.Header.RCode = dnsmessage.RCodeNameError
			case q.Type == dnsmessage.TypeA:
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body:   &dnsmessage.AResource{A: [4]byte{93, 184, 216, 34}},
				}}
			}
			if out, err := m.Pack(); err == nil {
				conn.WriteTo(out, from)
			}
		}
	}()
	return s
}

func TestResolverAsksItsServer(t *testing.T) {
	s := startServer(t)
	r, err := NewResolver(s.conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := r.LookupNetIP(t.Context(), "ip", "a.test")
	if err != nil || len(addrs) != 1 || addrs[0].Unmap() != netip.MustParseAddr("93.184.216.34") {
		t.Errorf("got %v, %v", addrs, err)
	}
	// A name that is not there is asked for as it stands, with nothing behind it.
	if _, err := r.LookupNetIP(t.Context(), "ip", "b.test"); err == nil {
		t.Error("b.test has an address")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.got)
	if got := slices.Compact(s.got); !slices.Equal(got, []string{"a.test.", "b.test."}) {
		t.Errorf("asked for %q", got)
	}
}

func TestNewResolver(t *testing.T) {
	for _, ok := range []string{"", "9.9.9.9", "9.9.9.9:5353", "::1", "[::1]", "[::1]:53"} {
		if _, err := NewResolver(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"dns.test", "9.9.9.9:0", "9.9.9.9:x", "https://9.9.9.9", "127.1"} {
		if _, err := NewResolver(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
