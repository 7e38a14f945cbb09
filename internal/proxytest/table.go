package proxytest

import (
	"net"
	"net/netip"
	"sync"
)

var (
	pool   = netip.MustParsePrefix("198.18.0.0/15")
	shared = netip.MustParseAddr("198.18.0.1")
)

// Table gives names addresses as the DNS stub of the sandbox does: a name that
// some rule could allow has one of its own, all others share one.
type Table struct {
	// Knows tells whether some rule could allow the name.
	Knows func(name string) bool

	mu    sync.Mutex
	last  netip.Addr
	names map[netip.Addr]string
}

// Addr is the answer to a question for name.
func (t *Table) Addr(name string) netip.Addr {
	if !t.Knows(name) {
		return shared
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for addr, n := range t.names {
		if n == name {
			return addr
		}
	}
	if t.names == nil {
		t.names, t.last = map[netip.Addr]string{}, netip.MustParseAddr("198.18.1.0")
	}
	t.last = t.last.Next()
	t.names[t.last] = name
	return t.last
}

// Lookup says what an address stands for: "*" is the shared one; pool with no
// name is an address that nobody was given; not pool is a plain address.
func (t *Table) Lookup(addr netip.Addr) (name string, inPool bool) {
	if addr == shared {
		return "*", true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[addr], pool.Contains(addr)
}

// Captured wraps a loopback listener so that every connection it accepts has
// the local address that its client would have dialled inside a sandbox.
func Captured(l net.Listener, dialled netip.AddrPort) net.Listener {
	return capturedListener{l, net.TCPAddrFromAddrPort(dialled)}
}

type capturedListener struct {
	net.Listener
	local net.Addr
}

func (l capturedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return capturedConn{c.(*net.TCPConn), l.local}, nil
}

type capturedConn struct {
	*net.TCPConn
	local net.Addr
}

func (c capturedConn) LocalAddr() net.Addr { return c.local }
