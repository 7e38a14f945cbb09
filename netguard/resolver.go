package netguard

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Resolver looks names up. It asks for names with a dot in them as they stand,
// from the root: a search list in resolv.conf would turn a name that does not
// exist into another one, which no rule has named.
type Resolver struct {
	net *net.Resolver
}

// NewResolver makes a Resolver that asks server, an address with or without a
// port (53 if without), over UDP and TCP; an empty server is the system's
// resolver, /etc/hosts included (which counts with a server too).
func NewResolver(server string) (*Resolver, error) {
	if server == "" {
		return &Resolver{net: net.DefaultResolver}, nil
	}
	to, err := netip.ParseAddrPort(server)
	if err != nil {
		addr, addrErr := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(server, "["), "]"))
		if addrErr != nil {
			return nil, fmt.Errorf("reading resolver %q: not an address: %w", server, addrErr)
		}
		to = netip.AddrPortFrom(addr, 53)
	}
	if to.Port() == 0 {
		return nil, fmt.Errorf("reading resolver %q: port 0", server)
	}
	return &Resolver{net: &net.Resolver{
		PreferGo: true, // the C library would ask the system's
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, to.String())
		},
	}}, nil
}

// LookupNetIP looks host up. Network is ip, ip4 or ip6. Errors are those of
// net.Resolver.
func (r *Resolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if strings.Contains(host, ".") && !strings.HasSuffix(host, ".") {
		host += "."
	}
	return r.net.LookupNetIP(ctx, network, host)
}
