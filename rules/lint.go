package rules

import (
	"fmt"
	"strings"
)

// Warning is something about a list of rules that is probably not meant.
type Warning struct {
	Kind  string // shadowed_rule, any_host, any_port, folder_not_denied, deny_port, tunnel_hides_rule
	Index int    // the rule it is about
	Text  string
}

// Lint looks for rules that say less, or more, than they seem to. Warnings come
// in the order of the rules they are about.
func Lint(list []Rule) []Warning {
	var found []Warning
	l := linter{rules: list}
	for i := range list {
		r := &list[i]
		add := func(kind, format string, args ...any) {
			found = append(found, Warning{Kind: kind, Index: i, Text: r.String() + ": " + fmt.Sprintf(format, args...)})
		}
		if d := l.shadow(r); d != nil {
			add("shadowed_rule", "never allows anything, for %s denies all of it", d)
		}
		if !r.Deny && r.Host == "*" {
			add("any_host", "allows every name there is")
		}
		if !r.Deny && r.Port == AnyPort {
			add("any_port", "only 80, 443 and ports that other rules name are captured; on others the explicit proxy is the only way")
		}
		if folder, a := l.openFolder(r); a != nil {
			add("folder_not_denied", "does not deny %s itself, which %s allows", folder, a)
		}
		if a := l.openPort(r); a != nil {
			add("deny_port", "denies on the default ports only, while %s allows any", a)
		}
		if t := l.hidden(r); t != nil {
			add("tunnel_hides_rule", "does not count where %s opens a tunnel", t)
		}
	}
	return found
}

// linter compares each rule with those that could matter to it. Every method
// gives the rule that is the cause, nil for none.
type linter struct{ rules []Rule }

// first is the first rule of the list that is as wanted.
func (l *linter) first(wanted func(*Rule) bool) *Rule {
	for i := range l.rules {
		if wanted(&l.rules[i]) {
			return &l.rules[i]
		}
	}
	return nil
}

// shadow finds a deny rule that leaves nothing of an allow rule.
func (l *linter) shadow(r *Rule) *Rule {
	if r.Deny {
		return nil
	}
	return l.first(func(d *Rule) bool { return d.Deny && coversRule(d, r) })
}

// openFolder finds what allows the folder of a deny rule that ends in "/**",
// unless the folder is denied as well.
func (l *linter) openFolder(r *Rule) (folder string, allow *Rule) {
	folder, deep := strings.CutSuffix(r.Path, "/**")
	if !r.Deny || r.Tunnel || !deep || folder == "" {
		return "", nil
	}
	denied := l.first(func(d *Rule) bool {
		return d.Deny && !d.Tunnel && d != r && len(d.Query) == 0 && d.Until.IsZero() && coversWhere(d, r) && coversPath(d.Path, folder)
	})
	if denied != nil {
		return "", nil
	}
	return folder, l.first(func(a *Rule) bool {
		return !a.Deny && !a.Tunnel && meetsMethods(a, r) && meetsHost(a.Host, r.Host) && meetsPorts(a, r) && meetsPath(a.Path, folder)
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
	if l.first(func(d *Rule) bool { return d.Deny && coversRule(d, &wide) }) != nil {
		return nil
	}
	return l.first(func(a *Rule) bool {
		return !a.Deny && a.Port == AnyPort && meetsHost(a.Host, r.Host) && meetsMethods(a, r) &&
			(a.Scheme == "" || r.Scheme == "" || a.Scheme == r.Scheme)
	})
}

// hidden finds a tunnel whose host and port a rule speaks of by a wildcard on
// either side; where both name them alike it is a Conflict.
func (l *linter) hidden(r *Rule) *Rule {
	if r.Tunnel {
		return nil
	}
	return l.first(func(t *Rule) bool {
		return t.Tunnel && !t.Deny && meetsHost(t.Host, r.Host) && !clash(t, r) &&
			(r.covers("https", t.Port) || r.covers("http", t.Port))
	})
}

// Conflict is a tunnel and a rule that name the same host and port: the rule
// could never be kept, for a tunnel is not looked into.
type Conflict struct {
	Index int // the later of the two
	Other int // the earlier
	Text  string
}

// Conflicts lists the rules that do not go with an earlier one, each once.
func Conflicts(list []Rule) []Conflict {
	// By host, as written: a policy may hold very many rules.
	seen := map[string][]int{}
	var found []Conflict
	for i := range list {
		r := &list[i]
		if r.Tunnel && r.Deny {
			continue // it opens no tunnel
		}
		for _, j := range seen[r.Host] {
			o := &list[j]
			if r.Tunnel != o.Tunnel && (clash(r, o) || clash(o, r)) {
				found = append(found, Conflict{Index: i, Other: j, Text: fmt.Sprintf(
					"%s and %s name the same host and port, and a tunnel is not looked into", r, o)})
				break
			}
		}
		seen[r.Host] = append(seen[r.Host], i)
	}
	return found
}

// clash says whether a tunnel and a rule name the same host and port.
func clash(t, r *Rule) bool {
	if !t.Tunnel || t.Deny || r.Tunnel || t.Host != r.Host {
		return false
	}
	for _, p := range r.ports() {
		if p == t.Port {
			return true
		}
	}
	return false
}

// TunnelConflict tells which tunnel stands in the way of a credential for a
// canonical host and port: the index of the first CONNECT rule that names them,
// or, with hides, that covers them by a wildcard; -1 for none.
func TunnelConflict(list []Rule, host string, port int) (index int, hides bool) {
	index = -1
	for i := range list {
		t := &list[i]
		if !t.Tunnel || t.Deny || t.Port != port {
			continue
		}
		if t.Host == host {
			return i, false
		}
		if index < 0 && meetsHost(t.Host, host) {
			index, hides = i, true
		}
	}
	return index, hides
}
