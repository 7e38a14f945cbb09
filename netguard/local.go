package netguard

import (
	"fmt"
	"net"
	"net/netip"
)

// LocalAddrs lists the addresses of this host's interfaces, plain: without zone
// and unmapped. The error is the kernel's.
func LocalAddrs() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing this host's addresses: %w", err)
	}
	addrs := make([]netip.Addr, 0, len(list))
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				addrs = append(addrs, plain(addr))
			}
		}
	}
	return addrs, nil
}
