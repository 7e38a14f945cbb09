package netguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Defaults of the Dialer's zero fields.
const (
	DefaultLookupTimeout  = 5 * time.Second
	DefaultConnectTimeout = 10 * time.Second
)

// leastShare is what a connection attempt gets at least, however many answers
// are still to be tried.
const leastShare = 2 * time.Second

// Dialer opens the proxy's connections to origins. The zero value refuses: its
// Guard is nil. It is safe for concurrent use once built.
type Dialer struct {
	// Guard judges every address. Nil refuses all but what Pin holds.
	Guard *Guard
	// Resolver looks names up, once for each dial. Nil is the system's.
	Resolver interface {
		LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	}
	// Pin is upstream.resolve: canonical "host:port" to "ip:port". It is the
	// operator's word, so the Guard is not asked, and nothing is looked up.
	Pin map[string]string
	// LookupTimeout bounds a lookup, DefaultLookupTimeout if 0.
	LookupTimeout time.Duration
	// ConnectTimeout bounds the attempts to connect, all answers together,
	// DefaultConnectTimeout if 0.
	ConnectTimeout time.Duration
	// Dial is for tests: it gets checked addresses ("ip:port") only and stands
	// in for the kernel. Nil is a net.Dialer whose ControlContext looks at what
	// is really dialled.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Error is a dial that failed for another cause than the guard.
type Error struct {
	reason string
	err    error
}

// Error is the text of the cause.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.err }

// Reason is dns, connect or timeout.
func (e *Error) Reason() string { return e.reason }

// DialContext connects to addr, "host:port" with a numeric port. Network is
// tcp, tcp4 or tcp6. A name is looked up once; if any answer is refused, so is
// the name; else the answers are tried in their order, until one connects.
//
// Errors have a Reason: private_address (*Refusal), dns, connect, timeout. A
// context that was cancelled shows in errors.Is.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := splitAddr(addr)
	if err != nil {
		return nil, &Error{"connect", fmt.Errorf("dialling %q: %w", addr, err)}
	}
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, &Error{"connect", fmt.Errorf("dialling %s: %w", addr, net.UnknownNetworkError(network))}
	}
	if to, ok := d.Pin[net.JoinHostPort(host, strconv.Itoa(int(port)))]; ok {
		pinned, err := netip.ParseAddrPort(to)
		if err != nil {
			return nil, &Error{"connect", fmt.Errorf("dialling %s: reading its pinned address: %w", addr, err)}
		}
		only := func(a netip.AddrPort) error {
			if a.Port() == pinned.Port() && plain(a.Addr()) == plain(pinned.Addr()) {
				return nil
			}
			return &Refusal{Host: host, Addr: a.Addr(), Verdict: Verdict{Verdict: Blocked, Class: Reserved, Reason: privateAddress}}
		}
		return d.connect(ctx, network, addr, []netip.Addr{pinned.Addr()}, pinned.Port(), only)
	}
	addrs, err := d.Lookup(ctx, "ip"+network[len("tcp"):], host)
	if err != nil {
		return nil, err
	}
	checked := func(a netip.AddrPort) error { return d.Guard.Check(host, a.Addr()) }
	return d.connect(ctx, network, addr, addrs, port, checked)
}

// Holds says whether a connection to addr, "host:port" as DialContext takes it,
// that is open to remote ("ip:port") may stay: what it would not dial now is an
// error with the Reason private_address. It is for connections that an older
// Dialer opened.
func (d *Dialer) Holds(addr, remote string) error {
	host, port, err := splitAddr(addr)
	if err != nil {
		return &Refusal{Host: addr, Verdict: Verdict{Verdict: Blocked, Class: Reserved, Reason: privateAddress}}
	}
	to, err := netip.ParseAddrPort(remote)
	if err != nil {
		return &Refusal{Host: host, Verdict: Verdict{Verdict: Blocked, Class: Reserved, Reason: privateAddress}}
	}
	if pin, ok := d.Pin[net.JoinHostPort(host, strconv.Itoa(int(port)))]; ok {
		if pinned, err := netip.ParseAddrPort(pin); err == nil && pinned.Port() == to.Port() && plain(pinned.Addr()) == plain(to.Addr()) {
			return nil
		}
		return &Refusal{Host: host, Addr: to.Addr(), Verdict: Verdict{Verdict: Blocked, Class: Reserved, Reason: privateAddress}}
	}
	return d.Guard.Check(host, to.Addr())
}

