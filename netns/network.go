//go:build linux

package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/stub"
)

// Addresses of the namespace's loopback device beside 127.0.0.1 and ::1. They
// lie in the ranges that the DNS stub gives addresses from. glibc's
// AI_ADDRCONFIG does not count loopback addresses: without these,
// getaddrinfo for one family alone would find nothing.
var (
	ownV4 = netip.PrefixFrom(stub.OwnAddr4(), 32)
	ownV6 = netip.PrefixFrom(stub.OwnAddr6(poolV6), 128)
)

// loopbackUp brings lo up, with the addresses that the kernel gives it.
func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bringing lo up: %w", err)
	}
	return nil
}

// captureNetwork makes every address local: a socket on 0.0.0.0 or [::]
// accepts what was dialled to any, and its own address is the one dialled. It
// reports whether the namespace has IPv6; a host without leaves that half out.
func captureNetwork() (ipv6 bool, err error) {
	if err := loopbackUp(); err != nil {
		return false, err
	}
	if err := captureFamily(ownV4); err != nil {
		return false, err
	}
	err = captureFamily(ownV6)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
		return false, nil
	}
	return err == nil, err
}

func captureFamily(own netip.Prefix) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding lo: %w", err)
	}
	bits := own.Addr().BitLen()
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: own.Addr().AsSlice(), Mask: net.CIDRMask(own.Bits(), bits)}}
	if bits == 128 {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrAdd(lo, addr); err != nil {
		return fmt.Errorf("giving lo the address %s: %w", own, err)
	}
	route := &netlink.Route{
		LinkIndex: lo.Attrs().Index,
		Dst:       &net.IPNet{IP: make(net.IP, bits/8), Mask: net.CIDRMask(0, bits)},
		Table:     unix.RT_TABLE_LOCAL,
		Type:      unix.RTN_LOCAL,
		Scope:     unix.RT_SCOPE_HOST,
	}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("making every address local: %w", err)
	}
	return nil
}

// door is one listener of the namespace.
type door struct {
	domain, kind int
	at           netip.AddrPort
}

// doors are the listeners, in the order in which they are handed over: the
// explicit proxy, the captured ports, and DNS. Without IPv6 those of it are
// left out.
func doors(ipv6 bool) []door {
	any4, any6 := netip.IPv4Unspecified(), netip.IPv6Unspecified()
	out := []door{
		{unix.AF_INET, unix.SOCK_STREAM, explicitAddr},
		{unix.AF_INET, unix.SOCK_STREAM, netip.AddrPortFrom(any4, 80)},
		{unix.AF_INET, unix.SOCK_STREAM, netip.AddrPortFrom(any4, 443)},
		{unix.AF_INET, unix.SOCK_DGRAM, netip.AddrPortFrom(any4, 53)},
		{unix.AF_INET, unix.SOCK_STREAM, netip.AddrPortFrom(any4, 53)},
	}
	if ipv6 {
		out = append(out,
			door{unix.AF_INET6, unix.SOCK_STREAM, netip.AddrPortFrom(any6, 80)},
			door{unix.AF_INET6, unix.SOCK_STREAM, netip.AddrPortFrom(any6, 443)},
			door{unix.AF_INET6, unix.SOCK_DGRAM, netip.AddrPortFrom(any6, 53)},
			door{unix.AF_INET6, unix.SOCK_STREAM, netip.AddrPortFrom(any6, 53)})
	}
	return out
}

// explicitAddr is where the explicit proxy listens inside.
var explicitAddr = netip.MustParseAddrPort("127.0.0.1:3128")

// openListeners opens every door.
func openListeners(ipv6 bool) ([]*os.File, error) {
	var out []*os.File
	for _, d := range doors(ipv6) {
		f, err := d.open()
		if err != nil {
			closeFiles(out)
			return nil, fmt.Errorf("listening on %s: %w", d.at, err)
		}
		out = append(out, f)
	}
	return out, nil
}

func (d door) open() (*os.File, error) {
	fd, err := unix.Socket(d.domain, d.kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), d.at.String())
	if err := d.prepare(fd); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// prepare sets the options and binds. A DNS answer must come from the address
// that was asked, whichever that was: PKTINFO tells and sets it, FREEBIND lets
// it be one that the device does not have.
func (d door) prepare(fd int) error {
	options := [][3]int{}
	if d.domain == unix.AF_INET6 {
		options = append(options, [3]int{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1})
	}
	switch {
	case d.kind == unix.SOCK_STREAM:
		options = append(options, [3]int{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1})
	case d.domain == unix.AF_INET:
		options = append(options, [3]int{unix.IPPROTO_IP, unix.IP_PKTINFO, 1})
	default:
		options = append(options, [3]int{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
			[3]int{unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1})
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o[0], o[1], o[2]); err != nil {
			return err
		}
	}
	if err := unix.Bind(fd, sockaddr(d.at, d.domain)); err != nil {
		return err
	}
	if d.kind == unix.SOCK_STREAM {
		return unix.Listen(fd, backlog)
	}
	return nil
}

// backlog is how many connections may wait to be accepted.
const backlog = 1024

// sockaddr is at for a socket of the domain; an IPv4 address on an IPv6 socket
// is a mapped one.
func sockaddr(at netip.AddrPort, domain int) unix.Sockaddr {
	if domain == unix.AF_INET6 {
		return &unix.SockaddrInet6{Addr: at.Addr().As16(), Port: int(at.Port())}
	}
	return &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}
}
