package rules

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Set is a compiled list of rules. It is safe for concurrent use and never
// changes, but for the counters of its rates. The nil Set denies everything.
type Set struct {
	exact  map[string]*bucket // by host
	below  map[string]*bucket // by the name behind "*."
	any    *bucket            // rules with "*" as host
	broken *compiled          // a deny rule that no parser would have made
	rated  []*compiled        // rules with a rate, in file order
	ledger *ledger

	ends    []time.Time  // of allow rules, tunnels among them, in order
	anyHTTP bool         // some allow rule covers http on 80
	named   map[int]bool // ports that allow rules name, tunnels aside
}

// bucket holds the rules of one host, each list in file order.
type bucket struct {
	allow, deny       []*compiled // what is looked into
	tunnels, closings []*compiled // CONNECT rules: allow, deny
}

// compiled is a rule made ready.
type compiled struct {
	rule    Rule
	index   int
	text    string     // rule.String()
	any     bool       // any method
	forms   []*pattern // allow: one, or one for each reading; deny: each meets every reading
	clauses []clause
	counter *counter // nil without a rate
}

// New compiles rules; their index counts from 0. A rule that ParseMapping would
// not have made allows nothing if it is an allow rule, and denies everything if
// it is a deny rule.
func New(rules []Rule) *Set {
	s := &Set{
		exact: map[string]*bucket{}, below: map[string]*bucket{}, any: &bucket{},
		ledger: newLedger(), named: map[int]bool{},
	}
	for i := range rules {
		c := &compiled{rule: rules[i], index: i, text: rules[i].String(), any: rules[i].anyMethod()}
		if !sound(&rules[i]) {
			if c.rule.Deny && s.broken == nil {
				s.broken = c
			}
			continue
		}
		s.add(c)
	}
	for _, c := range s.rated {
		c.counter = s.ledger.open(c)
	}
	slices.SortFunc(s.ends, time.Time.Compare)
	return s
}

// Ends says whether an allow rule ends behind from, up to and with to. Where
// none does, what was allowed at from still is at to.
func (s *Set) Ends(from, to time.Time) bool {
	if s == nil {
		return false
	}
	i, _ := slices.BinarySearchFunc(s.ends, from, func(end, from time.Time) int {
		if end.After(from) {
			return 1
		}
		return -1
	})
	return i < len(s.ends) && !s.ends[i].After(to)
}

// sound says whether a rule reads back as itself, so that nothing is compiled
// that the parser refuses.
func sound(r *Rule) bool {
	if r.Query != nil && len(r.Query) == 0 {
		return false
	}
	back, err := Parse(r.String())
	if err == nil && (r.Query != nil || r.Limited || r.Rate != Rate{}) {
		back, err = ParseMapping(r.Mapping())
	}
	return err == nil && back.Deny == r.Deny && back.Tunnel == r.Tunnel && back.Scheme == r.Scheme &&
		back.Host == r.Host && back.Port == r.Port && back.Path == r.Path && back.Rate == r.Rate &&
		back.Limited == r.Limited && (!r.Limited || back.MaxRequestBytes == r.MaxRequestBytes) &&
		slices.Equal(back.Methods, r.Methods) && maps.Equal(back.Query, r.Query)
}

// add puts a rule where its host is looked up.
func (s *Set) add(c *compiled) {
	r := &c.rule
	b := s.any
	switch name, wild := strings.CutPrefix(r.Host, "*."); {
	case wild:
		b = bucketOf(s.below, name)
	case r.Host != "*":
		b = bucketOf(s.exact, r.Host)
	}
	c.clauses = compileQuery(r)
	if r.Rate.Count > 0 {
		s.rated = append(s.rated, c)
	}
	if !r.Deny && !r.Until.IsZero() {
		s.ends = append(s.ends, r.Until)
	}
	switch {
	case r.Tunnel && r.Deny:
		b.closings = append(b.closings, c)
	case r.Tunnel:
		b.tunnels = append(b.tunnels, c)
	case r.Deny:
		c.forms = denyPatterns(r.Path)
		b.deny = append(b.deny, c)
	default:
		for _, text := range patternTexts(r.Path) {
			c.forms = append(c.forms, compile(text))
		}
		b.allow = append(b.allow, c)
		if r.Port > 0 {
			s.named[r.Port] = true
		}
		s.anyHTTP = s.anyHTTP || r.covers("http", 80)
	}
}

