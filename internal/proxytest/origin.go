package proxytest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every write of an origin and a peer, so that a test that
// hangs ends by itself.
const patience = 20 * time.Second

// Origin is a scripted server of raw bytes behind every address that Dial is
// asked for. Port 443 speaks TLS, 80 does not, other ports what the first byte
// says; with Raw none looks at what comes.
type Origin struct {
	// CA signs the certificates.
	CA *CA
	// Scripts has one entry for each request, in the order of their heads over
	// all connections; requests beyond it get 200 with the body "ok".
	Scripts []Script
	// Flaw is what is wrong: refused, selfsigned, wrongname, expired, or "".
	Flaw string
	// Raw says that no request is looked for: all bytes are recorded as they are.
	Raw bool

	listener net.Listener
	pair     sync.Mutex
	wait     sync.WaitGroup

	mu      sync.Mutex
	dialled []netip.AddrPort
	conns   []*originConn
	whole   []Message
	heads   int
	faults  []string
}

// NewOrigin starts an origin that ends with the test.
func NewOrigin(t testing.TB, ca *CA) *Origin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for origin: %v", err)
	}
	o := &Origin{CA: ca, listener: l}
	t.Cleanup(o.Close)
	return o
}

// Dial makes a connection to the origin as if it stood at addr, an address and
// port. It is the hook for the guard's dialler.
func (o *Origin) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dialling origin: %w", err)
	}
	o.mu.Lock()
	o.dialled = append(o.dialled, at)
	o.mu.Unlock()
	if o.Flaw == "refused" {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(at), Err: syscall.ECONNREFUSED}
	}
	o.pair.Lock()
	defer o.pair.Unlock()
	var d net.Dialer
	near, err := d.DialContext(ctx, "tcp", o.listener.Addr().String())
	if err != nil {
		return nil, err
	}
	far, err := o.listener.Accept()
	if err != nil {
		near.Close()
		return nil, err
	}
	c := &originConn{o: o, Conn: far, tcp: far}
	o.mu.Lock()
	o.conns = append(o.conns, c)
	o.mu.Unlock()
	o.wait.Go(func() { c.serve(at) })
	return near, nil
}

// Then adds scripts for the requests that come from now on, behind the answers
// of those that have come.
func (o *Origin) Then(scripts ...Script) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.Scripts) < o.heads {
		o.Scripts = append(o.Scripts, nil)
	}
	o.Scripts = append(o.Scripts[:o.heads:o.heads], scripts...)
}

// Close ends every connection and waits.
func (o *Origin) Close() {
	o.listener.Close()
	o.mu.Lock()
	conns := slices.Clone(o.conns)
	o.mu.Unlock()
	for _, c := range conns {
		c.tcp.Close()
	}
	o.wait.Wait()
}

// Seen is what reached an origin.
type Seen struct {
	Requests []Message        // whole ones, in the order they became whole
	Bytes    []string         // by connection, inside TLS
	Wire     []string         // by connection, as they came
	Partial  int              // bytes that belong to no whole request and no switched protocol
	Faults   []string         // what the strict parser refused
	Dialled  []netip.AddrPort // in order
}

// Seen returns what has reached the origin up to now.
func (o *Origin) Seen() Seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := Seen{Requests: slices.Clone(o.whole), Faults: slices.Clone(o.faults), Dialled: slices.Clone(o.dialled)}
	for _, c := range o.conns {
		s.Bytes = append(s.Bytes, string(c.got))
		s.Wire = append(s.Wire, string(c.wire))
		if !c.switched {
			s.Partial += len(c.got) - c.parsed
		}
	}
	return s
}

// originConn is one connection of an Origin. Its fields are guarded by o.mu.
type originConn struct {
	o        *Origin
	net.Conn          // with TLS, where there is any
	tcp      net.Conn // without
	wire     []byte
	got      []byte
	parsed   int
	switched bool
}

// tap records what is read from the network, below TLS.
type tap struct {
	net.Conn
	c *originConn
}

func (t tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.c.o.mu.Lock()
	t.c.wire = append(t.c.wire, b[:n]...)
	t.c.o.mu.Unlock()
	return n, err
}

// replay gives back what was read to look at it.
type replay struct {
	net.Conn
	head []byte
}

func (r *replay) Read(b []byte) (int, error) {
	if len(r.head) > 0 {
		n := copy(b, r.head)
		r.head = r.head[n:]
		return n, nil
	}
	return r.Conn.Read(b)
}

// CloseWrite ends the client's direction.
func (r *replay) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.New("closing a direction: not of this connection")
}

