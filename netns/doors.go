//go:build linux

package netns

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A fanIn is one listener over many: the captured ports, and those that rules
// name, come and go behind it. A connection's local address is the one that
// was dialled.
type fanIn struct {
	conns chan net.Conn
	done  chan struct{}
	wait  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	sources []net.Listener
}

func newFanIn() *fanIn {
	return &fanIn{conns: make(chan net.Conn), done: make(chan struct{})}
}

// add takes a listener over; it is closed with the fan-in.
func (f *fanIn) add(l net.Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = l.Close()
		return
	}
	f.sources = append(f.sources, l)
	f.wait.Add(1)
	go f.accept(l)
}

// accept is the goroutine of one listener. It ends when that is closed.
func (f *fanIn) accept(l net.Listener) {
	defer f.wait.Done()
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Out of descriptors, or a connection that was gone at once.
			select {
			case <-time.After(5 * time.Millisecond):
				continue
			case <-f.done:
				return
			}
		}
		select {
		case f.conns <- c:
		case <-f.done:
			_ = c.Close()
			return
		}
	}
}

func (f *fanIn) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.done:
		return nil, net.ErrClosed
	}
}

func (f *fanIn) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	var errs []error
	for _, l := range f.sources {
		errs = append(errs, l.Close())
	}
	f.mu.Unlock()
	close(f.done)
	f.wait.Wait()
	return errors.Join(errs...)
}

// Addr is the first listener's.
func (f *fanIn) Addr() net.Addr {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sources) == 0 {
		return &net.TCPAddr{}
	}
	return f.sources[0].Addr()
}

// doorSet are the listeners of one session.
type doorSet struct {
	explicit  net.Listener
	captured  *fanIn
	questions []net.PacketConn // DNS over UDP
	dialogues []net.Listener   // DNS over TCP
}

// take sorts the helper's sockets by what they are for; they come in the order
// of doors. It closes the files.
func (d *doorSet) take(files []*os.File, ipv6 bool) error {
	defer closeFiles(files)
	list := doors(ipv6)
	if len(files) != len(list) {
		return fmt.Errorf("taking the listeners: %d came, not %d", len(files), len(list))
	}
	for i, f := range files {
		if list[i].kind == unix.SOCK_DGRAM {
			c, err := net.FilePacketConn(f)
			if err != nil {
				return fmt.Errorf("taking %s: %w", list[i].at, err)
			}
			d.questions = append(d.questions, c)
			continue
		}
		l, err := net.FileListener(f)
		if err != nil {
			return fmt.Errorf("taking %s: %w", list[i].at, err)
		}
		switch list[i].at.Port() {
		case explicitAddr.Port():
			d.explicit = l
		case 53:
			d.dialogues = append(d.dialogues, l)
		default:
			d.captured.add(l)
		}
	}
	return nil
}

func (d *doorSet) close() error {
	var errs []error
	if d.explicit != nil {
		errs = append(errs, d.explicit.Close())
	}
	for _, q := range d.questions {
		errs = append(errs, q.Close())
	}
	for _, l := range d.dialogues {
		errs = append(errs, l.Close())
	}
	for i, err := range errs {
		if errors.Is(err, net.ErrClosed) { // its server has closed it
			errs[i] = nil
		}
	}
	return errors.Join(append(errs, d.captured.Close())...)
}
