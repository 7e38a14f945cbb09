package policy

import (
	"net"
	"strconv"
	"strings"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/rules"
)

// targets reads target or targets, or takes the type's own.
func (c *credential) targets() {
	m, x := c.m, &c.entry
	one, many := m.entry("target"), m.entry("targets")
	if one != nil && many != nil {
		later := one
		if many.key.after(one.key) {
			later = many
		}
		c.fail(later.key, KindConflict, "an entry has target or targets, not both")
	}
	if one != nil || many != nil {
		x.Targets = nil // not the preset's
	}
	if one != nil && one.ok {
		if s, ok := c.text(one.value); ok {
			c.target(s, one.value.spot())
		}
	}
	if many != nil && many.ok {
		items, ok := c.list(many.value, "a list of targets")
		if ok && len(many.value.node.Content) == 0 {
			c.fail(many.value.spot(), KindValue, "no target")
		}
		for _, item := range items {
			if s, ok := c.text(item); ok {
				c.target(s, item.spot())
			}
		}
	}
	if one == nil && many == nil && len(x.Targets) == 0 && !x.Canary {
		for _, h := range credentialTypes[x.Type].targets {
			x.Targets = append(x.Targets, credbroker.Target{Text: h, Host: h, Port: 443})
		}
	}
}

// target reads one host[:port][/path-glob].
func (c *credential) target(s string, at spot) {
	t, why := parseTarget(s, c.entry.Type == credbroker.AWSSigV4)
	if why != "" {
		c.fail(at, KindValue, "%s", why)
		return
	}
	c.entry.Targets = append(c.entry.Targets, t)
	c.spots = append(c.spots, at)
}

// parseTarget reads a target by the language of rules, which knows hosts,
// ports and path globs; what a target has not, a scheme or a star for a port,
// is refused.
func parseTarget(s string, wildcard bool) (t credbroker.Target, why string) {
	if s == "" || strings.ContainsAny(s, " \t\r\n\v\f") {
		return t, quoted(s) + " is no target: host[:port][/path]"
	}
	if strings.Contains(s, "://") {
		return t, quoted(s) + " has a scheme, which a target has not, since a secret travels by https only: write host[:port][/path]"
	}
	r, err := rules.Parse("GET " + s)
	if err != nil {
		return t, err.Error()
	}
	switch {
	case isOwn(r.Host):
		return t, ownName + " is egressd itself: no credential is bound to it"
	case r.Host == "*", strings.HasPrefix(r.Host, "*.") && !wildcard:
		return t, quoted(s) + ": a secret that travels is bound to hosts that are written out: list them in targets"
	case r.Port == rules.AnyPort:
		return t, quoted(s) + ": a secret is bound to one port"
	case r.Scheme != "":
		return t, quoted(s) + " has a scheme, which a target has not"
	}
	t = credbroker.Target{Text: s, Host: r.Host, Port: r.Port}
	if t.Port == 0 {
		t.Port = 443
	}
	if strings.Contains(s, "/") {
		t.Path = r.Path
	}
	return t, ""
}

// hostAndPort is how a target is named in texts.
func hostAndPort(t credbroker.Target) string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

// overlap says that a request could be for both targets.
func overlap(a, b credbroker.Target) bool {
	if a.Port != b.Port || !covers(a.Host, b.Host) && !covers(b.Host, a.Host) {
		return false
	}
	for _, p := range globs(a.Path) {
		for _, q := range globs(b.Path) {
			if meet(segments(p), segments(q), map[[2]int]bool{}) {
				return true
			}
		}
	}
	return false
}

// globs are the patterns of a target's path: without a glob it means itself
// and everything below it.
func globs(path string) []string {
	switch {
	case path == "":
		return []string{"/**"}
	case strings.Contains(path, "*"):
		return []string{path}
	}
	return []string{path, strings.TrimSuffix(path, "/") + "/**"}
}

func segments(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

// meet says that some path fits both patterns. seen holds the pairs of rests
// that were looked at, by their lengths, so that each is looked at once.
func meet(a, b []string, seen map[[2]int]bool) bool {
	key := [2]int{len(a), len(b)}
	if seen[key] {
		return false
	}
	seen[key] = true
	switch {
	case len(a) == 0 && len(b) == 0:
		return true
	case len(a) > 0 && a[0] == "**":
		return meet(a[1:], b, seen) || len(b) > 0 && meet(a, b[1:], seen)
	case len(b) > 0 && b[0] == "**":
		return meet(a, b[1:], seen) || len(a) > 0 && meet(a[1:], b, seen)
	case len(a) == 0 || len(b) == 0:
		return false
	}
	return meetSegment(a[0], b[0]) && meet(a[1:], b[1:], seen)
}

// meetSegment says that some segment fits both, * standing for any run.
func meetSegment(a, b string) bool {
	// reach[j]: a up to i and b up to j can be the same text.
	reach := make([]bool, len(b)+1)
	for i := 0; i <= len(a); i++ {
		next := make([]bool, len(b)+1)
		for j := 0; j <= len(b); j++ {
			switch {
			case i == 0 && j == 0:
				next[j] = true
			case i > 0 && a[i-1] == '*' && (reach[j] || j > 0 && next[j-1]),
				j > 0 && b[j-1] == '*' && (next[j-1] || i > 0 && reach[j]):
				next[j] = true
			case i > 0 && j > 0 && a[i-1] == b[j-1] && a[i-1] != '*':
				next[j] = reach[j-1]
			}
		}
		reach = next
	}
	return reach[len(b)]
}