func (c *originConn) serve(at netip.AddrPort) {
	defer func() { c.Conn.Close() }()
	c.Conn = tap{c.tcp, c}
	if script := c.opening(); script != nil {
		c.play(script, 0, nil)
		c.drain()
		return
	}
	if !c.o.Raw && at.Port() != 80 {
		first := make([]byte, 1)
		if n, _ := c.Conn.Read(first); n == 0 {
			return
		}
		c.Conn = &replay{Conn: c.Conn, head: first}
		if at.Port() == 443 || first[0] == 0x16 {
			conn := tls.Server(c.Conn, c.o.CA.ServerConfig(at.Addr().String(), c.o.Flaw, "http/1.1"))
			if conn.Handshake() != nil {
				return
			}
			c.Conn = conn
		}
	}
	if c.o.Raw {
		c.drain()
		return
	}
	for c.exchange() {
	}
}

// opening takes the next script if it begins as soon as the connection is there.
func (c *originConn) opening() Script {
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	if n := c.o.heads; n < len(c.o.Scripts) && len(c.o.Scripts[n]) > 0 && c.o.Scripts[n][0].On == "open" {
		c.o.heads++
		return c.o.Scripts[n]
	}
	return nil
}

// exchange reads one request and answers it, and tells whether another may follow.
func (c *originConn) exchange() bool {
	m, n, ok := c.head()
	if !ok {
		return false
	}
	f, err := RequestFraming(m)
	if err != nil {
		c.fault(err)
		return false
	}
	script := c.o.next(m)
	done, stop := c.play(script, 0, func(s Step) bool { return s.On == "head" })
	if stop {
		return false
	}
	for {
		k, whole, err := ParseBody(&m, f, c.rest()[n:], false)
		if err != nil {
			c.fault(err)
			return false
		}
		if whole {
			n += k
			break
		}
		if !c.more() {
			return false
		}
	}
	c.o.mu.Lock()
	c.parsed += n
	c.o.whole = append(c.o.whole, m)
	c.o.mu.Unlock()
	_, stop = c.play(script, done, nil)
	return !stop && !slices.ContainsFunc(Values(m.Fields, "Connection"), func(v string) bool { return strings.EqualFold(v, "close") })
}

// next takes the script of the request whose head is m.
func (o *Origin) next(m Message) Script {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.heads
	o.heads++
	if n < len(o.Scripts) {
		return o.Scripts[n]
	}
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
	if !strings.HasPrefix(m.Line, "HEAD ") {
		answer += "ok"
	}
	return Script{{On: "body", Send: Bytes(answer)}}
}

// head reads until a head is whole.
func (c *originConn) head() (m Message, n int, ok bool) {
	for {
		if rest := c.rest(); len(rest) > 0 {
			m, n, err := ParseHead(rest)
			if err != nil {
				c.fault(err)
				return m, 0, false
			}
			if n > 0 {
				return m, n, true
			}
		}
		if !c.more() {
			return m, 0, false
		}
	}
}

// play does the steps from the given one on while may allows them, and tells
// how many are done and whether the connection is over.
func (c *originConn) play(script Script, from int, may func(Step) bool) (done int, stop bool) {
	for i, step := range script[from:] {
		if may != nil && !may(step) {
			return from + i, false
		}
		if step.Before != nil {
			step.Before()
		}
		c.SetWriteDeadline(time.Now().Add(patience))
		if _, err := c.Write([]byte(step.Send)); err != nil {
			return 0, true
		}
		if bytes.Contains([]byte(step.Send), []byte(" 101 ")) || step.On == "open" {
			c.o.mu.Lock()
			c.switched = true
			c.o.mu.Unlock()
		}
		switch {
		case step.Close:
			return 0, true
		case step.Echo:
			c.echo()
			return 0, true
		}
	}
	c.o.mu.Lock()
	switched := c.switched
	c.o.mu.Unlock()
	if switched && len(script) > 0 && script[0].On != "open" {
		c.drain()
		return 0, true
	}
	return len(script), false
}

// echo sends back what is there and what comes.
func (c *originConn) echo() {
	for {
		rest := c.rest()
		if len(rest) > 0 {
			if _, err := c.Write(rest); err != nil {
				return
			}
			c.o.mu.Lock()
			c.parsed += len(rest)
			c.o.mu.Unlock()
		} else if !c.more() {
			return
		}
	}
}

// drain records what comes.
func (c *originConn) drain() {
	for c.more() {
	}
}

// rest is what has come and belongs to no whole request yet.
func (c *originConn) rest() []byte {
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	return c.got[c.parsed:len(c.got):len(c.got)]
}

// more reads once.
func (c *originConn) more() bool {
	b := make([]byte, 32<<10)
	n, err := c.Read(b)
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	c.got = append(c.got, b[:n]...)
	return n > 0 || err == nil
}

func (c *originConn) fault(err error) {
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	c.o.faults = append(c.o.faults, err.Error())
}
