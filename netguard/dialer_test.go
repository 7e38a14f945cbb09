package netguard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lookups answers the n-th lookup with its n-th set of addresses.
type lookups struct {
	sets  [][]string
	asked atomic.Int32
}

func (l *lookups) LookupNetIP(_ context.Context, _, _ string) ([]netip.Addr, error) {
	n := int(l.asked.Add(1)) - 1
	if n >= len(l.sets) {
		return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, s := range l.sets[n] {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	return addrs, nil
}

type hang struct{}

func (hang) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	time.Sleep(time.Hour) // deaf to its context, as the C library is
	return nil, nil
}

// dialled records what it was asked for; answers that begin with a bad prefix
// refuse the connection.
type dialled struct {
	got []string
	bad []string
}

func (d *dialled) dial(_ context.Context, _, addr string) (net.Conn, error) {
	d.got = append(d.got, addr)
	for _, b := range d.bad {
		if strings.HasPrefix(addr, b) {
			return nil, errors.New("connection refused")
		}
	}
	c, s := net.Pipe()
	s.Close()
	return c, nil
}

func reasonOf(err error) string {
	var r interface{ Reason() string }
	if errors.As(err, &r) {
		return r.Reason()
	}
	return ""
}

func TestDial(t *testing.T) {
	tests := []struct {
		name   string
		addr   string
		sets   [][]string
		allow  []string
		pin    map[string]string
		bad    []string
		want   []string // what is dialled
		reason string   // "" connects
		asked  int32
	}{
		{name: "a public answer", addr: "a.test:443", sets: [][]string{{"93.184.216.34"}}, want: []string{"93.184.216.34:443"}, asked: 1},
		{name: "an address needs no lookup", addr: "93.184.216.34:80", want: []string{"93.184.216.34:80"}},
		{name: "an IPv6 address", addr: "[2606:4700::1111]:80", want: []string{"[2606:4700::1111]:80"}},
		{name: "a private answer", addr: "a.test:443", sets: [][]string{{"10.0.0.5"}}, reason: "private_address", asked: 1},
		{name: "a private address written out", addr: "127.0.0.1:80", reason: "private_address"},
		{name: "one private answer among public ones", addr: "a.test:443", sets: [][]string{{"93.184.216.34", "10.0.0.5"}}, reason: "private_address", asked: 1},
		{name: "rebinding: the second answer is never asked for", addr: "a.test:443", sets: [][]string{{"93.184.216.34"}, {"127.0.0.1"}}, bad: []string{"93."}, want: []string{"93.184.216.34:443"}, reason: "connect", asked: 1},
		{name: "every answer in turn", addr: "a.test:443", sets: [][]string{{"93.184.216.34", "2606:4700::1111", "8.8.8.8"}}, bad: []string{"93.", "[2606"},
			want: []string{"93.184.216.34:443", "[2606:4700::1111]:443", "8.8.8.8:443"}, asked: 1},
		{name: "no answer connects", addr: "a.test:443", sets: [][]string{{"93.184.216.34", "8.8.8.8"}}, bad: []string{"93.", "8."}, want: []string{"93.184.216.34:443", "8.8.8.8:443"}, reason: "connect", asked: 1},
		{name: "a name that is not there", addr: "a.test:443", reason: "dns", asked: 1},
		{name: "a name without an address", addr: "a.test:443", sets: [][]string{{}}, reason: "dns", asked: 1},
		{name: "an opened range", addr: "a.test:443", sets: [][]string{{"10.1.0.5"}}, allow: []string{"10.1.0.0/16"}, want: []string{"10.1.0.5:443"}, asked: 1},
		{name: "a mapped answer is dialled as what it is", addr: "a.test:443", sets: [][]string{{"::ffff:8.8.8.8"}}, want: []string{"8.8.8.8:443"}, asked: 1},
		{name: "an opened host, whatever its case", addr: "A.Test.:443", sets: [][]string{{"10.1.0.5"}}, allow: []string{"a.test"}, want: []string{"10.1.0.5:443"}, asked: 1},
		{name: "a pin is the operator's word", addr: "db.host.internal:5432", pin: map[string]string{"db.host.internal:5432": "127.0.0.1:15432"}, want: []string{"127.0.0.1:15432"}},
		{name: "a pin holds for its port alone", addr: "db.host.internal:5433", pin: map[string]string{"db.host.internal:5432": "127.0.0.1:5432"}, reason: "dns", asked: 1},
		{name: "a pin that is no address", addr: "db.test:1", pin: map[string]string{"db.test:1": "localhost:1"}, reason: "connect"},
		{name: "no host is not this host", addr: ":80", reason: "dns"},
		{name: "the root is no host", addr: ".:80", reason: "dns"},
		{name: "a port by name", addr: "93.184.216.34:http", reason: "connect"},
		{name: "port 0", addr: "93.184.216.34:0", reason: "connect"},
		{name: "no port", addr: "93.184.216.34", reason: "connect"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			allow, err := ParseAllow(tt.allow)
			if err != nil {
				t.Fatal(err)
			}
			resolver, kernel := &lookups{sets: tt.sets}, &dialled{bad: tt.bad}
			d := &Dialer{Guard: New(Config{Allow: allow}), Resolver: resolver, Pin: tt.pin, Dial: kernel.dial}
			conn, err := d.DialContext(t.Context(), "tcp", tt.addr)
			if err == nil {
				conn.Close()
			}
			if (err == nil) != (tt.reason == "") || reasonOf(err) != tt.reason {
				t.Errorf("got %v, reason %q, want %q", err, reasonOf(err), tt.reason)
			}
			if !slices.Equal(kernel.got, tt.want) {
				t.Errorf("dialled %v, want %v", kernel.got, tt.want)
			}
			if n := resolver.asked.Load(); n != tt.asked {
				t.Errorf("%d lookups, want %d", n, tt.asked)
			}
		})
	}
}