func bucketOf(m map[string]*bucket, name string) *bucket {
	b := m[name]
	if b == nil {
		b = &bucket{}
		m[name] = b
	}
	return b
}

// buckets appends the buckets whose rules speak of a canonical host. No
// wildcard ever stands for an address.
func (s *Set) buckets(list []*bucket, host string) []*bucket {
	if s == nil || s.any == nil {
		return list
	}
	if b := s.exact[host]; b != nil {
		list = append(list, b)
	}
	if isAddress(host) {
		return list
	}
	if len(s.below) > 0 {
		for name := host; ; {
			if b := s.below[name]; b != nil {
				list = append(list, b)
			}
			i := strings.IndexByte(name, '.')
			if i < 0 {
				break
			}
			name = name[i+1:]
		}
	}
	return append(list, s.any)
}

// isAddress tells addresses from names among canonical hosts.
func isAddress(host string) bool {
	return strings.IndexByte(host, ':') >= 0 || endsInNumber(host)
}

// walk goes through one kind of rule of several buckets in file order.
type walk struct {
	lists []([]*compiled)
}

// next is the rule with the smallest index that was not given yet, nil at the
// end.
func (w *walk) next() *compiled {
	best := -1
	for i, l := range w.lists {
		if len(l) > 0 && (best < 0 || l[0].index < w.lists[best][0].index) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	c := w.lists[best][0]
	w.lists[best] = w.lists[best][1:]
	return c
}

// live says whether the rule is in force: strictly before its end.
func (c *compiled) live(at time.Time) bool {
	return c.rule.Until.IsZero() || at.Before(c.rule.Until)
}

// allowsMethod compares exactly; "*" is every method but CONNECT in any case.
func (c *compiled) allowsMethod(method string) bool {
	if c.any {
		return len(method) != len(connect) || upperASCII(method) != connect
	}
	return contains(c.rule.Methods, method)
}

// deniesMethod compares without regard to case.
func (c *compiled) deniesMethod(method string) bool {
	if c.any {
		return true
	}
	for _, m := range c.rule.Methods {
		if len(m) == len(method) && upperASCII(method) == m {
			return true
		}
	}
	return false
}

// Canonical is CanonicalHost, for consumers that hold a Set as an interface.
func (s *Set) Canonical(host string) (string, error) { return CanonicalHost(host) }

// Knows says whether some allow rule could allow a request or tunnel to this
// canonical host.
func (s *Set) Knows(host string) bool {
	var buf [8]*bucket
	for _, b := range s.buckets(buf[:0], host) {
		if len(b.allow)+len(b.tunnels) > 0 {
			return true
		}
	}
	return false
}

// Ports lists, in order, the ports but 80 and 443 that allow rules name for a
// canonical host, tunnels included. A rule for any port names none.
func (s *Set) Ports(host string) []int {
	var ports []int
	for _, b := range s.buckets(nil, host) {
		for _, list := range [...][]*compiled{b.allow, b.tunnels} {
			for _, c := range list {
				if p := c.rule.Port; p > 0 && p != 80 && p != 443 && !slices.Contains(ports, p) {
					ports = append(ports, p)
				}
			}
		}
	}
	slices.Sort(ports)
	return ports
}

// Addresses lists, in order, the address literals that allow rules name with
// the ports that they write out, 80 and 443 included.
func (s *Set) Addresses() []netip.AddrPort {
	if s == nil {
		return nil
	}
	var list []netip.AddrPort
	for _, b := range s.exact {
		for _, rules := range [...][]*compiled{b.allow, b.tunnels} {
			for _, c := range rules {
				a, ok := c.rule.address()
				if !ok || c.rule.Port <= 0 {
					continue
				}
				if ap := netip.AddrPortFrom(a, uint16(c.rule.Port)); !slices.Contains(list, ap) {
					list = append(list, ap)
				}
			}
		}
	}
	slices.SortFunc(list, netip.AddrPort.Compare)
	return list
}

// key tells rules with the same limits from others, for their counters.
func (c *compiled) key(n int) string {
	return fmt.Sprintf("%s %v %s %v %d %d", c.text, c.rule.Query, c.rule.Rate, c.rule.Limited, c.rule.MaxRequestBytes, n)
}
