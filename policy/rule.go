package policy

import (
	"errors"
	"slices"
	"strings"

	"github.com/egressd/egressd/netguard"
	"github.com/egressd/egressd/rules"
)

// ownName is what the proxy answers for itself; no rule and no credential may
// speak of it or of a name below it.
const ownName = "egressd.internal"

func isOwn(host string) bool {
	host = strings.TrimPrefix(host, "*.")
	return host == ownName || strings.HasSuffix(host, "."+ownName)
}

// rules reads egress_rules into the environment.
func (d *doc) rules(m *mapping, e *Environment) {
	entry := m.entry("egress_rules")
	if entry == nil {
		return
	}
	e.HasRules, e.pos.rules = true, entry.key
	e.Rules = []rules.Rule{}
	if !entry.ok {
		return
	}
	e.Rules, e.RulePos = d.ruleList(entry.value)
}

// ruleList reads a list of rules; those that are wrong are left out.
func (d *doc) ruleList(v value) (list []rules.Rule, at []Position) {
	list = []rules.Rule{}
	items, ok := d.list(v, "a list of rules")
	if !ok {
		return list, nil
	}
	for _, item := range items {
		var r rules.Rule
		where := item
		switch {
		case item.node.Kind == scalarKind:
			text, ok := d.text(item)
			if !ok {
				continue
			}
			if r, ok = d.rule(item, text); !ok {
				continue
			}
		default:
			if where, r, ok = d.ruleMapping(item); !ok {
				continue
			}
		}
		if isOwn(r.Host) {
			d.fail(where.spot(), KindValue, "%s is egressd itself: no rule speaks of it", ownName)
			continue
		}
		list, at = append(list, r), append(at, d.pos(item.spot()))
	}
	return list, at
}

// rule parses a rule that is a text.
func (d *doc) rule(v value, text string) (rules.Rule, bool) {
	r, err := rules.Parse(text)
	if err != nil {
		d.badRule(v.spot(), err)
		return r, false
	}
	return r, true
}

func (d *doc) badRule(at spot, err error) {
	p := Problem{File: d.file, Line: at.line, Col: at.col, Kind: KindRule, Text: err.Error()}
	var parse *rules.ParseError
	if errors.As(err, &parse) {
		p.Problem, p.Text = parse.Kind, strings.TrimPrefix(parse.Error(), parse.Kind+": ")
	}
	d.problems = append(d.problems, p)
}

// ruleMapping reads a rule with further keys. Each key is parsed with the rule
// on its own first, so that all that is wrong is told.
func (d *doc) ruleMapping(v value) (where value, r rules.Rule, ok bool) {
	m := d.mapping(v, "a rule")
	if m == nil {
		return v, r, false
	}
	before := len(d.problems)
	where = v
	text, good := "", false
	if m.need("rule", "the rule itself") {
		rv, present := m.get("rule")
		if present {
			where = rv
			if text, good = d.text(rv); good {
				_, good = d.rule(rv, text)
			}
		}
	}
	if !good {
		text = "GET a.test" // the other keys are looked at all the same
	}
	whole := map[string]any{"rule": text}
	for _, key := range []string{"note", "query", "max_request_bytes", "rate", "until"} {
		kv, present := m.get(key)
		if !present {
			continue
		}
		plain, ok := d.plain(kv)
		if !ok {
			continue
		}
		whole[key] = plain
		if _, err := rules.ParseMapping(map[string]any{"rule": text, key: plain}); err != nil {
			d.badKey(m, key, kv, err)
		}
	}
	m.done(nil)
	if !good || len(d.problems) > before {
		return where, r, false
	}
	r, err := rules.ParseMapping(whole)
	if err != nil {
		d.badRule(v.spot(), err)
		return where, r, false
	}
	return where, r, true
}

// badKey tells of a key of a rule at the place that its kind has.
func (d *doc) badKey(m *mapping, key string, v value, err error) {
	var parse *rules.ParseError
	if !errors.As(err, &parse) {
		d.fail(v.spot(), KindValue, "%v", err)
		return
	}
	at, what := v.place(), strings.TrimPrefix(parse.Error(), parse.Kind+": ")
	switch parse.Kind {
	case KindConflict, KindUnknown:
		at = m.key(key)
	}
	d.fail(at, parse.Kind, "%s: %s", key, what)
}