// Lookup resolves host once, within LookupTimeout, and returns its answers if
// every one of them may be dialled. An address stands for itself. Network is
// ip, ip4 or ip6. It is also what to ask before a name is handed to an upstream
// proxy. Errors have a Reason: private_address, dns, timeout.
func (d *Dialer) Lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	host = canonicalHost(host)
	if host == "" {
		// net would take no host for this one.
		return nil, &Error{"dns", errors.New("resolving a name: it is empty")}
	}
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, a)
	} else {
		if addrs, err = d.lookup(ctx, network, host); err != nil {
			return nil, err
		}
	}
	if err := d.Guard.CheckAll(host, addrs); err != nil {
		return nil, err
	}
	return addrs, nil
}

func (d *Dialer) lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	resolver := d.Resolver
	if resolver == nil {
		system, err := NewResolver("")
		if err != nil {
			return nil, &Error{"dns", fmt.Errorf("resolving %s: %w", host, err)}
		}
		resolver = system
	}
	ctx, cancel := context.WithTimeout(ctx, orDefault(d.LookupTimeout, DefaultLookupTimeout))
	defer cancel()
	type answer struct {
		addrs []netip.Addr
		err   error
	}
	// A resolver that does not heed its context (the C library's) must not hold
	// the request; its goroutine ends when it does.
	done := make(chan answer, 1)
	go func() {
		addrs, err := resolver.LookupNetIP(ctx, network, host)
		done <- answer{addrs, err}
	}()
	var got answer
	select {
	case got = <-done:
	case <-ctx.Done():
		got.err = ctx.Err()
	}
	switch {
	case got.err != nil && isTimeout(got.err):
		return nil, &Error{"timeout", fmt.Errorf("resolving %s: %w", host, got.err)}
	case got.err != nil:
		return nil, &Error{"dns", fmt.Errorf("resolving %s: %w", host, got.err)}
	case len(got.addrs) == 0:
		return nil, &Error{"dns", fmt.Errorf("resolving %s: no address", host)}
	}
	return got.addrs, nil
}

// connect tries addrs in order. Look is asked again by the kernel's side of the
// dial, about what the socket is connected to.
func (d *Dialer) connect(ctx context.Context, network, target string, addrs []netip.Addr, port uint16, look func(netip.AddrPort) error) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, orDefault(d.ConnectTimeout, DefaultConnectTimeout))
	defer cancel()
	dial := d.Dial
	if dial == nil {
		dial = (&net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("reading the address of a socket: %w", err)
			}
			return look(a)
		}}).DialContext
	}
	var first error
	for i, a := range addrs {
		if ctx.Err() != nil {
			break
		}
		conn, err := dialOne(ctx, dial, network, netip.AddrPortFrom(a.Unmap(), port), len(addrs)-i)
		if err == nil {
			return conn, nil
		}
		if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
			return nil, refusal
		}
		if first == nil {
			first = err
		}
	}
	err := first
	if err == nil || ctx.Err() != nil {
		err = errors.Join(ctx.Err(), first)
	}
	reason := "connect"
	if isTimeout(err) {
		reason = "timeout"
	}
	return nil, &Error{reason, fmt.Errorf("connecting to %s: %w", target, err)}
}

// dialOne gives one address its share of the time that is left.
func dialOne(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), network string, to netip.AddrPort, left int) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	share := max(time.Until(deadline)/time.Duration(left), leastShare)
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	return dial(ctx, network, to.String())
}

func splitAddr(addr string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("port %q is not a number from 1 to 65535", text)
	}
	return canonicalHost(host), uint16(n), nil
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func orDefault(d, standard time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return standard
}
