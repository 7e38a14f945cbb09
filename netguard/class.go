package netguard

import "net/netip"

// Class is the kind of an address, as the IANA special-purpose registries, or a
// vendor, name it.
type Class string

const (
	PublicClass   Class = "public"
	ThisNetwork   Class = "this_network"
	Unspecified   Class = "unspecified"
	Private       Class = "private"
	Shared        Class = "shared"
	Loopback      Class = "loopback"
	LinkLocal     Class = "link_local"
	Metadata      Class = "metadata"
	IETFProtocol  Class = "ietf_protocol"
	Documentation Class = "documentation"
	RelayAnycast  Class = "relay_anycast"
	Benchmarking  Class = "benchmarking"
	Multicast     Class = "multicast"
	Reserved      Class = "reserved"
	Broadcast     Class = "broadcast"
	NAT64Local    Class = "nat64_local"
	Discard       Class = "discard"
	Dummy         Class = "dummy"
	UniqueLocal   Class = "unique_local"
	SiteLocal     Class = "site_local"
	SRv6          Class = "srv6"
	ThisHost      Class = "this_host"
)

// shut says whether addresses of the class stay shut unless the operator names
// the very address: `true`, ranges and hosts do not open them. They lead into
// this machine (0.0.0.0 and :: connect to it too), to its cloud's keys, or to
// everybody on the wire.
func (c Class) shut() bool {
	switch c {
	case Loopback, LinkLocal, Metadata, ThisNetwork, Unspecified, Multicast, Broadcast, ThisHost:
		return true
	}
	return false
}

type entry struct {
	prefix netip.Prefix
	class  Class
}

// The tables hold the IANA IPv4 and IPv6 Special-Purpose Address Registries
// (RFC 6890, as updated by RFC 8190) without what Judge looks through, the
// multicast blocks, and the metadata addresses of the clouds. The longest
// prefix decides. What a registry marks as globally reachable is public; what
// it does not mark at all (192.88.99.0/24, 2001:10::/28, fec0::/10) is blocked.

var table4 = []entry{
	{p("0.0.0.0/8"), ThisNetwork},         // RFC 791, 3.2
	{p("10.0.0.0/8"), Private},            // RFC 1918
	{p("100.64.0.0/10"), Shared},          // RFC 6598, carrier-grade NAT
	{p("100.100.100.200/32"), Metadata},   // Alibaba Cloud ECS instance metadata
	{p("127.0.0.0/8"), Loopback},          // RFC 1122, 3.2.1.3
	{p("168.63.129.16/32"), Metadata},     // Azure WireServer: a public number, answered by the host below the VM
	{p("169.254.0.0/16"), LinkLocal},      // RFC 3927
	{p("169.254.169.254/32"), Metadata},   // AWS, Google Cloud, Azure, OpenStack and others
	{p("172.16.0.0/12"), Private},         // RFC 1918
	{p("192.0.0.0/24"), IETFProtocol},     // RFC 6890, 2.1
	{p("192.0.0.9/32"), PublicClass},      // RFC 7723, Port Control Protocol anycast
	{p("192.0.0.10/32"), PublicClass},     // RFC 8155, TURN anycast
	{p("192.0.0.192/32"), Metadata},       // Oracle Cloud classic instance metadata
	{p("192.0.2.0/24"), Documentation},    // RFC 5737, TEST-NET-1
	{p("192.88.99.0/24"), RelayAnycast},   // RFC 7526, 6to4 relays, deprecated
	{p("192.168.0.0/16"), Private},        // RFC 1918
	{p("198.18.0.0/15"), Benchmarking},    // RFC 2544; also our stub's own pool, and fake-IP resolvers'
	{p("198.51.100.0/24"), Documentation}, // RFC 5737, TEST-NET-2
	{p("203.0.113.0/24"), Documentation},  // RFC 5737, TEST-NET-3
	{p("224.0.0.0/4"), Multicast},         // RFC 5771
	{p("240.0.0.0/4"), Reserved},          // RFC 1112, 4
	{p("255.255.255.255/32"), Broadcast},  // RFC 8190, limited broadcast
}

var table6 = []entry{
	{p("::/0"), Reserved},               // RFC 3513, 4: only 2000::/3 is given out as global unicast
	{p("::/128"), Unspecified},          // RFC 4291, 2.5.2
	{p("::1/128"), Loopback},            // RFC 4291, 2.5.3
	{p("64:ff9b:1::/48"), NAT64Local},   // RFC 8215; the length of its prefix is the site's secret
	{p("100::/64"), Discard},            // RFC 6666
	{p("100:0:0:1::/64"), Dummy},        // RFC 9780
	{p("2000::/3"), PublicClass},        // RFC 4291, 2.5.4
	{p("2001::/23"), IETFProtocol},      // RFC 2928
	{p("2001:1::1/128"), PublicClass},   // RFC 7723, Port Control Protocol anycast
	{p("2001:1::2/128"), PublicClass},   // RFC 8155, TURN anycast
	{p("2001:1::3/128"), PublicClass},   // RFC 9665, DNS-SD Service Registration anycast
	{p("2001:2::/48"), Benchmarking},    // RFC 5180
	{p("2001:3::/32"), PublicClass},     // RFC 7450, AMT
	{p("2001:4:112::/48"), PublicClass}, // RFC 7535, AS112-v6
	{p("2001:10::/28"), IETFProtocol},   // RFC 4843, ORCHID, deprecated
	{p("2001:20::/28"), PublicClass},    // RFC 7343, ORCHIDv2
	{p("2001:30::/28"), PublicClass},    // RFC 9374, DRIP entity tags
	{p("2001:db8::/32"), Documentation}, // RFC 3849
	{p("3fff::/20"), Documentation},     // RFC 9637
	{p("5f00::/16"), SRv6},              // RFC 9602, segment routing SIDs
	{p("fc00::/7"), UniqueLocal},        // RFC 4193
	{p("fd00:ec2::254/128"), Metadata},  // AWS EC2 instance metadata over IPv6
	{p("fe80::/10"), LinkLocal},         // RFC 4291, 2.5.6
	{p("fec0::/10"), SiteLocal},         // RFC 3879, deprecated
	{p("ff00::/8"), Multicast},          // RFC 4291, 2.7
}

// p is for the tables: it panics on a prefix that is not one, which a test of
// any address would show.
func p(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// classify finds the class of a plain address. An address that no entry holds
// is public; in table6 there is none such.
func classify(a netip.Addr) Class {
	table := table4
	if a.Is6() {
		table = table6
	}
	class, longest := PublicClass, -1
	for _, e := range table {
		if e.prefix.Bits() > longest && e.prefix.Contains(a) {
			class, longest = e.class, e.prefix.Bits()
		}
	}
	return class
}
