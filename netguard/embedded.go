package netguard

import "net/netip"

// Ways to write an IPv4 address inside an IPv6 one. A packet for such an
// address may end at the IPv4 address, on this host (mapped), on a router
// (6to4, Teredo) or on a translator (NAT64), so that one is what is judged.
var (
	translated = p("::ffff:0:0:0/96") // RFC 2765, 2.1 (SIIT)
	compatible = p("::/96")           // RFC 4291, 2.5.5.1, deprecated
	nat64      = p("64:ff9b::/96")    // RFC 6052, 2.1
	sixToFour  = p("2002::/16")       // RFC 3056
	teredo     = p("2001::/32")       // RFC 4380, 4
)

// embedded lists the IPv4 addresses hidden in a, in the order in which they are
// judged; none for an address that hides none. A zone is ignored.
func embedded(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	bare := a.WithZone("")
	// RFC 4291, 2.5.5.2. netip matches no mapped address against a prefix.
	if bare.Is4In6() {
		return []netip.Addr{bare.Unmap()}
	}
	switch {
	case bare == netip.IPv6Unspecified() || bare == netip.IPv6Loopback():
		return nil // :: and ::1 are themselves, not 0.0.0.0 and 0.0.0.1
	case translated.Contains(bare), compatible.Contains(bare), nat64.Contains(bare):
		return []netip.Addr{ipv4(b[12:], 0)}
	case sixToFour.Contains(bare):
		return []netip.Addr{ipv4(b[2:], 0)}
	case teredo.Contains(bare):
		// The server stands in the clear, the client with its bits turned over.
		return []netip.Addr{ipv4(b[4:], 0), ipv4(b[12:], 0xff)}
	}
	return nil
}

func ipv4(b []byte, mask byte) netip.Addr {
	return netip.AddrFrom4([4]byte{b[0] ^ mask, b[1] ^ mask, b[2] ^ mask, b[3] ^ mask})
}