// plain is a value of a rule's key as rules.ParseMapping takes it. Of a query
// the names must be text and so must the values.
func (d *doc) plain(v value) (any, bool) {
	if v.node.Kind == scalarKind {
		switch {
		case isText(v):
			return v.node.Value, true
		case v.node.Tag == "!!int":
			n, ok := d.integer(v)
			return n, ok
		}
		d.mistyped(v, "text")
		return nil, false
	}
	m := d.mapping(v, "query")
	if m == nil {
		return nil, false
	}
	query, good := map[string]any{}, true
	for _, e := range m.entries {
		s, ok := "", false
		if e.ok {
			s, ok = d.text(e.value)
		}
		query[e.name] = s
		good = good && ok
	}
	return query, good && len(query) == len(m.entries)
}

// private reads egress_allow_private_destinations.
func (d *doc) private(m *mapping, e *Environment) {
	v, ok := m.get("egress_allow_private_destinations")
	if !ok {
		return
	}
	if b, ok := d.boolean(v); ok {
		e.Private.All = b
		return
	}
	if v.node.Kind != sequenceKind {
		d.mistyped(v, "true, false or a list")
		return
	}
	e.PrivateList, _ = d.strings(v, "ranges, addresses and hosts", func(s string) string {
		if _, err := netguard.ParseAllow([]string{s}); err != nil {
			return err.Error()
		}
		return ""
	})
	e.Private, _ = netguard.ParseAllow(e.PrivateList)
}

// plainHost is the check of names of hosts without wildcards and ports.
func plainHost(s string) string {
	if _, ok := hostName(s); !ok {
		return quoted(s) + " is no host: a name without scheme, port, path or wildcard"
	}
	return ""
}

// hostName makes a host canonical.
func hostName(s string) (string, bool) {
	host, err := rules.CanonicalHost(s)
	return host, err == nil
}

// canonical is the canonical form of a host that was looked at.
func canonical(s string) string {
	host, _ := hostName(s)
	return host
}

// covers says that a rule's host pattern takes in a host, or a wildcard whole.
func covers(pattern, host string) bool {
	if pattern == "*" || pattern == host {
		return true
	}
	suffix, wild := strings.CutPrefix(pattern, "*.")
	if !wild {
		return false
	}
	host = strings.TrimPrefix(host, "*.")
	return host == suffix || strings.HasSuffix(host, "."+suffix)
}

// tests reads the requests that check runs.
func (d *doc) tests(top *mapping, p *Policy) {
	v, ok := top.get("tests")
	if !ok {
		return
	}
	items, _ := d.list(v, "a list of METHOD URL: allow or deny")
	for _, item := range items {
		if isText(item) {
			d.testText(item)
			continue
		}
		m := d.mapping(item, "a test")
		if m == nil {
			continue
		}
		if len(m.entries) == 0 {
			d.fail(m.first(), KindMissing, "a test is METHOD URL: allow or deny")
		}
		for i, e := range m.entries {
			if i > 0 {
				d.fail(e.key, KindValue, "a test is one request: begin another with a dash")
				break
			}
			d.test(e, p)
		}
	}
}

// testText tells of a test that is a text, such as one in quotes, and how it is
// written.
func (d *doc) testText(v value) {
	words := strings.Fields(v.node.Value)
	switch n := len(words); {
	case len(v.node.Value) > 200:
		words = nil
	case n == 3 && slices.Contains([]string{"allow", "deny"}, words[n-1]):
		words[1] = strings.TrimRight(words[1], ":")
	case n == 2 && strings.Contains(words[1], "://"):
		url, deny := strings.CutSuffix(words[1], ":deny")
		words = []string{words[0], strings.TrimSuffix(url, ":allow"), "allow"}
		if deny {
			words[2] = "deny"
		}
	default:
		words = nil
	}
	if words == nil {
		words = []string{"GET", "https://a.test/x", "allow"}
	}
	d.fail(v.place(), KindType, "text where a test belongs: write it as - %s %s: %s, with a blank behind the colon and no quotes around the whole", words[0], words[1], words[2])
}

func (d *doc) test(e entry, p *Policy) {
	words := strings.Fields(e.name)
	if len(words) != 2 {
		d.fail(e.key, KindValue, "%s is not METHOD URL", quoted(e.name))
		return
	}
	if !e.ok {
		return
	}
	verdict, ok := d.text(e.value)
	if !ok {
		return
	}
	if !slices.Contains([]string{"allow", "deny"}, verdict) {
		d.fail(e.value.spot(), KindValue, "%s is neither allow nor deny", quoted(verdict))
		return
	}
	p.Tests = append(p.Tests, Test{Method: words[0], URL: words[1], Allow: verdict == "allow", Pos: d.pos(e.key)})
}
