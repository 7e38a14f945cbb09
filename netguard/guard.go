// Package netguard decides which addresses egressd may dial for a sandbox, and
// dials them.
//
// A rule names a host; what the name resolves to is somebody else's word. A
// name that points to 127.0.0.1, to a router, or to a cloud's metadata service
// would turn the proxy into a way into the machine and its network (SSRF, DNS
// rebinding). So every address is judged before a packet leaves:
//
//   - [Guard.Judge] knows the IANA special-purpose registries, multicast, the
//     metadata addresses of the clouds and the addresses of this host, and looks
//     through every way to write an IPv4 address inside an IPv6 one.
//   - [Dialer] looks a name up once, refuses it if any answer is refused, dials
//     only what was checked, and looks again at what the kernel is really asked
//     to connect to.
//   - [Allow] is the operator's word, egress_allow_private_destinations: a
//     switch, ranges, single addresses, hosts.
//   - [Resolver] asks the system's resolver, or the one of upstream.dns.
//
// The zero value refuses: an empty Config opens nothing, a nil *Guard refuses
// every address.
package netguard

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Outcome is what a Guard says of an address.
type Outcome string

const (
	// Blocked means that the address must not be dialled.
	Blocked Outcome = "blocked"
	// Public means that the address is globally reachable.
	Public Outcome = "public"
	// Opened means that the address is not public, but that Allow opens it.
	Opened Outcome = "opened"
)

// privateAddress is the reason of every refusal, from the closed set of reasons.
const privateAddress = "private_address"

// Verdict is the judgement of one address.
type Verdict struct {
	// Verdict is the outcome. The zero value is no outcome and opens nothing.
	Verdict Outcome
	// Class is the kind of address, Public's being "public".
	Class Class
	// Reason is private_address where the address is blocked, else empty.
	Reason string
	// Embedded is the IPv4 address, hidden in an IPv6 one, that decided. It is
	// the zero Addr where nothing was hidden.
	Embedded netip.Addr
}

// Config says what a Guard opens and what is this host.
type Config struct {
	// Allow is the operator's list of private destinations. Zero opens none.
	Allow Allow
	// Local holds the addresses of this host, which no range opens.
	Local []netip.Addr
	// Refresh, if set, tells the addresses of this host anew: interfaces come
	// and go in a long session. It is asked at most every five seconds, and what
	// it said last holds where it fails. LocalAddrs fits.
	Refresh func() ([]netip.Addr, error)
}

// refreshEvery bounds how long an address that this host was just given can be
// taken for somebody else's. Listing the interfaces takes some 100 µs.
const refreshEvery = 5 * time.Second

// Guard judges addresses. It is safe for concurrent use.
type Guard struct {
	allow   Allow
	refresh func() ([]netip.Addr, error)

	mu    sync.Mutex
	local map[netip.Addr]bool
	read  time.Time // when local was last refreshed
}

// New makes a Guard.
func New(c Config) *Guard {
	g := &Guard{allow: c.Allow.clone(), refresh: c.Refresh, local: map[netip.Addr]bool{}}
	for _, a := range c.Local {
		g.local[plain(a)] = true
	}
	return g
}

// plain takes off a zone and the mapping of RFC 4291, 2.5.5.2, so that one
// address has one form.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// Judge says whether addr may be dialled for host, the canonical name that was
// asked for (or the address itself, where no name was).
func (g *Guard) Judge(host string, addr netip.Addr) Verdict {
	if g == nil || !addr.IsValid() {
		return Verdict{Verdict: Blocked, Class: Reserved, Reason: privateAddress}
	}
	hidden := embedded(addr)
	if len(hidden) == 0 {
		return g.judge(host, plain(addr))
	}
	// Every hidden address must pass: the first that is blocked decides, else
	// the last that had to be opened, else the last.
	var v Verdict
	for _, a := range hidden {
		w := g.judge(host, a)
		w.Embedded = a
		if w.Verdict == Blocked {
			return w
		}
		if v.Verdict != Opened || w.Verdict == Opened {
			v = w
		}
	}
	return v
}

// judge judges an address in its plain form, which hides nothing.
func (g *Guard) judge(host string, a netip.Addr) Verdict {
	c := classify(a)
	// This host's loopback and link-local addresses keep their own class, which
	// is as shut and says more.
	if !c.shut() && g.isLocal(a) {
		c = ThisHost
	}
	switch {
	case c == PublicClass:
		return Verdict{Verdict: Public, Class: c}
	case g.allow.opens(host, a, c):
		return Verdict{Verdict: Opened, Class: c}
	}
	return Verdict{Verdict: Blocked, Class: c, Reason: privateAddress}
}

func (g *Guard) isLocal(a netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refresh != nil && time.Since(g.read) > refreshEvery {
		g.read = time.Now()
		if addrs, err := g.refresh(); err == nil {
			g.local = make(map[netip.Addr]bool, len(addrs))
			for _, a := range addrs {
				g.local[plain(a)] = true
			}
		}
	}
	return g.local[a]
}

// Check returns a *Refusal if addr must not be dialled for host, else nil.
func (g *Guard) Check(host string, addr netip.Addr) error {
	v := g.Judge(host, addr)
	if v.Verdict == Public || v.Verdict == Opened {
		return nil
	}
	return &Refusal{Host: host, Addr: addr, Verdict: v}
}

// CheckAll returns a *Refusal if any of a name's answers must not be dialled.
// A name with one blocked answer is refused whole: which answer a client picks
// is otherwise up to whoever answers the lookup. No answers are refused too.
func (g *Guard) CheckAll(host string, addrs []netip.Addr) error {
	if len(addrs) == 0 {
		return &Refusal{Host: host, Verdict: Verdict{Verdict: Blocked, Class: Reserved, Reason: privateAddress}}
	}
	for _, a := range addrs {
		if err := g.Check(host, a); err != nil {
			return err
		}
	}
	return nil
}

// Refusal is the error for an address that is blocked.
type Refusal struct {
	Host    string
	Addr    netip.Addr
	Verdict Verdict
}

// Error says which address was refused and why.
func (r *Refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "dialling %s: address %s", r.Host, r.Addr)
	if r.Verdict.Embedded.IsValid() {
		fmt.Fprintf(&b, ", which holds %s,", r.Verdict.Embedded)
	}
	fmt.Fprintf(&b, " is not public (%s)", r.Verdict.Class)
	return b.String()
}

// Reason is private_address.
func (*Refusal) Reason() string { return privateAddress }

// canonicalHost folds what a caller may have left in a name: case and the dot
// of the root.
func canonicalHost(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

func (a Allow) clone() Allow {
	return Allow{All: a.All, Prefixes: slices.Clone(a.Prefixes), Hosts: slices.Clone(a.Hosts)}
}
