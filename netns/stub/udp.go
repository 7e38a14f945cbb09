//go:build linux

package stub

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// maxMessage is the most that is read of a datagram; a question that is longer
// than this is none of a resolver's.
const maxMessage = 4096

// ServePacket answers on a UDP socket until it is closed, and then returns nil
// once the last answer is out. An answer's source is the address that was asked,
// whichever that was, since clients take no other: so the socket is told to say
// (IP_PKTINFO, IPV6_RECVPKTINFO), and one of IPv6 to use addresses that no
// device has (IPV6_FREEBIND). A socket of IPv6 may serve both families.
func (s *Server) ServePacket(conn net.PacketConn) error {
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		return fmt.Errorf("serving DNS: a %T is no UDP socket", conn)
	}
	if err := tellAddress(udp); err != nil {
		return fmt.Errorf("serving DNS on %s: %w", conn.LocalAddr(), err)
	}
	var answering sync.WaitGroup
	defer answering.Wait()
	for {
		buf, oob := make([]byte, maxMessage), make([]byte, 128)
		n, oobn, _, from, err := udp.ReadMsgUDPAddrPort(buf, oob)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, unix.ECONNREFUSED):
			continue // an answer before met nobody
		case err != nil:
			return fmt.Errorf("reading a question: %w", err)
		}
		s.busy <- struct{}{}
		answering.Go(func() {
			defer func() { <-s.busy }()
			out := s.answer(buf[:n])
			if out == nil {
				return
			}
			// One that cannot be sent is asked for again, or given up.
			_, _, _ = udp.WriteMsgUDPAddrPort(out, sourceOf(oob[:oobn]), from)
		})
	}
}

// tellAddress sets the options of a socket.
func tellAddress(udp *net.UDPConn) error {
	raw, err := udp.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		domain, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil {
			setErr = err
			return
		}
		if domain == unix.AF_INET {
			setErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
			return
		}
		setErr = errors.Join(
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1))
	})
	return errors.Join(err, setErr)
}

// sourceOf turns what the kernel told of a datagram's destination into what it
// takes for the source of another. Nil leaves the choice to the kernel.
func sourceOf(oob []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			// ifindex, spec_dst, addr: the last is the destination in the header.
			info := &unix.Inet4Pktinfo{}
			copy(info.Spec_dst[:], m.Data[8:12])
			return unix.PktInfo4(info)
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			info := &unix.Inet6Pktinfo{}
			copy(info.Addr[:], m.Data[:16])
			return unix.PktInfo6(info)
		}
	}
	return nil
}
