package main

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/egressd/egressd/netguard"
)

// answers is a resolver that knows some names.
type answers map[string]string

func (a answers) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if addr, ok := a[host]; ok {
		return []netip.Addr{netip.MustParseAddr(addr)}, nil
	}
	return nil, errors.New("no such host")
}

// TestNamesBehindAnUpstreamProxy: what resolves here to an address that is not
// public is not asked of the upstream proxy; what does not resolve is.
func TestNamesBehindAnUpstreamProxy(t *testing.T) {
	check := checkNames(&netguard.Dialer{
		Guard:    netguard.New(netguard.Config{}),
		Resolver: answers{"public.test": "8.8.8.8", "metadata.test": "169.254.169.254", "private.test": "10.0.0.1", "pinned.test": "10.0.0.2"},
		Pin:      map[string]string{"pinned.test:443": "10.0.0.2:443"},
	})
	for addr, want := range map[string]bool{
		"public.test:443": true, "unknown.test:443": true, "pinned.test:443": true, "8.8.8.8:443": true,
		"metadata.test:80": false, "private.test:443": false, "pinned.test:80": false, "10.0.0.1:443": false, "[::ffff:10.0.0.1]:443": false,
	} {
		if err := check(t.Context(), addr); (err == nil) != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
