package rules

import "strings"

// linter compares each rule with those that could matter to it. Every method
// gives the rule that is the cause, nil for none.
type linter struct{ allow, deny, tunnels hosts }

// hosts finds rules by host, so that a policy with very many is still read in
// no time.
type hosts struct {
	all    []*Rule
	byHost map[string][]*Rule // by host as written
}

func newLinter(list []Rule) *linter {
	l := &linter{}
	for i := range list {
		r := &list[i]
		switch {
		case r.Deny:
			l.deny.add(r)
		case r.Tunnel:
			l.tunnels.add(r)
			l.allow.add(r)
		default:
			l.allow.add(r)
		}
	}
	return l
}

func (h *hosts) add(r *Rule) {
	if h.byHost == nil {
		h.byHost = map[string][]*Rule{}
	}
	h.all = append(h.all, r)
	h.byHost[r.Host] = append(h.byHost[r.Host], r)
}

// first is a rule as wanted whose host covers this one; with below, also one
// whose host this one covers.
func (h *hosts) first(host string, below bool, wanted func(*Rule) bool) *Rule {
	name, wild := strings.CutPrefix(host, "*.")
	if below && (wild || host == "*") {
		return pick(h.all, wanted)
	}
	if r := pick(h.byHost[host], wanted); r != nil || host == "*" || isAddress(name) {
		return r
	}
	for rest := name; ; {
		if r := pick(h.byHost["*."+rest], wanted); r != nil {
			return r
		}
		i := strings.IndexByte(rest, '.')
		if i < 0 {
			return pick(h.byHost["*"], wanted)
		}
		rest = rest[i+1:]
	}
}

func pick(list []*Rule, wanted func(*Rule) bool) *Rule {
	for _, r := range list {
		if wanted(r) {
			return r
		}
	}
	return nil
}

// shadow finds a deny rule that leaves nothing of an allow rule.
func (l *linter) shadow(r *Rule) *Rule {
	if r.Deny {
		return nil
	}
	return l.deny.first(r.Host, false, func(d *Rule) bool { return coversRule(d, r) })
}

// openFolder finds what allows the folder of a deny rule that ends in "/**",
// unless the folder is denied as well.
func (l *linter) openFolder(r *Rule) (folder string, allow *Rule) {
	folder, deep := strings.CutSuffix(r.Path, "/**")
	if !r.Deny || r.Tunnel || !deep || folder == "" {
		return "", nil
	}
	denied := l.deny.first(r.Host, false, func(d *Rule) bool {
		return !d.Tunnel && d != r && len(d.Query) == 0 && d.Until.IsZero() && coversWhere(d, r) && coversPath(d.Path, folder)
	})
	if denied != nil {
		return "", nil
	}
	return folder, l.allow.first(r.Host, true, func(a *Rule) bool {
		return !a.Tunnel && meetsMethods(a, r) && meetsHost(a.Host, r.Host) && meetsPorts(a, r) && meetsPath(a.Path, folder)
	})
}

// openPort finds an allow rule for any port beside a deny rule for the default
// ones, unless another deny rule covers the rest.
func (l *linter) openPort(r *Rule) *Rule {
	if !r.Deny || r.Tunnel || r.Port != 0 {
		return nil
	}
	wide := *r
	wide.Port = AnyPort
	if l.deny.first(r.Host, false, func(d *Rule) bool { return coversRule(d, &wide) }) != nil {
		return nil
	}
	return l.allow.first(r.Host, true, func(a *Rule) bool {
		return a.Port == AnyPort && meetsHost(a.Host, r.Host) && meetsMethods(a, r) &&
			(a.Scheme == "" || r.Scheme == "" || a.Scheme == r.Scheme)
	})
}

// hidden finds a tunnel whose host and port a rule speaks of by a wildcard on
// either side; where both name them alike it is a Conflict.
func (l *linter) hidden(r *Rule) *Rule {
	if r.Tunnel {
		return nil
	}
	return l.tunnels.first(r.Host, true, func(t *Rule) bool {
		return meetsHost(t.Host, r.Host) && !clash(t, r) &&
			(r.covers("https", t.Port) || r.covers("http", t.Port))
	})
}
