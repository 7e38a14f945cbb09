package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// hint is the smallest rule that would allow the request, or for a reason that
// no further rule would help, the rule that decides and what differs.
func (s *Set) hint(a *ask, o *outcome) string {
	switch o.reason {
	case "no_rule", "port_not_allowed", "method_not_allowed", "path_not_allowed":
		return smallest(a, o)
	case "query_not_allowed", "expired":
		if c, _ := s.nearest(a, o); c != nil {
			return c.text + ": " + differs(c, o.reason)
		}
	case "deny_rule", "body_too_large", "rate_limited":
		if o.rule != nil {
			return o.rule.text + ": " + differs(o.rule, o.reason)
		}
	}
	return ""
}

// differs tells what of a rule stands against a request that was refused for
// this reason.
func differs(c *compiled, reason string) string {
	r := &c.rule
	switch reason {
	case "port_not_allowed":
		return "another scheme or port"
	case "method_not_allowed":
		return "another method"
	case "path_not_allowed":
		return "another path"
	case "query_not_allowed":
		var names []string
		for name, value := range r.Query {
			names = append(names, fmt.Sprintf("%s=%s", name, value))
		}
		slices.Sort(names)
		return "the query must hold, each once, " + strings.Join(names, ", ")
	case "expired":
		return "ended " + r.Until.UTC().Format(time.RFC3339)
	case "deny_rule":
		return "denies it, whatever allows it"
	case "body_too_large":
		return fmt.Sprintf("the body has %d bytes at most", r.MaxRequestBytes)
	case "rate_limited":
		return r.Rate.String() + " is used up"
	}
	return ""
}

// smallest writes the smallest rule that would allow what failed.
func smallest(a *ask, o *outcome) string {
	r := Rule{Methods: []string{a.methodAt(o.method)}, Host: a.host, Port: a.port}
	if a.tunnel {
		r.Tunnel = true
		return r.String()
	}
	if !knownMethods[r.Methods[0]] || r.Methods[0] == connect {
		r.Methods[0] = "*" // no rule can name it
	}
	if a.port == defaultPort(a.scheme) {
		r.Port = 0
	}
	v := a.viewAt(o.view)
	r.Path = pathAsRule(v.path)
	if v.texts != nil && !New([]Rule{r}).reads(v, a) {
		// A star does not stretch over an encoded slash: below the last folder that
		// every reading shares anything has to be allowed.
		r.Path = folderAsRule(v)
	}
	return r.String()
}

// reads says whether the set allows every reading of one target.
func (s *Set) reads(v *view, a *ask) bool {
	b := ask{at: a.at, scheme: a.scheme, host: a.host, port: a.port, method: "GET", view: *v}
	for _, bucket := range s.exact {
		for _, c := range bucket.allow {
			c.any = true // only the path is asked
		}
	}
	var o outcome
	s.judge(&b, false, &o)
	return o.reason == "rule"
}

// pathAsRule writes a path as a rule's path. What a rule can only write
// percent-encoded and the request sent bare becomes a star, which stands for
// both.
func pathAsRule(path string) string {
	var b strings.Builder
	star := false
	for i := 0; i < len(path); i++ {
		c := path[i]
		wild := c == '*' || c <= ' ' || c >= 0x7F || strings.IndexByte(`?#[]{}\`, c) >= 0
		switch {
		case !wild:
			b.WriteByte(c)
		case !star:
			b.WriteByte('*')
		}
		star = wild
	}
	return normalise(b.String())
}

// folderAsRule is the last folder that every reading of a path begins with, and
// everything below it.
func folderAsRule(v *view) string {
	common := v.texts[0]
	for _, text := range v.texts {
		n := 0
		for n < len(common) && n < len(text) && common[n] == text[n] {
			n++
		}
		common = common[:n]
	}
	common = common[:strings.LastIndexByte(common, '/')+1]
	if i := strings.IndexAny(common, `*?#[]{}\%;`); i >= 0 || !isASCII(common) {
		if i < 0 {
			i = 0
		}
		common = common[:strings.LastIndexByte(common[:i], '/')+1]
	}
	if common == "" {
		common = "/"
	}
	return common + "**"
}

// nearest is the allow rule that comes furthest with what failed, the first of
// several.
func (s *Set) nearest(a *ask, o *outcome) (best *compiled, rung int) {
	var rbuf [1]reading
	rung = -1
	for _, r := range a.readings(rbuf[:0]) {
		if r.method != o.method || r.view != o.view {
			continue
		}
		w := allowWalk(s.buckets(nil, a.host), nil)
		low, at := -1, (*compiled)(nil)
		for c := w.next(); c != nil; c = w.next() {
			if n := c.rung(a, &r); n > low {
				low, at = n, c
			}
		}
		if at != nil && low < rungAll && (best == nil || low < rung) {
			best, rung = at, low
		}
	}
	return best, rung
}
