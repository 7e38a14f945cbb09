package rules

import (
	"fmt"
	"strings"
)

// Warning is something about a list of rules that is probably not meant.
type Warning struct {
	Kind  string // shadowed_rule, any_host, any_port, folder_not_denied, deny_port, tunnel_hides_rule, scheme_as_host
	Index int    // the rule it is about
	Text  string
}

// Lint looks for rules that say less, or more, than they seem to. Warnings come
// in the order of the rules they are about.
func Lint(list []Rule) []Warning {
	var found []Warning
	l := newLinter(list)
	for i := range l.all {
		r := &l.all[i]
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
		if r.Scheme == "" && (r.Host == "http" || r.Host == "https") && strings.HasPrefix(r.Path, "//") {
			add("scheme_as_host", "names the host %s; a scheme is followed by ://", r.Host)
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

// Conflict is a tunnel and a rule that name the same host and port: the rule
// could never be kept, for a tunnel is not looked into.
type Conflict struct {
	Index int // the later of the two
	Other int // the earlier
	Text  string
}

// Conflicts lists the rules that do not go with an earlier one, each once.
func Conflicts(list []Rule) []Conflict {
	// The first of each kind that names a host, as written, and a port: a policy
	// may be long.
	type place struct {
		tunnel bool
		host   string
		port   int
	}
	first := map[place]int{}
	var found []Conflict
	for i := range list {
		r := &list[i]
		if r.Tunnel && r.Deny {
			continue // it opens no tunnel
		}
		other := len(list)
		for _, port := range r.ports() {
			if j, ok := first[place{!r.Tunnel, r.Host, port}]; ok {
				other = min(other, j)
			}
			if here := (place{r.Tunnel, r.Host, port}); !named(first, here) {
				first[here] = i
			}
		}
		if other < len(list) {
			found = append(found, Conflict{Index: i, Other: other, Text: fmt.Sprintf(
				"%s and %s name the same host and port, and a tunnel is not looked into", r, &list[other])})
		}
	}
	return found
}

func named[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
}

// clash says whether a tunnel and a rule name the same host and port.
func clash(t, r *Rule) bool {
	if !t.Tunnel || t.Deny || r.Tunnel || t.Host != r.Host {
		return false
	}
	if r.Port != 0 {
		return r.Port == t.Port
	}
	return r.covers("https", t.Port) || r.covers("http", t.Port)
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
