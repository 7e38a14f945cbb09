//go:build linux

package stub_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/internal/proxytest"
	"github.com/egressd/egressd/netns/stub"
)

var prefix6 = netip.MustParsePrefix("fd65:6772:6573:7364::/64")

func message(t *testing.T, name string, qtype dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: qtype, Class: dnsmessage.ClassINET}},
	}
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// addressOf is the address in an answer, "" for none.
func addressOf(t *testing.T, msg []byte) string {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(msg); err != nil {
		t.Fatal(err)
	}
	if len(m.Answers) == 0 {
		return ""
	}
	switch b := m.Answers[0].Body.(type) {
	case *dnsmessage.AResource:
		return netip.AddrFrom4(b.A).String()
	case *dnsmessage.AAAAResource:
		return netip.AddrFrom16(b.AAAA).String()
	}
	return ""
}

// start serves on sockets of every address and stops them at the end.
func start(t *testing.T, s *stub.Server, packets []net.PacketConn, listeners []net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, p := range packets {
		wg.Go(func() {
			if err := s.ServePacket(p); err != nil {
				t.Errorf("serving UDP: %v", err)
			}
		})
	}
	for _, l := range listeners {
		wg.Go(func() {
			if err := s.Serve(ctx, l); err != nil {
				t.Errorf("serving TCP: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		for _, p := range packets {
			p.Close()
		}
		wg.Wait()
	})
}

// In a namespace where every address is local, an answer comes from the address
// that was asked, over both families and both protocols: the client's socket is
// connected and takes no other.
func TestAnyAddressAnswers(t *testing.T) {
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		makeLocal(t)
		s, err := stub.New(stub.Config{Knows: func(h string) bool { return h == "ok.test" }, IPv6: prefix6})
		if err != nil {
			t.Fatal(err)
		}
		var packets []net.PacketConn
		var listeners []net.Listener
		for _, family := range []struct{ suffix, at string }{{"4", "0.0.0.0:53"}, {"6", "[::]:53"}} {
			p, err := net.ListenPacket("udp"+family.suffix, family.at)
			if err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp"+family.suffix, family.at)
			if err != nil {
				t.Fatal(err)
			}
			packets, listeners = append(packets, p), append(listeners, l)
		}
		start(t, s, packets, listeners)
		for _, server := range []string{"127.0.0.1", "127.0.0.53", "8.8.8.8", "198.18.0.2", "::1", "2001:4860:4860::8888", "fd65:6772:6573:7364::2"} {
			at := net.JoinHostPort(server, "53")
			for name, want := range map[string]string{"ok.test.": "198.18.0.3", "evil.test.": "198.18.0.1"} {
				if got := overUDP(t, at, message(t, name, dnsmessage.TypeA)); got != want {
					t.Errorf("%s over UDP at %s: %q, want %q", name, at, got, want)
				}
				if got := overTCP(t, at, message(t, name, dnsmessage.TypeA)); got != want {
					t.Errorf("%s over TCP at %s: %q, want %q", name, at, got, want)
				}
			}
		}
		// The resolver of Go itself, through the same sockets.
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, "9.9.9.9:53")
		}}
		addrs, err := r.LookupNetIP(t.Context(), "ip", "ok.test.")
		if err != nil || len(addrs) != 2 {
			t.Errorf("Go's resolver: %v %v", addrs, err)
		}
	})
}

// makeLocal makes every address one of this namespace's.
func makeLocal(t *testing.T) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for _, dst := range []*net.IPNet{
		{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
		{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
	} {
		err := netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: dst, Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST})
		if err != nil {
			t.Fatalf("adding the local route %s: %v", dst, err)
		}
	}
}

func overUDP(t *testing.T, at string, msg []byte) string {
	t.Helper()
	c, err := net.Dial("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 1024)
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(msg); err != nil {
		t.Fatal(err)
	}
	n, err := c.Read(buf)
	if err != nil {
		t.Errorf("over UDP at %s: %v", at, err)
		return ""
	}
	return addressOf(t, buf[:n])
}

// overTCP asks twice on one connection, the second time in pieces.
func overTCP(t *testing.T, at string, msg []byte) string {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
	var got string
	for _, pieces := range [][][]byte{{framed}, {framed[:1], framed[1:5], framed[5:]}} {
		for _, p := range pieces {
			if _, err := c.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		head := make([]byte, 2)
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, binary.BigEndian.Uint16(head))
		if _, err := io.ReadFull(c, answer); err != nil {
			t.Fatal(err)
		}
		got = addressOf(t, answer)
	}
	return got
}

// One question whose port takes its time does not hold up the others, and a
// connection that says nothing is closed when the server ends.
func TestSlowOpenAndShutdown(t *testing.T) {
	release := make(chan struct{})
	s, err := stub.New(stub.Config{
		Knows: func(h string) bool { return true },
		Open: func(host string, _, _ netip.Addr) error {
			if host == "slow.test" {
				<-release
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var idle net.Conn
	t.Cleanup(func() { idle.Close() }) // runs behind start's, which must not wait for it
	start(t, s, []net.PacketConn{p}, []net.Listener{l})
	slow, err := net.Dial("udp", p.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := slow.Write(message(t, "slow.test.", dnsmessage.TypeA)); err != nil {
		t.Fatal(err)
	}
	if got := overUDP(t, p.LocalAddr().String(), message(t, "quick.test.", dnsmessage.TypeA)); got == "" {
		t.Error("a question was held up by another's port")
	}
	close(release)
	if idle, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if s.ServePacket(struct{ net.PacketConn }{p}) == nil {
		t.Error("what is no UDP socket is served")
	}
}
