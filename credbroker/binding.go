package credbroker

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// binding is one place that a credential is good for.
type binding struct {
	cred *credential
	port int
	path *pathGlob
}

// site is what is known of one host: every binding it has, on whatever port.
type site struct {
	bindings []binding
	// before and after are the host's in the brokers before and after a reload.
	before *site
	after  atomic.Pointer[site]
	// scanned is what answers are looked through for, as of some version.
	scanned atomic.Pointer[scanned]
	// linger is how long a held-back piece of an answer may wait: the longest of
	// all entries, and any time where one sets none.
	linger time.Duration
	// clear says that the secret of a binding travels as it is, and keepsRange that
	// every such entry keeps Range.
	clear, keepsRange bool
}

// sites finds what is bound to a host.
type sites struct {
	exact map[string]*site
	below map[string]*site // by what follows the star: ".amazonaws.com"
}

// host gives the site of a host; nil where nothing is bound to it.
func (s *sites) host(name string) *site {
	if found := s.exact[name]; found != nil || len(s.below) == 0 {
		return found
	}
	for i := 1; i < len(name); i++ {
		if name[i] == '.' {
			if found := s.below[name[i:]]; found != nil {
				return found
			}
		}
	}
	return nil
}

// bind adds a binding to a host's site.
func (s *sites) bind(host string, b binding) {
	place, name := s.exact, host
	if rest, wild := strings.CutPrefix(host, "*"); wild {
		place, name = s.below, rest
	}
	if place[name] == nil {
		place[name] = &site{}
	}
	place[name].bindings = append(place[name].bindings, b)
}

// own are the secrets of the site's entries.
func (x *site) own() []known {
	var out []known
	var done []*credential
	for _, at := range x.bindings {
		if !slices.Contains(done, at.cred) {
			done = append(done, at.cred)
			out = append(out, at.cred.secrets()...)
		}
	}
	return out
}

// secrets are all that answers of the site are looked through for: those of
// brokers before and after a reload too, whose requests are still under way and
// may have a secret anew.
func (x *site) secrets() []known {
	out := x.own()
	for before := x.before; before != nil; before = before.before {
		out = append(out, before.own()...)
	}
	for after := x.after.Load(); after != nil; after = after.after.Load() {
		out = append(out, after.own()...)
	}
	return out
}

// settle gives every site what is bound to a wildcard above it too, those with
// the fewest labels first, so that each is whole before one below it asks; and
// what was known of its secrets before a reload.
func (s *sites) settle(previous *Broker) {
	names := slices.SortedFunc(maps.Keys(s.below), func(a, b string) int { return len(a) - len(b) })
	inherit := func(name string, to *site) {
		for i := 1; i < len(name); i++ {
			if name[i] == '.' && s.below[name[i:]] != nil {
				to.bindings = append(to.bindings, s.below[name[i:]].bindings...)
				return
			}
		}
	}
	for _, name := range names {
		inherit(name, s.below[name])
	}
	for name, to := range s.exact {
		inherit(name, to)
	}
	for _, all := range []map[string]*site{s.exact, s.below} {
		for name, x := range all {
			x.settle()
			if previous == nil {
				continue
			}
			if x.before = previous.sites.host(name); x.before == nil {
				x.before = previous.sites.below[name]
			}
			if x.before != nil {
				x.before.after.Store(x)
			}
		}
	}
}

func (x *site) settle() {
	x.keepsRange = true
	for i, b := range x.bindings {
		switch wait := b.cred.entry.Linger; {
		case wait == 0 || i > 0 && x.linger == 0:
			x.linger = 0
		default:
			x.linger = max(x.linger, wait)
		}
		if b.cred.entry.Type != AWSSigV4 {
			x.clear = true
			x.keepsRange = x.keepsRange && b.cred.entry.Ranges
		}
	}
}

// place is where a request goes, as bindings see it.
type place struct {
	*site
	port int
	// plain says that the request goes out without TLS. It is then good for a
	// binding of any port: what would carry a secret is refused.
	plain bool
	path  string // without the query
	also  overrides
}

// covered gives the bindings that the request is good for.
func (p *place) covered(yield func(b *binding) bool) {
	if p.site == nil {
		return
	}
	for i := range p.bindings {
		b := &p.bindings[i]
		if (b.port == p.port || p.plain) && b.path.covers(p.path) && !slices.ContainsFunc(p.also.paths, b.path.misses) && !yield(b) {
			return
		}
	}
}

// owners gives the bindings that say what a credential of the client's own
// means: those of any port, where one reading of the path is theirs.
func (p *place) owners(yield func(b *binding) bool) {
	for i := range p.bindings {
		if b := &p.bindings[i]; (b.path.touches(p.path) || slices.ContainsFunc(p.also.paths, b.path.touches)) && !yield(b) {
			return
		}
	}
}

// placeOf reads where a request goes.
func placeOf(u *url.URL) (host string, p place) {
	host, p.plain = u.Host, u.Scheme == "http"
	p.port = 443
	if p.plain {
		p.port = 80
	}
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if n, err := strconv.Atoi(host[i+1:]); err == nil {
			p.port = n
		}
		host = host[:i]
	}
	return strings.ToLower(strings.Trim(host, "[]")), p
}

// rawPath is the path that goes out, byte for byte.
func rawPath(u *url.URL) string {
	if u.Opaque != "" {
		return u.Opaque
	}
	return u.EscapedPath()
}
