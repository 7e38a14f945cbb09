package policy

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"

	"github.com/egressd/egressd/rules"
)

var presetName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// maxChain bounds how deep files include one another and agents name agents.
const maxChain = 16

// includes adds the rules of presets and files to the policy's own, and so
// turns filtering on: a word of small letters is a preset, anything else a
// path.
func (d *doc) includes(top *mapping, p *Policy) {
	v, ok := top.get("include")
	if !ok {
		return
	}
	list, at := d.included(v, p)
	if len(v.node.Content) == 0 && v.node.Kind == sequenceKind {
		return
	}
	e := &p.Environment
	key := top.key("include")
	switch {
	case e.inherited:
		d.fail(key, KindConflict, "the sandbox is the parent's, whose rules it takes: include goes with rules of one's own")
		return
	case e.HasSandbox && (e.Sandbox.Type == BackendNone || e.Sandbox.Type == BackendFirejail):
		d.fail(key, KindConflict, "%s filters no network, so rules cannot be included", e.Sandbox.Type)
		return
	case !e.Sandbox.AllowNetwork:
		d.fail(key, KindConflict, "allow_network: false leaves nothing for rules to speak of")
		return
	}
	e.HasRules = true
	e.Rules, e.RulePos = slices.Concat(e.Rules, list), slices.Concat(e.RulePos, at)
	if e.Rules == nil {
		e.Rules = []rules.Rule{}
	}
}

// included reads the elements of an include list.
func (d *doc) included(v value, p *Policy) (list []rules.Rule, at []Position) {
	items, _ := d.list(v, "a list of presets and files")
	for _, item := range items {
		name := item.node.Value
		if !isText(item) {
			d.mistyped(item, "text")
			continue
		}
		if why := notEmpty(name); why != "" {
			d.fail(item.spot(), KindValue, "%s where a preset or a file belongs", why)
			continue
		}
		if preset, ok := rulePresets[name]; ok {
			for _, text := range preset {
				if r, ok := d.rule(item, text); ok {
					list, at = append(list, r), append(at, d.pos(item.spot()))
				}
			}
			continue
		}
		if presetName.MatchString(name) {
			d.fail(item.spot(), KindValue, "%s is no preset; a file is written with its ending or as ./%s", quoted(name), name)
			continue
		}
		rs, rat := d.includeFile(item, d.expand(name), p)
		list, at = append(list, rs...), append(at, rat...)
	}
	return list, at
}

// includeFile reads the rules of another file, which may include further ones.
func (d *doc) includeFile(v value, file string, p *Policy) (list []rules.Rule, at []Position) {
	if slices.Contains(d.chain, file) {
		d.fail(v.spot(), KindValue, "%s includes itself", file)
		return nil, nil
	}
	if len(d.chain) >= maxChain {
		d.fail(v.spot(), KindValue, "files include one another more than %d deep", maxChain)
		return nil, nil
	}
	data, err := d.read(file)
	if err != nil {
		d.missing = append(d.missing, Problem{File: d.file, Line: v.line, Col: v.col, Kind: NoteMissing, Text: "reading an included file: " + err.Error()})
		return nil, nil
	}
	d.enterFile(file, "include", data)
	defer d.leaveFile()
	in, root, ok := d.open(file, data)
	if !ok || root == nil {
		return nil, nil
	}
	rv, _ := in.value(root, spot{1, 1})
	top := in.mapping(rv, "an included file")
	if top == nil {
		return nil, nil
	}
	list, at = in.onlyRules(top)
	in.tests(top, p)
	if iv, ok := top.get("include"); ok {
		more, moreAt := in.included(iv, p)
		list, at = append(list, more...), append(at, moreAt...)
	}
	in.onlyThose(top)
	return list, at
}

// onlyRules reads the egress_rules of an included file, in any of the shapes.
func (d *doc) onlyRules(top *mapping) (list []rules.Rule, at []Position) {
	m := top
	if v, ok := top.get("os_env"); ok {
		if top.has("sandbox") {
			d.fail(top.key("os_env"), KindConflict, "a policy is a sandbox or an os_env, not both")
		}
		if m = d.mapping(v, "os_env"); m == nil {
			return nil, nil
		}
		defer d.onlyThose(m)
	}
	v, ok := m.get("sandbox")
	if !ok {
		return nil, nil
	}
	s := d.mapping(v, "sandbox")
	if s == nil {
		return nil, nil
	}
	if t, ok := s.get("type"); ok {
		d.backend(t, &Sandbox{})
	}
	if rv, ok := s.get("egress_rules"); ok {
		list, at = d.ruleList(rv)
	}
	d.onlyThose(s)
	return list, at
}

// onlyThose refuses what an included file would say in vain: of it only rules
// and tests count, and a mask or limit that is silently left out is worse than
// an error.
func (d *doc) onlyThose(m *mapping) {
	for _, e := range m.entries {
		if !slices.Contains(m.asked, e.name) {
			d.fail(e.key, KindConflict, "of an included file only egress_rules, include and tests count: %s belongs to the file in force", quoted(e.name))
		}
	}
}

var errNoReader = errors.New("no reader of further files")

var errTooMany = fmt.Errorf("a policy of more than %d files", maxFiles)

func (l *loader) read(file string) ([]byte, error) {
	if l.reads++; l.reads > maxFiles {
		return nil, errTooMany
	}
	if l.opts.ReadFile == nil {
		l.absent = append(l.absent, file)
		return nil, errNoReader
	}
	data, err := l.opts.ReadFile(file)
	if err != nil {
		l.absent = append(l.absent, file)
	}
	return data, err
}

// agents reads agents/NAME/config.yaml of each agent beside the file that
// names them.
func (d *doc) agents(p *Policy) {
	for i, name := range p.Tools.Agents {
		file := agentFile(d.file, name)
		at := p.agentSpots[i]
		if len(d.chain) >= maxChain {
			d.fail(at, KindValue, "agents name one another more than %d deep", maxChain)
			return
		}
		data, err := d.read(file)
		if err != nil {
			d.notes = append(d.notes, Problem{File: d.file, Line: at.line, Col: at.col, Kind: NoteMissing, Text: "reading an agent's file: " + err.Error(), Warning: true})
			continue
		}
		agent := d.loader.policy(file, data, p)
		if agent == nil {
			continue
		}
		if !agent.sections["audit"] { // it keeps this file's record
			for _, e := range agent.environments() {
				for _, record := range p.records {
					d.crossRecord(record, e)
				}
			}
		}
		if p.Agents == nil {
			p.Agents = map[string]*Policy{}
		}
		p.Agents[name] = agent
	}
}

// agentFile is where the file of an agent lies that a policy names.
func agentFile(policy, name string) string {
	return path.Join(path.Dir(policy), "agents", name, "config.yaml")
}
