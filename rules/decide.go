package rules

import (
	"strings"
	"time"
)

// Verdicts of a Decision.
const (
	Allow = "allow"
	Deny  = "deny"
)

// Request is what is asked for, as it was sent: nothing is decoded or cleaned
// before a Set sees it.
type Request struct {
	Method string // "CONNECT" asks for an uninspected tunnel; Scheme, Target and Header then do not count
	Scheme string // "http" or "https", as is really spoken
	Host   string // authority without its port
	Port   int    // 0: what the scheme stands for
	Target string // origin form: path and query
	Header map[string][]string
	Length int64 // bytes of the body, -1 for unknown
	At     time.Time
}

// Decision is the answer to a Request. The zero Decision allows nothing.
type Decision struct {
	Verdict string // Allow or Deny
	Reason  string // one of the closed set, such as rule or path_not_allowed
	Rule    *Rule  // the rule that decides, nil for none; not to be changed
	Index   int    // its index, -1 for none
	Hint    string // see Denial.Hint
	Note    string // the note of Rule
	Limit   int64  // bytes that the body may have, -1 for any
	Status  int    // 414 for a path that is too long, else 0: the reason gives it

	retry time.Duration
}

// ask is a request on its way through a Set.
type ask struct {
	at     time.Time
	tunnel bool
	scheme string
	host   string // canonical
	port   int
	length int64

	// What was sent stands in the ask itself and only overrides in slices, so
	// that an ordinary request allocates nothing.
	method      string
	view        view
	moreMethods []string
	moreTargets []string
	moreViews   []view // of moreTargets
}

// methods is how many methods the request has, methodAt one of them; the one
// that was sent is the first.
func (a *ask) methods() int { return 1 + len(a.moreMethods) }

func (a *ask) methodAt(i int) string {
	if i == 0 {
		return a.method
	}
	return a.moreMethods[i-1]
}

// views is how many targets the request has, viewAt one of them.
func (a *ask) views() int { return 1 + len(a.moreViews) }

func (a *ask) viewAt(i int) *view {
	if i == 0 {
		return &a.view
	}
	return &a.moreViews[i-1]
}

// view is one target: its query, and its path in all readings. A plain path
// reads the same to everyone, and texts is nil.
type view struct {
	path  string
	query string
	texts *[readings]string
	deny  []string // the texts deny rules meet, made when the first is asked
	tails []string // what their cuts took off
}

// outcome is how a Set answers an ask.
type outcome struct {
	reason string // "rule" where allowed
	rule   *compiled
	limit  int64
	status int
	retry  time.Duration
	// charged are the counters that were charged.
	charged []*counter
	// where is the method and view that the reason is about.
	method, view int
}

// Decide answers a request by the rules alone. It charges no rate and does not
// ask whether one has room.
func (s *Set) Decide(r Request) Decision {
	var a ask
	var o outcome
	s.decide(&a, &r, &o)
	return s.decision(&a, &o)
}

// decide reads the request and judges it.
func (s *Set) decide(a *ask, r *Request, o *outcome) {
	host, err := CanonicalHost(r.Host)
	if err != nil {
		*o = outcome{reason: "bad_host", limit: -1}
		return
	}
	a.host = host
	a.tunnel = r.Method == connect
	if a.read(r.At, r.Method, r.Scheme, r.Port, r.Target, r.Header, r.Length, o) {
		s.judge(a, false, o)
	}
}

// decision is an outcome as a consumer sees it.
func (s *Set) decision(a *ask, o *outcome) Decision {
	d := Decision{Verdict: Deny, Reason: o.reason, Index: -1, Limit: o.limit, Status: o.status, retry: o.retry}
	if o.reason == "rule" {
		d.Verdict = Allow
	}
	if o.rule != nil {
		d.Rule, d.Index, d.Note = &o.rule.rule, o.rule.index, o.rule.rule.Note
	}
	if d.Verdict == Deny {
		d.Hint = s.hint(a, o)
	}
	return d
}

