package policy

import (
	"slices"
	"strings"
)

func (d *doc) terminals(top *mapping, p *Policy) {
	m := d.section(top, "terminals")
	if m == nil {
		return
	}
	p.Terminals = map[string]*Terminal{}
	for _, e := range m.entriesOf() {
		if e.name == "" {
			d.fail(e.key, KindValue, "a terminal without a name")
		}
		if t := d.terminal(e, p); t != nil {
			p.Terminals[e.name] = t
		}
	}
}

func (d *doc) terminal(e entry, p *Policy) *Terminal {
	m := d.mapping(e.value, "a terminal")
	if m == nil {
		return nil
	}
	t := &Terminal{Name: e.name, Command: m.filled("command"), Inherit: true, Environment: p.Environment}
	t.Args, _ = m.strings("args", "arguments", func(s string) string {
		if strings.ContainsRune(s, 0) {
			return "a NUL in a text"
		}
		return ""
	})
	if v, ok := m.get("os_env"); ok {
		t.Environment, t.Inherit = d.environment(v, &p.Environment)
	}
	if v, ok := m.get("env"); ok {
		t.Env = d.variables(v, &t.Environment)
	}
	m.done(nil)
	return t
}

// variables reads a map of names of variables to texts. One that egressd itself
// sets in this environment is refused: it would do nothing.
func (d *doc) variables(v value, in *Environment) map[string]string {
	m := d.mapping(v, "env")
	if m == nil {
		return nil
	}
	env := map[string]string{}
	for _, e := range m.entriesOf() {
		if why := variableName(e.name); why != "" {
			d.fail(e.key, KindValue, "%s", why)
			continue
		}
		if why := in.sets(e.name); why != "" {
			d.fail(e.key, KindConflict, "%s", why)
			continue
		}
		s, ok := d.text(e.value)
		if ok && strings.ContainsRune(s, 0) {
			d.fail(e.value.spot(), KindValue, "a NUL in a text")
		}
		env[e.name] = s
	}
	return env
}

// sets says why a variable is egressd's own inside this environment, or "".
func (e *Environment) sets(name string) string {
	if slices.Contains(ownVariables, name) {
		return name + " is set by egressd in every sandbox"
	}
	fold := func(own string) bool { return strings.EqualFold(own, name) }
	if e.HasRules && slices.ContainsFunc(filterVariables, fold) {
		return name + " is set by egressd where there are egress_rules: programs would miss the proxy or distrust it"
	}
	for _, entry := range e.Credentials {
		if slices.Contains(InsideVariables(entry), name) {
			return name + " holds the placeholder of " + entry.ID + " inside"
		}
	}
	return ""
}
