package policy

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// doc is one file that is being read: its source, and what was found in it.
type doc struct {
	*loader
	file string
	src  *source
	// refused are nodes that a problem was already told of.
	refused map[*yaml.Node]bool
	// active are the nodes being read now, to notice an alias to one of them.
	active map[*yaml.Node]bool
	// budget is how many more values may be read; spent says that none are
	// left and that this was told.
	budget int
	spent  bool
}

// value is a node with the place it is written at: for an alias the alias's
// own, while node is what it stands for.
type value struct {
	node      *yaml.Node
	line, col int
	// key is where the value's key stands; the value's own place in a list.
	key spot
}

func (v value) spot() spot { return spot{v.line, v.col} }

// place is where a wrong value is told: at itself, or at its key where there
// is nothing to see of it.
func (v value) place() spot {
	if v.empty() {
		return v.key
	}
	return v.spot()
}

// empty says that nothing is written: `key:` or `-`.
func (v value) empty() bool {
	return v.node.Kind == yaml.ScalarNode && v.node.Style == 0 && v.node.Value == "" && v.node.Tag == "!!null"
}

// fail records an error.
func (d *doc) fail(at spot, kind, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, Line: at.line, Col: at.col, Kind: kind, Text: fmt.Sprintf(format, args...)})
}

func (d *doc) pos(at spot) Position { return Position{File: d.file, Line: at.line, Col: at.col} }

// checkTags refuses every node before which a tag stands, or might, and counts
// the values of the file.
func (d *doc) checkTags(n *yaml.Node) {
	d.budget += len(n.Content)
	if n.Kind != yaml.DocumentNode && !d.src.untagged(n) {
		d.refused[n] = true
		d.fail(spot{n.Line, n.Column}, KindType, "a tag, which a policy does not have: quote a rule that begins with !")
	}
	for _, c := range n.Content {
		d.checkTags(c)
	}
}

// value follows an alias. ok is false where the node was refused.
func (d *doc) value(n *yaml.Node, key spot) (value, bool) {
	v := value{node: n, line: n.Line, col: n.Column, key: key}
	if d.refused[n] {
		return v, false
	}
	if n.Kind != yaml.AliasNode {
		return v, true
	}
	v.node = n.Alias
	if d.refused[v.node] {
		return v, false
	}
	if d.active[v.node] {
		d.fail(v.spot(), KindType, "*%s stands in the value that it is an alias of", n.Value)
		return v, false
	}
	return v, true
}

// enter marks a list or mapping as being read, until the func it returns is
// called. ok is false where aliases have blown up beyond all use: each reading
// costs as many values as there are in it, and the file's own are free.
func (d *doc) enter(v value) (leave func(), ok bool) {
	d.budget -= len(v.node.Content)
	if d.budget < 0 {
		if !d.spent {
			d.spent = true
			d.fail(v.spot(), KindValue, "aliases stand for more than %d values", maxAliased)
		}
		return nil, false
	}
	d.active[v.node] = true
	return func() { delete(d.active, v.node) }, true
}

// kindName is a node's form in words.
func (v value) kindName() string {
	switch {
	case v.node.Kind == yaml.MappingNode:
		return "a mapping"
	case v.node.Kind == yaml.SequenceNode:
		return "a list"
	case v.empty():
		return "nothing"
	}
	switch v.node.Tag {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a switch"
	case "!!null":
		return "a null"
	}
	return "text"
}

// mistyped tells that something else is wanted.
func (d *doc) mistyped(v value, wanted string) {
	hint := ""
	if v.node.Kind == yaml.ScalarNode && v.node.Style == 0 {
		switch v.node.Tag {
		case "!!int", "!!float":
			hint = fmt.Sprintf(": write %q in quotes, with its unit where it has one", v.node.Value)
		case "!!bool":
			hint = fmt.Sprintf(": write %q in quotes if the word is meant", v.node.Value)
		}
	}
	if !strings.Contains(wanted, "text") {
		hint = ""
	}
	d.fail(v.place(), KindType, "%s where %s belongs%s", v.kindName(), wanted, hint)
}

// list gives the elements of a list; ok is false where v is none. Elements
// that were refused are left out.
func (d *doc) list(v value, wanted string) (items []value, ok bool) {
	if v.node.Kind != yaml.SequenceNode {
		d.mistyped(v, wanted)
		return nil, false
	}
	leave, ok := d.enter(v)
	if !ok {
		return nil, false
	}
	defer leave()
	for _, n := range v.node.Content {
		if item, ok := d.value(n, spot{n.Line, n.Column}); ok {
			items = append(items, item)
		}
	}
	return items, true
}

// mapping is a mapping that is being read: reading a key makes it known, and
// done tells of those that nobody asked for.
type mapping struct {
	d *doc
	// v is the mapping itself, what its name in texts.
	v       value
	what    string
	entries []entry
	asked   []string
	// partial says that a key or a merge was refused, so that nothing is said
	// of what is missing.
	partial bool
}

