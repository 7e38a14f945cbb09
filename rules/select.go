package rules

import "time"

// Rungs of the ladder that gives a denial its reason: how far the best allow
// rule came.
const (
	rungHost = iota
	rungPort
	rungMethod
	rungPath
	rungQuery
	rungUntil
	rungAll
)

// rungReasons are the reasons for the rung that was not passed.
var rungReasons = [...]string{
	rungHost: "no_rule", rungPort: "port_not_allowed", rungMethod: "method_not_allowed",
	rungPath: "path_not_allowed", rungQuery: "query_not_allowed", rungUntil: "expired",
}

// reading is one method, target and text of its path; form is which form of a
// pattern it meets.
type reading struct {
	method, view int // their places in the ask
	text         string
	form         int
}

// readings lists what must be allowed: every method with every distinct text of
// every target.
func (a *ask) readings(list []reading) []reading {
	if a.tunnel {
		return append(list, reading{})
	}
	for mi := range a.methods() {
		for vi := range a.views() {
			v := a.viewAt(vi)
			if v.texts == nil {
				list = append(list, reading{mi, vi, v.path, 0})
				continue
			}
			first := len(list)
		texts:
			for form, text := range v.texts {
				for _, r := range list[first:] {
					if r.text == text {
						continue texts
					}
				}
				list = append(list, reading{mi, vi, text, form})
			}
		}
	}
	return list
}

// rung says how far a rule comes with a reading.
func (c *compiled) rung(a *ask, r *reading) int {
	if a.tunnel {
		return c.tunnelRung(a)
	}
	switch {
	case !c.rule.covers(a.scheme, a.port):
		return rungPort
	case c.rule.Tunnel || !c.allowsMethod(a.methodAt(r.method)):
		return rungMethod
	}
	form := c.forms[0]
	if len(c.forms) > 1 {
		form = c.forms[r.form]
	}
	switch {
	case !form.match(r.text, false):
		return rungPath
	case len(c.clauses) > 0 && !allowQuery(c.clauses, a.viewAt(r.view).query):
		return rungQuery
	case !c.live(a.at):
		return rungUntil
	}
	return rungAll
}

func (c *compiled) tunnelRung(a *ask) int {
	switch {
	case !c.rule.Tunnel && !c.rule.covers("https", a.port) && !c.rule.covers("http", a.port),
		c.rule.Tunnel && c.rule.Port != a.port:
		return rungPort
	case !c.rule.Tunnel:
		return rungMethod
	case !c.live(a.at):
		return rungUntil
	}
	return rungAll
}

// allowed looks for the rules that allow every reading.
func (s *Set) allowed(a *ask, buckets []*bucket, charge bool, o *outcome) {
	var rbuf [1]reading
	list := a.readings(rbuf[:0])
	if len(list) == 1 {
		// Nearly every request: one reading, and a rule without limits.
		var lists [8][]*compiled
		w := allowWalk(buckets, lists[:0])
		var plain *compiled
		for c := w.next(); c != nil && plain == nil; c = w.next() {
			if c.rung(a, &list[0]) == rungAll {
				if c.counter != nil && charge || c.rule.Limited {
					break
				}
				plain = c
			}
		}
		if plain != nil {
			*o = outcome{reason: "rule", rule: plain, limit: -1}
			return
		}
	}
	s.weigh(a, buckets, list, charge, o)
}

// allowWalk goes through what may allow, in file order. Tunnel rules make a
// host and port known, too.
func allowWalk(buckets []*bucket, lists [][]*compiled) walk {
	w := walk{lists}
	for _, b := range buckets {
		if len(b.allow) > 0 {
			w.lists = append(w.lists, b.allow)
		}
		if len(b.tunnels) > 0 {
			w.lists = append(w.lists, b.tunnels)
		}
	}
	return w
}

