//go:build linux

// Package stub is the DNS server of a sandbox. It resolves nothing and asks
// nobody: to a name it gives an address that leads to egressd's own listeners,
// and its table says, when the connection comes, which name that was. So a
// client that knows nothing of proxies is caught, every denial can be read where
// it happens, and DNS carries nothing out.
//
//   - A name that some rule could allow gets an address of its own, from
//     198.18.0.0/15 (RFC 2544, which no public name has) and an IPv6 prefix
//     (RFC 4193), for the rest of the session.
//   - All others share one address, which names no host.
//   - localhost is the sandbox's loopback; questions for anything but addresses
//     have an empty answer, malformed ones FORMERR.
//
// [Server] answers on the sockets it is given; [Server.Lookup] is the table.
// What a sandbox can do to it is bounded: questions at a time, connections, names
// with an address, what is remembered of names that were seen.
package stub

import (
	"errors"
	"fmt"
	"net/netip"
)

// Pool4 is where the IPv4 addresses come from.
var Pool4 = netip.MustParsePrefix("198.18.0.0/15")

// Places in both pools, counted from their first address.
const (
	sharedIndex = 1 // the address of every name that has none of its own
	ownIndex    = 2 // the sandbox's own, which its loopback device has
	firstIndex  = 3
)

// Verdicts, as told to Config.Event.
const (
	Given  = "given"  // an address of the name's own
	Shared = "shared" // the shared address
	Local  = "local"  // the loopback
	Empty  = "empty"  // no such records: another type, or no IPv6
	Failed = "failed" // SERVFAIL: the pool is used up, or Open failed
)

// Config is what a Server answers by. Its functions are called from several
// goroutines at a time.
type Config struct {
	// Knows says whether a name, lower case and without the last dot, gets an
	// address of its own. It is asked at every question, so it may follow a
	// reload; a name keeps what it was given. Nil knows none, so that all share
	// one address. Where every name is to have its own (learn, approvals), it
	// says true.
	Knows func(host string) bool
	// Open, if set, makes ready what a name's addresses need before they are
	// given out: listeners on the ports that rules name. It is called at every
	// question for such a name, so it must be quick where all is ready; an error
	// is SERVFAIL and leaves it to the next question. The second address is the
	// zero Addr without IPv6.
	Open func(host string, addr4, addr6 netip.Addr) error
	// Event, if set, is told of a question before it is answered, once for each
	// name and type: the name in its presentation form (RFC 4343, 2.1), the type
	// by its mnemonic or as TYPE123 (RFC 3597, 5), a verdict, and what failed
	// where that is Failed. Of a flood of names the oldest are forgotten, and
	// told of again.
	Event func(name, qtype, verdict string, err error)
	// IPv6 is the prefix of IPv6 addresses, /96 or shorter, RFC 4193's by its
	// sense. The zero Prefix is no IPv6: questions for AAAA have empty answers.
	IPv6 netip.Prefix
}

// Server is a DNS server and its table of names. It is safe for concurrent use.
type Server struct {
	config Config
	table  *table
	seen   *seen
	busy   chan struct{} // a place for each question being answered
}

// questionsAtOnce bounds the questions being answered: one whose Open waits
// must not hold up the others.
const questionsAtOnce = 128

// New makes a Server. The error says that the IPv6 prefix is too long.
func New(c Config) (*Server, error) {
	if c.IPv6.IsValid() && (!c.IPv6.Addr().Is6() || c.IPv6.Addr().Is4In6() || c.IPv6.Bits() > 96) {
		return nil, fmt.Errorf("making the DNS stub: %s is no IPv6 prefix of /96 or shorter", c.IPv6)
	}
	return &Server{
		config: c,
		table:  newTable(c.IPv6.Masked()),
		seen:   newSeen(seenNames),
		busy:   make(chan struct{}, questionsAtOnce),
	}, nil
}

// Lookup says which name an address was given out for. Pool is false for an
// address that is not the stub's; the name is "*" for the shared address, and
// empty for one that nobody was given.
func (s *Server) Lookup(addr netip.Addr) (name string, pool bool) { return s.table.lookup(addr) }

// SharedAddr4 is the address of all names without one of their own.
func SharedAddr4() netip.Addr { return at(Pool4, sharedIndex) }

// OwnAddr4 is the address that the sandbox's loopback device has.
func OwnAddr4() netip.Addr { return at(Pool4, ownIndex) }

// SharedAddr6 is the same in an IPv6 prefix.
func SharedAddr6(prefix netip.Prefix) netip.Addr { return at(prefix.Masked(), sharedIndex) }

// OwnAddr6 is the sandbox's own address in an IPv6 prefix.
func OwnAddr6(prefix netip.Prefix) netip.Addr { return at(prefix.Masked(), ownIndex) }

// errUsedUp is the error of an Event when no address is left.
var errUsedUp = errors.New("giving out an address: the pool is used up")
