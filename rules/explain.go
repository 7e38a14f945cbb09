package rules

import (
	"fmt"
	"strings"
)

// Explanation is a Decision with what led to it.
type Explanation struct {
	Decision
	// Readings are the distinct texts that the path is read as, the one that was
	// sent first; every one of them must be allowed. Targets that override it
	// follow with theirs.
	Readings []string
	// Nearest is the allow rule that comes furthest with a request that none
	// allows, nil where no rule knows the host. It is not to be changed.
	Nearest *Rule
	// Differs tells in words what stands in the way.
	Differs string
}

// Explain answers a request as Decide does, and tells why.
func (s *Set) Explain(r Request) Explanation {
	var a ask
	var o outcome
	s.decide(&a, &r, &o)
	e := Explanation{Decision: s.decision(&a, &o)}
	if a.tunnel || o.reason == "bad_host" {
		e.explain(s, &a, &o)
		return e
	}
	for i := range a.views() {
		v := a.viewAt(i)
		if v.texts == nil {
			e.read(v.path)
			continue
		}
		for _, text := range v.texts {
			e.read(text)
		}
	}
	if o.reason == "ambiguous_path" {
		e.Readings, e.Differs = nil, why(r.Target, a.moreTargets)
		return e
	}
	e.explain(s, &a, &o)
	return e
}

// read adds a reading, once.
func (e *Explanation) read(text string) {
	if text != "" {
		e.Readings = appendNew(e.Readings, text)
	}
}

// why tells what is ambiguous about the first target that is.
func why(target string, more []string) string {
	for _, t := range append([]string{target}, more...) {
		path, _, _ := strings.Cut(t, "?")
		if !brokenEscape(path) {
			if _, why := expand(path); why != "" {
				return fmt.Sprintf("the path %q holds %s", clip(path), why)
			}
		}
	}
	return ""
}

// explain fills in the nearest rule and what differs.
func (e *Explanation) explain(s *Set, a *ask, o *outcome) {
	switch o.reason {
	case "rule":
		return
	case "deny_rule", "body_too_large", "rate_limited":
		e.Differs = differs(o.rule, o.reason)
		return
	case "bad_host":
		e.Differs = "the host has no one meaning"
		return
	case "bad_request":
		e.Differs = "the request is malformed"
		return
	case "authority_mismatch":
		e.Differs = "a forwarded host is not the host of the request"
		return
	}
	c, _ := s.nearest(a, o)
	if c == nil {
		e.Differs = "no allow rule knows the host"
		return
	}
	e.Nearest, e.Differs = &c.rule, differs(c, o.reason)
	if o.reason == "path_not_allowed" && !a.tunnel {
		if text := c.missed(a.viewAt(o.view)); text != "" {
			e.Differs = fmt.Sprintf("the path is also read as %q, which the rule does not allow: "+
				"a star does not stretch over an encoded slash; write ** for that", text)
		}
	}
}

// missed is a reading that a rule does not allow of a path that it allows as
// sent, "" for none.
func (c *compiled) missed(v *view) string {
	if v.texts == nil || c.rule.Tunnel {
		return ""
	}
	for i, text := range v.texts {
		form := c.forms[0]
		if len(c.forms) > 1 {
			form = c.forms[i]
		}
		fits := form.match(text, false)
		if i == 0 && !fits {
			return ""
		}
		if !fits {
			return text
		}
	}
	return ""
}
