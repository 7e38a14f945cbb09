package rules

import "strings"

// hosts finds rules by their host, and in one host by the head of their path,
// so that lint takes no time with a long policy either.
type hosts struct {
	all     paths
	byHost  map[string]*paths // by host as written
	domains map[string]*paths // rules for a name and all below it; made when first asked
}

// below widens a search to hosts that a wildcard covers and, with paths, to
// rules whose path begins with the one that is asked for.
type below struct{ paths bool }

func (h *hosts) add(r *linted) {
	if h.byHost == nil {
		h.byHost = map[string]*paths{}
	}
	p := h.byHost[r.Host]
	if p == nil {
		p = &paths{}
		h.byHost[r.Host] = p
	}
	p.all = append(p.all, r)
	h.all.all = append(h.all.all, r)
}

// first is a rule as wanted whose host covers this one, the nearest host
// first; with wide, the first of the list whose host covers this one or is
// covered by it. Only rules whose path can begin as head are asked about.
func (h *hosts) first(host, head string, wide *below, wanted func(*linted) bool) *linted {
	under := wide != nil && wide.paths
	name, wild := strings.CutPrefix(host, "*.")
	if wide != nil && host == "*" {
		return h.all.first(head, under, nil, wanted)
	}
	var found *linted
	try := func(p *paths) bool {
		if p != nil {
			found = p.first(head, under, found, wanted)
		}
		return found != nil && (wide == nil || !wild)
	}
	if wide != nil && wild {
		try(h.domain(name))
	} else if try(h.byHost[host]) || host == "*" || isAddress(name) {
		return found
	}
	for rest := name; ; {
		if try(h.byHost["*."+rest]) {
			return found
		}
		i := strings.IndexByte(rest, '.')
		if i < 0 {
			try(h.byHost["*"])
			return found
		}
		rest = rest[i+1:]
	}
}

// domain holds the rules for a name and for all below it.
func (h *hosts) domain(name string) *paths {
	if h.domains == nil {
		h.domains = map[string]*paths{}
		for _, r := range h.all.all {
			rest := strings.TrimPrefix(r.Host, "*.")
			for more := rest != "*" && !isAddress(rest); more; _, rest, more = strings.Cut(rest, ".") {
				p := h.domains[rest]
				if p == nil {
					p = &paths{}
					h.domains[rest] = p
				}
				p.all = append(p.all, r)
			}
		}
	}
	return h.domains[name]
}

// few is how many rules are gone through one by one.
const few = 16

// paths are rules in the order of the list, found by the head of their path.
type paths struct {
	all       []*linted
	at, under map[string][]*linted // of a head, and of all that begin with it; nil for few
}

// first is the first rule as wanted, or the one known already if that comes
// before. A rule is asked about if its head is the beginning of head or, with
// under, goes on from it.
func (p *paths) first(head string, under bool, known *linted, wanted func(*linted) bool) *linted {
	if len(p.all) <= few {
		return pick(p.all, known, wanted)
	}
	if p.at == nil {
		p.index()
	}
	if under {
		known = pick(p.under[head], known, wanted)
	}
	known = pick(p.at[head], known, wanted)
	for i := range len(head) {
		if head[i] == '/' {
			known = pick(p.at[head[:i]], known, wanted)
		}
	}
	return known
}

func (p *paths) index() {
	p.at, p.under = map[string][]*linted{}, map[string][]*linted{}
	for _, r := range p.all {
		p.at[r.head] = append(p.at[r.head], r)
		for i := range len(r.head) {
			if r.head[i] == '/' {
				p.under[r.head[:i]] = append(p.under[r.head[:i]], r)
			}
		}
	}
}

func pick(list []*linted, known *linted, wanted func(*linted) bool) *linted {
	for _, r := range list {
		if known != nil && known.index <= r.index {
			break
		}
		if wanted(r) {
			return r
		}
	}
	return known
}

// headLen bounds the segments of a head: what is alike for longer is compared
// in full.
const headLen = 6

// head is what a pattern begins with before its first wildcard, a slash in
// front of each segment. A pattern covers another only if its head is how the
// other's begins.
func (s *shape) head() string {
	n := 0
	for n < len(s.segments) && n < headLen && s.segments[n].kind == segmentText {
		n++
	}
	var b strings.Builder
	for _, s := range s.segments[:n] {
		b.WriteByte('/')
		b.WriteString(s.text)
	}
	return b.String()
}
