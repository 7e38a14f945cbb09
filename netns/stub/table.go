//go:build linux

package stub

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// table holds which address is whose. An address is given once: a connection
// that comes late must not be taken for one to another name.
type table struct {
	pool6 netip.Prefix // zero without IPv6
	size  uint32       // of the pool: the index behind the last address

	mu    sync.RWMutex
	index map[string]uint32
	names []string // by index, from firstIndex
}

func newTable(pool6 netip.Prefix) *table {
	return &table{
		pool6: pool6,
		// The last address of an IPv4 network is its broadcast address to some.
		size:  1<<(32-Pool4.Bits()) - 1,
		index: map[string]uint32{},
	}
}

// give returns the addresses of a name, new ones if it has none. Ok is false
// when none is left.
func (t *table) give(name string) (addr4, addr6 netip.Addr, ok bool) {
	t.mu.RLock()
	n, ok := t.index[name]
	t.mu.RUnlock()
	if !ok {
		if n, ok = t.add(name); !ok {
			return netip.Addr{}, netip.Addr{}, false
		}
	}
	if t.pool6.IsValid() {
		addr6 = at(t.pool6, n)
	}
	return at(Pool4, n), addr6, true
}

func (t *table) add(name string) (uint32, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := t.index[name]; ok {
		return n, true
	}
	n := firstIndex + uint32(len(t.names))
	if n >= t.size {
		return 0, false
	}
	t.index[name] = n
	t.names = append(t.names, name)
	return n, true
}

func (t *table) lookup(addr netip.Addr) (name string, pool bool) {
	addr = addr.WithZone("").Unmap()
	var n uint32
	switch {
	case Pool4.Contains(addr):
		b := addr.As4()
		base := Pool4.Addr().As4()
		n = binary.BigEndian.Uint32(b[:]) - binary.BigEndian.Uint32(base[:])
	case t.pool6.IsValid() && t.pool6.Contains(addr):
		b := addr.As16()
		n = binary.BigEndian.Uint32(b[12:])
		if addr != at(t.pool6, n) {
			return "", true // further up in the prefix: nobody's
		}
	default:
		return "", false
	}
	if n == sharedIndex {
		return "*", true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n < firstIndex || n-firstIndex >= uint32(len(t.names)) {
		return "", true
	}
	return t.names[n-firstIndex], true
}

// at is the n-th address of a prefix, from 0.
func at(prefix netip.Prefix, n uint32) netip.Addr {
	if prefix.Addr().Is4() {
		b := prefix.Addr().As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+n)
		return netip.AddrFrom4(b)
	}
	b := prefix.Addr().As16()
	binary.BigEndian.PutUint32(b[12:], n)
	return netip.AddrFrom16(b)
}
