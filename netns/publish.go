//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

// publisher carries connections from the host's loopback to the sandbox's.
type publisher struct {
	s         *Session
	stop      context.CancelFunc
	listeners []net.Listener
	wait      sync.WaitGroup
}

// publish opens the host's ports. The error says which of them is taken.
func (s *Session) publish(ports []Publish) (*publisher, error) {
	ctx, stop := context.WithCancel(context.Background())
	p := &publisher{s: s, stop: stop}
	for _, port := range ports {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port.HostPort))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("publishing port %d: %w", port.Port, err), p.close())
		}
		p.listeners = append(p.listeners, l)
		inside := netip.AddrPortFrom(explicitAddr.Addr(), uint16(port.Port))
		p.wait.Go(func() { p.accept(ctx, l, inside.String()) })
	}
	return p, nil
}

// accept is the goroutine of one port. It ends when its listener is closed.
func (p *publisher) accept(ctx context.Context, l net.Listener, inside string) {
	for {
		outer, err := l.Accept()
		if err != nil {
			return
		}
		p.wait.Go(func() { p.carry(ctx, outer, inside) })
	}
}

// carry joins one connection with one inside. Where nothing listens there it
// is closed, as a port that nobody listens on would be.
func (p *publisher) carry(ctx context.Context, outer net.Conn, inside string) {
	defer func() { _ = outer.Close() }()
	inner, err := p.s.Dial(ctx, "tcp", inside)
	if err != nil {
		return
	}
	defer func() { _ = inner.Close() }()
	defer context.AfterFunc(ctx, func() { _ = errors.Join(inner.Close(), outer.Close()) })()
	var back sync.WaitGroup
	back.Go(func() { pour(outer, inner) })
	pour(inner, outer)
	back.Wait()
}

// pour copies until the end, which it passes on.
func pour(to, from net.Conn) {
	_, _ = io.Copy(to, from) // a broken connection ends both ways
	if c, ok := to.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
}

func (p *publisher) close() error {
	p.stop()
	var errs []error
	for _, l := range p.listeners {
		errs = append(errs, l.Close())
	}
	p.wait.Wait()
	return errors.Join(errs...)
}
