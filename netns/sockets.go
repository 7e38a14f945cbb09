//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// openSpares makes, in the helper, the sockets that the self-test needs before
// there is a launcher to make any.
func openSpares(ipv6 bool) ([]*os.File, error) {
	kinds := [][2]int{
		{unix.AF_INET, unix.SOCK_STREAM}, {unix.AF_INET, unix.SOCK_STREAM},
		{unix.AF_INET, unix.SOCK_STREAM}, {unix.AF_INET, unix.SOCK_STREAM},
		{unix.AF_INET, unix.SOCK_DGRAM}, {unix.AF_INET, unix.SOCK_DGRAM},
	}
	if ipv6 {
		kinds = append(kinds, [2]int{unix.AF_INET6, unix.SOCK_STREAM}, [2]int{unix.AF_INET6, unix.SOCK_DGRAM})
	}
	var out []*os.File
	for _, k := range kinds {
		fd, err := unix.Socket(k[0], k[1]|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			closeFiles(out)
			return nil, fmt.Errorf("making a socket: %w", err)
		}
		out = append(out, os.NewFile(uintptr(fd), "spare"))
	}
	return out, nil
}

// spare is one of the helper's sockets, or nil where none of the kind is left.
func (s *Session) spare(domain, kind int) *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.spares {
		if s.checkLocked(int(f.Fd()), domain, kind) == nil {
			s.spares = slices.Delete(slices.Clone(s.spares), i, i+1)
			return f
		}
	}
	return nil
}

// dropSpares closes what was not needed.
func (s *Session) dropSpares() {
	s.mu.Lock()
	spares := s.spares
	s.spares = nil
	s.mu.Unlock()
	closeFiles(spares)
}

// socket is a bare socket inside: a spare one, or one that the launcher makes.
// What comes is checked: a program that has got hold of the launcher must not
// slip us a socket of another namespace or kind.
func (s *Session) socket(ctx context.Context, domain, kind int) (*os.File, error) {
	if f := s.spare(domain, kind); f != nil {
		return f, nil
	}
	s.mu.Lock()
	launcher := s.launcher
	s.mu.Unlock()
	if launcher == nil {
		return nil, errors.New("making a socket inside: there is no launcher yet")
	}
	_, files, err := launcher.ask(ctx, answerTime, message{Kind: kindSocket, Domain: domain, Type: kind})
	if err != nil {
		return nil, err
	}
	f, err := oneFile(files)
	if err != nil {
		return nil, err
	}
	if err := s.checkSocket(int(f.Fd()), domain, kind); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s *Session) checkSocket(fd, domain, kind int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkLocked(fd, domain, kind)
}

// checkLocked is checkSocket with s.mu held.
func (s *Session) checkLocked(fd, domain, kind int) error {
	cookie, err := netnsCookie(fd)
	if err != nil {
		return err
	}
	if s.cookie == 0 && !s.running {
		s.cookie = cookie // the first one, before anything of the sandbox ran
	}
	if cookie != s.cookie {
		return errors.New("checking a socket from inside: it is of another network namespace")
	}
	for _, want := range [][2]int{{unix.SO_DOMAIN, domain}, {unix.SO_TYPE, kind}, {unix.SO_ACCEPTCONN, 0}} {
		got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, want[0])
		if err != nil {
			return fmt.Errorf("checking a socket from inside: %w", err)
		}
		if got != want[1] {
			return errors.New("checking a socket from inside: it is of another kind")
		}
	}
	return nil
}

func netnsCookie(fd int) (uint64, error) {
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("reading a socket's network namespace: %w", err)
	}
	return cookie, nil
}

func domainOf(addr netip.Addr) int {
	if addr.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// listen opens a TCP port inside, below 1024 too: the namespace is ours.
func (s *Session) listen(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	domain := domainOf(at.Addr())
	f, err := s.socket(ctx, domain, unix.SOCK_STREAM)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", at, err)
	}
	fd := int(f.Fd())
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil && domain == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
	}
	if err == nil {
		err = unix.Bind(fd, sockaddr(at, domain))
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening on %s: %w", at, err), f.Close())
	}
	l, err := net.FileListener(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("listening on %s: %w", at, err)
	}
	return l, nil
}

// Dial connects from inside, as the program would: network is tcp or udp,
// address an IP address with a port. It serves the self-test and published
// ports.
func (s *Session) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("dialling inside: %w", err)
	}
	kind, ok := map[string]int{"tcp": unix.SOCK_STREAM, "udp": unix.SOCK_DGRAM}[network]
	if !ok {
		return nil, fmt.Errorf("dialling inside: %s is neither tcp nor udp", network)
	}
	f, err := s.socket(ctx, domainOf(at.Addr()), kind)
	if err != nil {
		return nil, fmt.Errorf("dialling %s inside: %w", address, err)
	}
	err = connect(ctx, f, at)
	if err == nil {
		var c net.Conn
		if c, err = net.FileConn(f); err == nil {
			return c, f.Close()
		}
	}
	return nil, errors.Join(fmt.Errorf("dialling %s inside: %w", address, err), f.Close())
}

// connect waits for the connection without holding a thread.
func connect(ctx context.Context, f *os.File, at netip.AddrPort) error {
	fd := int(f.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	err := unix.Connect(fd, sockaddr(at, domainOf(at.Addr())))
	if !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(set, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err == nil && code != 0 {
				err = unix.Errno(code)
			}
			return err
		}
	}
}