// entry is a key and its value, in the order of the file, merged ones behind.
type entry struct {
	name  string
	key   spot
	value value
	// ok is false where the value was refused.
	ok bool
}

// first is where a missing key is told: the first key of a block, the brace
// of a flow mapping.
func (m *mapping) first() spot { return m.v.spot() }

// mapping reads a mapping with its merges; nil where v is none.
func (d *doc) mapping(v value, what string) *mapping {
	if v.node.Kind != yaml.MappingNode {
		d.mistyped(v, "a mapping")
		return nil
	}
	m := &mapping{d: d, v: v, what: what}
	if !m.collect(v) {
		return nil
	}
	return m
}

// collect appends the entries of a mapping, its own before those of merges:
// own keys win over merged ones, earlier merges over later ones.
func (m *mapping) collect(v value) bool {
	d := m.d
	leave, ok := d.enter(v)
	if !ok {
		return false
	}
	defer leave()
	have := map[string]bool{}
	for _, e := range m.entries {
		have[e.name] = true
	}
	seen := map[string]bool{}
	var merge *value
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		kn := v.node.Content[i]
		k, ok := d.value(kn, spot{kn.Line, kn.Column})
		if !ok {
			m.partial = true
			continue
		}
		if k.node.Kind != yaml.ScalarNode || k.empty() {
			m.partial = true
			d.fail(k.spot(), KindType, "%s where a key belongs", k.kindName())
			continue
		}
		name := k.node.Value
		isMerge := k.node.Tag == "!!merge"
		id := name
		if isMerge {
			id = "<< merge"
		}
		if seen[id] {
			d.fail(k.spot(), KindDuplicate, "%s stands here twice", name)
			continue
		}
		seen[id] = true
		val, ok := d.value(v.node.Content[i+1], k.spot())
		if isMerge {
			if ok {
				merge = &val
			} else {
				m.partial = true
			}
			continue
		}
		if !have[name] {
			m.entries = append(m.entries, entry{name: name, key: k.spot(), value: val, ok: ok})
		}
	}
	if merge == nil {
		return true
	}
	return m.merge(*merge)
}

// merge adds what << names: a mapping, or a list of mappings.
func (m *mapping) merge(v value) bool {
	if v.node.Kind == yaml.MappingNode {
		return m.collect(v)
	}
	items, ok := m.d.list(v, "a mapping or a list of mappings")
	if !ok {
		return true
	}
	for _, item := range items {
		if item.node.Kind != yaml.MappingNode {
			m.d.mistyped(item, "a mapping")
		} else if !m.collect(item) {
			return false
		}
	}
	return true
}

// entry finds a key and makes it known. nil where it is not there.
func (m *mapping) entry(name string) *entry {
	if m == nil {
		return nil
	}
	m.asked = append(m.asked, name)
	for i := range m.entries {
		if m.entries[i].name == name {
			return &m.entries[i]
		}
	}
	return nil
}

// get gives a key's value; ok is false where it is not there or was refused.
func (m *mapping) get(name string) (value, bool) {
	e := m.entry(name)
	if e == nil || !e.ok {
		return value{}, false
	}
	return e.value, true
}

// has says that the key is written, whatever its value.
func (m *mapping) has(name string) bool { return m.entry(name) != nil }

// key is the place of a key that is written, the zero spot otherwise.
func (m *mapping) key(name string) spot {
	if e := m.entry(name); e != nil {
		return e.key
	}
	return spot{}
}

// need tells of a key that is not written.
func (m *mapping) need(name, why string) bool {
	if m.has(name) {
		return true
	}
	if m.partial {
		return false
	}
	m.d.fail(m.first(), KindMissing, "%s needs %s: %s", m.what, name, why)
	return false
}

// done tells of every key that was not asked for. elsewhere has words for keys
// that belong to another place.
func (m *mapping) done(elsewhere map[string]string) {
	if m == nil {
		return
	}
	for _, e := range m.entries {
		if slices.Contains(m.asked, e.name) {
			continue
		}
		switch near := nearest(e.name, m.asked); {
		case elsewhere[e.name] != "":
			m.d.fail(e.key, KindUnknown, "%s is no key of %s: %s", e.name, m.what, elsewhere[e.name])
		case near != "":
			m.d.fail(e.key, KindUnknown, "%s is no key of %s: is %s meant?", quoted(e.name), m.what, near)
		default:
			m.d.fail(e.key, KindUnknown, "%s is no key of %s", quoted(e.name), m.what)
		}
	}
}

// The kinds of nodes, for files that know no YAML.
const (
	scalarKind   = yaml.ScalarNode
	sequenceKind = yaml.SequenceNode
)
