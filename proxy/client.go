package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressd/egressd/audit"
)

// client is one connection that reached a listener, for as long as it lives:
// the bytes of a CONNECT, of the tunnel behind it, and of the TLS inside all
// run over it, and it is what a *tls.Conn of ours finds as its NetConn. What it
// was opened for is settled before any of its requests is looked at.
type client struct {
	net.Conn
	server   *Server
	captured bool   // dialled by the program itself, not through the explicit door
	over     bool   // over the cap on connections: answered 503, never judged
	pre      []byte // read ahead and not yet given out
	target   target // what a tunnel was opened for; zero on the explicit door
	wire     atomic.Pointer[wireConn]
	asked    atomic.Pointer[askedFor]
	gather   gather // of one answer's chunks

	recorded atomic.Bool            // a request record speaks for this connection
	fate     atomic.Pointer[string] // why no request came, where we decided that
	sawEOF   atomic.Bool
	sawLate  atomic.Bool
	busy     atomic.Int32 // 0 until the first byte of a head or a hello
	closing  sync.Once
}

// target is what a tunnel or a captured connection was opened for.
type target struct {
	tunnel  bool   // false on the explicit door, before any CONNECT
	host    string // canonical; empty where shared
	literal string // as it was dialled, for a certificate when no server name is sent
	port    int
	shared  bool // the address of the stub that names no host
	unnamed bool // an address of the stub's pool that nobody was given
	tls     bool
	sni     string // canonical server name, empty for none
	badSNI  bool   // a server name that is no host name
}

// scheme is what is really spoken inside the tunnel.
func (t *target) scheme() string {
	if t.tls {
		return "https"
	}
	return "http"
}

// askedFor is what the last request named, and how a Host field writes it.
type askedFor struct {
	authority
	field string
}

// fieldOf is a.field(), written once for the requests of a connection, which
// nearly always name the same.
func (c *client) fieldOf(a authority) string {
	if last := c.asked.Load(); last != nil && last.authority == a {
		return last.field
	}
	now := &askedFor{a, a.field()}
	c.asked.Store(now)
	return now.field
}

// Read gives out what was read ahead, then the connection's bytes. It keeps in
// mind how the connection ended, for the record of one that brought no request.
func (c *client) Read(p []byte) (int, error) {
	if len(c.pre) > 0 {
		n := copy(p, c.pre)
		if c.pre = c.pre[n:]; len(c.pre) == 0 {
			c.pre = nil
		}
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if err != nil && n == 0 {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.sawLate.Store(true)
		} else {
			c.sawEOF.Store(true)
		}
	}
	return n, err
}

// Write passes bytes on, those of one chunk together.
func (c *client) Write(p []byte) (int, error) { return c.gather.write(p, c.Conn.Write) }

// CloseWrite ends our direction of the connection.
func (c *client) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close ends the connection and, where it brought no request, records why.
func (c *client) Close() error {
	err := c.Conn.Close()
	c.closing.Do(func() {
		c.server.forget(c)
		if !c.recorded.Load() {
			c.server.recordConnection(c)
		}
	})
	return err
}

// doom settles why the connection will have brought no request.
func (c *client) doom(reason string) { c.fate.CompareAndSwap(nil, &reason) }

// ended is the reason of the connection's record.
func (c *client) ended() string {
	if reason := c.fate.Load(); reason != nil {
		return *reason
	}
	if w := c.wire.Load(); w != nil {
		if _, reason := w.ended(); reason != "" {
			return reason
		}
	}
	switch {
	case c.sawEOF.Load():
		return "client_gone"
	case c.sawLate.Load():
		return "timeout"
	case c.server.isClosing():
		return "" // nobody's fault
	}
	return "client_gone" // by the end of its TLS
}

// peek reads until at least n bytes are there, and leaves them to be read.
func (c *client) peek(n int) error {
	for len(c.pre) < n {
		buf := make([]byte, 512)
		m, err := c.Conn.Read(buf)
		if m > 0 {
			c.pre = append(c.pre, buf[:m]...)
		} else if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.doom("timeout")
			} else {
				c.doom("client_gone")
			}
			return err
		}
	}
	return nil
}

// isFresh says that nothing was asked on this connection yet, so that a shutdown
// need not wait for it.
func (c *client) isFresh() bool {
	if w := c.wire.Load(); w != nil {
		if heads, _ := w.ended(); heads > 0 {
			return false
		}
	}
	return c.busy.Load() == 0 && !c.recorded.Load()
}

// capture is how the records call this connection's door.
func (c *client) capture() string {
	if c.captured {
		return "transparent"
	}
	return c.server.cfg.Capture
}

// dialled is the address that a captured connection was made to.
func (c *client) dialled() (netip.AddrPort, bool) {
	if a, ok := c.LocalAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port()), true
	}
	ap, err := netip.ParseAddrPort(c.LocalAddr().String())
	return ap, err == nil
}

// recordConnection writes why a connection brought no request.
func (s *Server) recordConnection(c *client) {
	reason := c.ended()
	r := &audit.Record{
		Time: time.Now(), Kind: audit.KindConnection,
		Verdict: verdictOf(reason), Reason: reason,
		Host: c.target.host, Port: c.target.port, Capture: c.capture(),
	}
	if err := s.cfg.Sink.Append(r); err != nil {
		s.cfg.Log.Error("recording a connection", "err", err)
	}
}

// served is the connection that the inner http.Server is given for HTTP/1. The
// server's own idle deadline, which is there for HTTP/2, is kept from the wire:
// it would close a connection whose next head has begun. The deadline in the
// past with which Hijack ends a read passes.
type served struct {
	*wireConn
	client *client
}

func (s *served) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && t.After(time.Now()) && !s.hijacked.Load() {
		return nil
	}
	return s.wireConn.SetReadDeadline(t)
}

// clientOf finds the client below a connection that the inner server serves.
func clientOf(c net.Conn) *client {
	switch c := c.(type) {
	case *served:
		return c.client
	case *tls.Conn:
		if cl, ok := c.NetConn().(*client); ok {
			return cl
		}
	case *client:
		return c
	}
	return nil
}

// feed is the listener of the inner server: connections whose door and
// protocol are known.
type feed struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newFeed() *feed {
	return &feed{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept waits for the next connection.
func (f *feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.done:
		return nil, net.ErrClosed
	}
}

// give hands c over, or closes it where nobody accepts any more.
func (f *feed) give(c net.Conn) {
	select {
	case f.conns <- c:
	case <-f.done:
		c.Close()
	}
}

// Close ends Accept and give.
func (f *feed) Close() error {
	f.once.Do(func() { close(f.done) })
	return nil
}

// Addr names the feed; it has no address.
func (f *feed) Addr() net.Addr { return feedAddr{} }

type feedAddr struct{}

func (feedAddr) Network() string { return "feed" }
func (feedAddr) String() string  { return "inner" }

var _ io.Closer = (*feed)(nil)
