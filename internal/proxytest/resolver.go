package proxytest

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// PublicAddr is what a name resolves to that Resolver has no answers for. It is
// public as the address guard judges it, and is never dialled: the dial hook
// leads to a fake origin.
const PublicAddr = "93.184.216.34"

// Resolver answers lookups from a table and records them.
type Resolver struct {
	// Answers has, for a name, one set of addresses for each lookup, the last
	// for all that follow.
	Answers map[string][][]string
	// Unresolved makes every name unknown.
	Unresolved bool

	mu    sync.Mutex
	asked []string
}

// LookupNetIP answers like net.Resolver's method of that name.
func (r *Resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	r.mu.Lock()
	n := 0
	for _, name := range r.asked {
		if name == host {
			n++
		}
	}
	r.asked = append(r.asked, host)
	r.mu.Unlock()
	if r.Unresolved {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	set := []string{PublicAddr}
	if sets := r.Answers[host]; len(sets) > 0 {
		set = sets[min(n, len(sets)-1)]
	}
	var addrs []netip.Addr
	for _, s := range set {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// Asked returns the names that were looked up, in order.
func (r *Resolver) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}
