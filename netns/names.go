//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/stub"
)

// poolV6 is where the stub's IPv6 addresses come from: a prefix of RFC 4193
// that exists in no network but the sandbox's.
var poolV6 = netip.MustParsePrefix("fd65:6772:6573:7364::/64")

// alwaysOpen are the ports that have a listener for every address.
var alwaysOpen = []uint16{53, 80, 443}

// maxRuledPorts bounds the listeners on ports that rules name: a program that
// asks for every name below a wildcard must not use up our descriptors.
const maxRuledPorts = 1024

// nameServer answers the sandbox's questions and opens what the answers lead
// to.
type nameServer struct {
	s    *Session
	stub *stub.Server
	stop context.CancelFunc
	wait sync.WaitGroup

	mu    sync.Mutex
	names Namer
	given map[string][2]netip.Addr // whose ports a new set of rules may add to

	opening sync.Mutex // held while the launcher is asked
	opened  map[netip.AddrPort]bool
}

func newNameServer(s *Session) (*nameServer, error) {
	n := &nameServer{s: s, names: s.cfg.Names, given: map[string][2]netip.Addr{}, opened: map[netip.AddrPort]bool{}}
	cfg := stub.Config{Knows: n.knows, Open: n.open, Event: n.asked}
	if s.ipv6 {
		cfg.IPv6 = poolV6
	}
	var err error
	n.stub, err = stub.New(cfg)
	return n, err
}

// serve starts the goroutines that answer; they end with the listeners.
func (n *nameServer) serve(d *doorSet) {
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	for _, q := range d.questions {
		n.wait.Go(func() { _ = n.stub.ServePacket(q) }) // its error is that of Close
	}
	for _, l := range d.dialogues {
		n.wait.Go(func() { _ = n.stub.Serve(ctx, l) })
	}
}

// close waits for the goroutines. The listeners must be closed before.
func (n *nameServer) close() {
	n.stop()
	n.wait.Wait()
}

func (n *nameServer) current() Namer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names
}

func (n *nameServer) knows(host string) bool {
	names := n.current()
	return names != nil && names.Knows(host)
}

func (n *nameServer) asked(name, qtype, verdict string, err error) {
	if n.s.cfg.Event != nil {
		n.s.cfg.Event(Event{Kind: Asked, Name: name, Type: qtype, Verdict: verdict, Err: err})
	}
}

// open is called before an answer with a name's own addresses goes out.
func (n *nameServer) open(host string, v4, v6 netip.Addr) error {
	n.mu.Lock()
	n.given[host] = [2]netip.Addr{v4, v6}
	names := n.names
	n.mu.Unlock()
	if names == nil {
		return nil
	}
	return n.openPorts(host, names.Ports(host), v4, v6)
}

func (n *nameServer) openPorts(host string, ports []int, addrs ...netip.Addr) error {
	var errs []error
	for _, port := range ports {
		for _, a := range addrs {
			if a.IsValid() && port > 0 && port < 1<<16 {
				errs = append(errs, n.openPort(host, netip.AddrPortFrom(a, uint16(port))))
			}
		}
	}
	return errors.Join(errs...)
}

// openPort listens on one address and port, once. One that the sandbox itself
// holds cannot be had: the name is not answered then, and an event says so.
func (n *nameServer) openPort(host string, at netip.AddrPort) error {
	if slices.Contains(alwaysOpen, at.Port()) {
		return nil
	}
	n.opening.Lock()
	defer n.opening.Unlock()
	if n.opened[at] {
		return nil
	}
	if len(n.opened) >= maxRuledPorts {
		return fmt.Errorf("listening on %s for %s: %d ports are open already", at, host, len(n.opened))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	l, err := n.s.listen(ctx, at)
	if errors.Is(err, unix.EADDRINUSE) && n.s.cfg.Event != nil {
		n.s.cfg.Event(Event{Kind: PortTaken, Name: host, At: at})
	}
	if err != nil {
		return err
	}
	n.opened[at] = true
	n.s.doors.captured.add(l)
	return nil
}

// setNames puts a new set in force: what was given out before gets the ports
// that it names now, and so do the addresses it names.
func (n *nameServer) setNames(names Namer) error {
	n.mu.Lock()
	n.names = names
	given := maps.Clone(n.given)
	n.mu.Unlock()
	if names == nil {
		return nil
	}
	var errs []error
	for host, addrs := range given {
		errs = append(errs, n.openPorts(host, names.Ports(host), addrs[:]...))
	}
	for _, at := range names.Addresses() {
		if at.Addr().Is4() || n.s.ipv6 {
			errs = append(errs, n.openPort(at.Addr().String(), at))
		}
	}
	return errors.Join(errs...)
}

// SetNames puts another set of names in force, at a reload or a grant. The
// error names ports that the sandbox itself holds; all others are open.
func (s *Session) SetNames(names Namer) error {
	if s.server == nil {
		return nil
	}
	return s.server.setNames(names)
}

// Lookup says which name an address inside was given out for, as the proxy
// asks: "*" is the shared address, no name one that nobody was given, and pool
// is false for an address that is not the stub's.
func (s *Session) Lookup(addr netip.Addr) (name string, pool bool) {
	if s.server == nil {
		return "", false
	}
	return s.server.stub.Lookup(addr)
}