// weigh is the whole of allowed: it knows the reason of a denial, and the
// limits of rules.
func (s *Set) weigh(a *ask, buckets []*bucket, list []reading, charge bool, o *outcome) {
	best := make([]int, len(list))
	fits := make([][]*compiled, len(list))
	var whole []*compiled // rules that cover every reading
	w := allowWalk(buckets, nil)
	for c := w.next(); c != nil; c = w.next() {
		n := 0
		for i := range list {
			rung := c.rung(a, &list[i])
			best[i] = max(best[i], rung)
			if rung == rungAll {
				fits[i] = append(fits[i], c)
				n++
			}
		}
		if n == len(list) {
			whole = append(whole, c)
		}
	}
	lowest := 0
	for i := range best {
		if best[i] < best[lowest] {
			lowest = i
		}
	}
	if best[lowest] < rungAll {
		*o = outcome{reason: rungReasons[best[lowest]], limit: -1, method: list[lowest].method, view: list[lowest].view}
		return
	}
	s.choose(a, whole, fits, charge, o)
}

// choose picks the rules that are charged: the first that covers every reading
// and has room, else for each reading the first that has; for a body without a
// length those with the largest limit.
func (s *Set) choose(a *ask, whole []*compiled, fits [][]*compiled, charge bool, o *outcome) {
	if charge && len(s.rated) > 0 {
		s.ledger.mu.Lock()
		defer s.ledger.mu.Unlock()
	}
	p := picker{at: a.at, length: a.length, charge: charge}
	one := p.pick(whole, nil)
	var chosen []*compiled
	if one != nil {
		chosen = []*compiled{one}
	}
	if one == nil || a.length < 0 && one.rule.Limited {
		if several := p.each(fits); several != nil && (one == nil || limitOf(several) > limitOf(chosen)) {
			chosen = several
		}
	}
	if chosen == nil {
		*o = p.refused()
		return
	}
	*o = outcome{reason: "rule", rule: chosen[0], limit: -1}
	if l := limitOf(chosen); l != unlimited {
		o.limit = l
	}
	for _, c := range chosen {
		if charge && c.counter != nil {
			c.counter.charge()
			o.charged = append(o.charged, c.counter)
		}
	}
}

// unlimited is over every limit of a rule.
const unlimited = 1<<63 - 1

// limitOf is the smallest size limit of several rules.
func limitOf(list []*compiled) int64 {
	l := int64(unlimited)
	for _, c := range list {
		if c.rule.Limited {
			l = min(l, c.rule.MaxRequestBytes)
		}
	}
	return l
}

// picker finds rules with room, and remembers why others had none.
type picker struct {
	at      time.Time
	length  int64
	charge  bool
	large   *compiled     // a rule whose size limit is too small
	waiting *compiled     // a rule whose rate is used up
	wait    time.Duration // the shortest wait for one
}

// room says whether a rule has room for the request.
func (p *picker) room(c *compiled) bool {
	if c.rule.Limited && p.length > c.rule.MaxRequestBytes {
		if p.large == nil || c.rule.MaxRequestBytes > p.large.rule.MaxRequestBytes {
			p.large = c
		}
		return false
	}
	if !p.charge || c.counter == nil {
		return true
	}
	ok, wait := c.counter.room(p.at)
	if !ok && (p.waiting == nil || wait < p.wait) {
		p.waiting, p.wait = c, wait
	}
	return ok
}

// pick is the rule of a list to charge: one that is chosen already, the first
// with room, or without a length the one with the largest limit.
func (p *picker) pick(list, chosen []*compiled) *compiled {
	var best *compiled
	for _, c := range list {
		if !p.room(c) {
			continue
		}
		if p.length >= 0 {
			for _, k := range list {
				if containsRule(chosen, k) {
					return k
				}
			}
			return c
		}
		if best == nil || limitOf([]*compiled{c}) > limitOf([]*compiled{best}) {
			best = c
		}
	}
	return best
}

// each picks a rule for every reading, nil if one finds none.
func (p *picker) each(fits [][]*compiled) []*compiled {
	var chosen []*compiled
	for _, list := range fits {
		c := p.pick(list, chosen)
		if c == nil {
			return nil
		}
		if !containsRule(chosen, c) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// refused is the outcome where no rule has room. Waiting helps where a rate is
// all that is in the way.
func (p *picker) refused() outcome {
	if p.waiting != nil {
		return outcome{reason: "rate_limited", rule: p.waiting, limit: -1, retry: max(p.wait, time.Second)}
	}
	o := outcome{reason: "body_too_large", rule: p.large, limit: -1}
	if p.large != nil {
		o.limit = p.large.rule.MaxRequestBytes
	}
	return o
}

func containsRule(list []*compiled, c *compiled) bool {
	for _, k := range list {
		if k == c {
			return true
		}
	}
	return false
}