func TestZeroDialerRefuses(t *testing.T) {
	d := &Dialer{Resolver: &lookups{sets: [][]string{{"93.184.216.34"}}}, Dial: (&dialled{}).dial}
	if _, err := d.DialContext(t.Context(), "tcp", "a.test:443"); reasonOf(err) != "private_address" {
		t.Errorf("got %v", err)
	}
	if _, err := d.DialContext(t.Context(), "udp", "93.184.216.34:443"); reasonOf(err) != "connect" {
		t.Errorf("udp: got %v", err)
	}
}

func TestLookupTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Dialer{Guard: New(Config{}), Resolver: hang{}, LookupTimeout: 3 * time.Second}
		start := time.Now()
		_, err := d.DialContext(t.Context(), "tcp", "a.test:443")
		if reasonOf(err) != "timeout" || time.Since(start) != 3*time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
		time.Sleep(2 * time.Hour) // the lookup's goroutine ends when it does
	})
}

func TestConnectTimeoutIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		d := &Dialer{
			Guard:          New(Config{}),
			Resolver:       &lookups{sets: [][]string{{"93.184.216.34", "8.8.8.8"}}},
			ConnectTimeout: 10 * time.Second,
			Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
				got = append(got, addr)
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}
		start := time.Now()
		_, err := d.DialContext(t.Context(), "tcp", "a.test:443")
		if reasonOf(err) != "timeout" || time.Since(start) != 10*time.Second || len(got) != 2 {
			t.Errorf("got %v after %s, dialled %v", err, time.Since(start), got)
		}
	})
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := &Dialer{Guard: New(Config{}), Resolver: &lookups{sets: [][]string{{"93.184.216.34"}}}}
	if _, err := d.DialContext(ctx, "tcp", "a.test:443"); !errors.Is(err, context.Canceled) || reasonOf(err) == "timeout" {
		t.Errorf("got %v, %q", err, reasonOf(err))
	}
}

// The kernel's side of the dial asks the guard once more, about the socket.
func TestControlLooksAtWhatIsDialled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	to := netip.MustParseAddr("127.0.0.1")
	d := &Dialer{}
	for _, tt := range []struct {
		what   string
		config Config
		reason string
	}{
		{"an address that is named", Config{Allow: Allow{Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}, ""},
		{"one that got past the lookup", Config{}, "private_address"},
	} {
		g := New(tt.config)
		conn, err := d.connect(t.Context(), "tcp", "a.test", []netip.Addr{to}, uint16(port), func(a netip.AddrPort) error { return g.Check("a.test", a.Addr()) })
		if reasonOf(err) != tt.reason {
			t.Errorf("%s: got %v", tt.what, err)
		}
		if err == nil {
			conn.Close()
		}
	}
	pinned := &Dialer{Pin: map[string]string{"db.test:5432": net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}}
	conn, err := pinned.DialContext(t.Context(), "tcp", "db.test:5432")
	if err != nil {
		t.Fatalf("a pinned address: %v", err)
	}
	conn.Close()
	l.Close()
	if _, err := pinned.DialContext(t.Context(), "tcp", "db.test:5432"); reasonOf(err) != "connect" {
		t.Errorf("nobody listens: got %v", err)
	}
}

// TestHolds: an open connection may stay where a dial would lead to its address
// still.
func TestHolds(t *testing.T) {
	open := &Dialer{
		Guard: New(Config{Allow: Allow{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}),
		Pin:   map[string]string{"pinned.test:443": "127.0.0.1:8443"},
	}
	shut := &Dialer{Guard: New(Config{})}
	for _, tt := range []struct {
		d            *Dialer
		addr, remote string
		want         bool
	}{
		{open, "a.test:443", "8.8.8.8:443", true},
		{open, "a.test:443", "10.1.2.3:443", true},
		{shut, "a.test:443", "10.1.2.3:443", false},
		{shut, "a.test:443", "[::ffff:10.1.2.3]:443", false},
		{open, "pinned.test:443", "127.0.0.1:8443", true},
		{open, "pinned.test:443", "127.0.0.1:8444", false},
		{open, "pinned.test:443", "8.8.8.8:8443", false},
		{open, "pinned.test:8443", "127.0.0.1:8443", false},
		{shut, "pinned.test:443", "127.0.0.1:8443", false},
		{&Dialer{}, "a.test:443", "8.8.8.8:443", false},
		{open, "a.test", "8.8.8.8:443", false},
		{open, "a.test:443", "elsewhere", false},
	} {
		if err := tt.d.Holds(tt.addr, tt.remote); (err == nil) != tt.want {
			t.Errorf("%s over %s: %v", tt.addr, tt.remote, err)
		}
	}
}