// read takes the parts of a request whose host is known, and refuses what has
// no clear meaning. It says whether the rules are to be asked.
func (a *ask) read(at time.Time, method, scheme string, port int, target string, header map[string][]string, length int64, o *outcome) bool {
	*o = outcome{reason: "bad_request", limit: -1}
	a.at, a.scheme, a.port, a.length = at, scheme, port, length
	a.method = method
	if a.tunnel {
		a.scheme, a.length = "", 0
		return 0 < port && port <= 65535
	}
	standard := defaultPort(scheme)
	if port == 0 {
		a.port = standard
	}
	if standard == 0 || a.port < 1 || a.port > 65535 || !isToken(method) {
		return false
	}
	few, agree := a.overrides(header)
	if !few {
		return false
	}
	// The spelling that was sent is refused before those that override it.
	if o.reason, o.status = a.view.read(target); o.reason != "" {
		return false
	}
	a.moreViews = make([]view, len(a.moreTargets))
	for i, target := range a.moreTargets {
		if o.reason, o.status = a.moreViews[i].read(target); o.reason != "" {
			return false
		}
	}
	if !agree {
		o.reason = "authority_mismatch"
		return false
	}
	return true
}

// read reads one target in origin form; reason is why it is refused, else "".
func (v *view) read(target string) (reason string, status int) {
	if target == "" || target[0] != '/' {
		return "bad_request", 0
	}
	path, query, plain := target, "", true
	for i := 0; i < len(target); i++ {
		c := target[i]
		switch {
		case c <= ' ' || c == 0x7F || c == '#':
			return "bad_request", 0
		case c == '?' && len(path) == len(target):
			path, query = target[:i], target[i+1:]
		case len(path) == len(target) && !plainByte[c]:
			plain = false
		}
	}
	v.path, v.query = path, query
	if len(path) > maxPath {
		return "bad_request", 414
	}
	if plain && !strings.Contains(path, "//") && !strings.Contains(path, "./") && path[len(path)-1] != '.' {
		return "", 0
	}
	if brokenEscape(path) {
		return "bad_request", 0
	}
	texts, why := expand(path)
	if why != "" {
		return "ambiguous_path", 0
	}
	v.texts = &texts
	return "", 0
}

// plainByte marks what means the same in every reading, so long as no slash is
// repeated and no segment ends in a dot.
var plainByte = byteSet("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" +
	"-._~!$&'()*+,=:@/|^\"<>`{}[]")

// isToken holds a method against RFC 9110 5.6.2.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		if !tokenByte[s[i]] {
			return false
		}
	}
	return s != ""
}

var tokenByte = byteSet("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~")

// judge asks the rules.
func (s *Set) judge(a *ask, charge bool, o *outcome) {
	*o = outcome{reason: "no_rule", limit: -1}
	if s == nil {
		return
	}
	if s.broken != nil {
		o.reason, o.rule = "deny_rule", s.broken
		return
	}
	var buf [8]*bucket
	buckets := s.buckets(buf[:0], a.host)
	if s.denied(a, buckets, o) {
		return
	}
	s.allowed(a, buckets, charge, o)
}

// denied looks for the first deny rule in the file that the request hits.
func (s *Set) denied(a *ask, buckets []*bucket, o *outcome) bool {
	var lists [8][]*compiled
	w := walk{lists: lists[:0]}
	for _, b := range buckets {
		list := b.deny
		if a.tunnel {
			list = b.closings
		}
		if len(list) > 0 {
			w.lists = append(w.lists, list)
		}
	}
	for c := w.next(); c != nil; c = w.next() {
		if c.live(a.at) && a.hits(c, o) {
			o.reason, o.rule = "deny_rule", c
			return true
		}
	}
	return false
}

// hits says whether any reading of the request hits a deny rule.
func (a *ask) hits(c *compiled, o *outcome) bool {
	if a.tunnel {
		return c.rule.Port == a.port
	}
	if !c.rule.covers(a.scheme, a.port) {
		return false
	}
	named := false
	for i := range a.methods() {
		if c.deniesMethod(a.methodAt(i)) {
			named, o.method = true, i
			break
		}
	}
	if !named {
		return false
	}
	for i := range a.views() {
		if a.viewAt(i).hits(c) {
			o.view = i
			return true
		}
	}
	return false
}

// hits says whether any reading of a target hits a deny rule's path and query.
func (v *view) hits(c *compiled) bool {
	if v.texts != nil && v.deny == nil {
		v.deny, v.tails = denyTexts(v.texts)
	}
	if len(c.clauses) > 0 && !denyQuery(c.clauses, v.query, v.tails) {
		return false
	}
	for _, p := range c.forms {
		if v.texts == nil {
			if p.match(v.path, true) {
				return true
			}
			continue
		}
		for _, text := range v.deny {
			if p.match(text, false) {
				return true
			}
		}
	}
	return false
}
