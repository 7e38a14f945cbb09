package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/egressd/egressd/rules"
)

// Select gives the policy of an agent, a terminal, or an agent's terminal; ""
// for neither. The copy's Environment is the chosen one's. An agent's sections
// are its own file's; what that leaves out is the naming file's.
func (p *Policy) Select(agent, terminal string) (*Policy, error) {
	chosen := *p
	if agent != "" {
		a, ok := p.Agents[agent]
		if !ok && slices.Contains(p.Tools.Agents, agent) {
			return nil, fmt.Errorf("choosing agent %q: agents/%s/config.yaml beside %s could not be read", agent, agent, p.Path)
		}
		if !ok {
			return nil, fmt.Errorf("choosing agent %q: %s", agent, known(p.Agents, "tools.agents names"))
		}
		chosen = *a
		// It is trusted, and read again, as the file that names it.
		chosen.Path = p.Path
		chosen.Hash, chosen.Files, chosen.Missing, chosen.Notes, chosen.absent = p.Hash, p.Files, p.Missing, p.Notes, p.absent
		chosen.takeSections(p)
	}
	if terminal != "" {
		t, ok := chosen.Terminals[terminal]
		if !ok {
			return nil, fmt.Errorf("choosing terminal %q: %s", terminal, known(chosen.Terminals, "terminals names"))
		}
		chosen.Terminal, chosen.Environment = t, t.Environment
	}
	return &chosen, nil
}

func known[T any](m map[string]T, what string) string {
	if len(m) == 0 {
		return what + " none"
	}
	return what + " " + strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// takeSections fills in the sections that an agent's file does not hold.
func (p *Policy) takeSections(from *Policy) {
	if !p.sections["upstream"] {
		p.Upstream = from.Upstream
	}
	if !p.sections["audit"] {
		p.Audit = from.Audit
	}
	if !p.sections["limits"] {
		p.Limits = from.Limits
	}
	if !p.sections["tls"] {
		p.TLS = from.TLS
	}
	if !p.sections["approval"] {
		p.Approval = from.Approval
	}
	if !p.sections["metrics"] {
		p.Metrics = from.Metrics
	}
}

// Add gives the policy with the rules of --allow and --deny behind its own. It
// turns filtering on where there was none. The texts of deny are rules without
// their mark. Problems are placed at "--allow" and "--deny"; with an error the
// policy is nil.
func (p *Policy) Add(allow, deny []string) (*Policy, Problems) {
	if len(allow)+len(deny) == 0 {
		return p, nil
	}
	a := adding{policy: p}
	a.flags("--allow", allow, false)
	a.flags("--deny", deny, true)
	if e := &p.Environment; len(a.problems) == 0 {
		switch {
		case e.Sandbox.Type == BackendNone || e.Sandbox.Type == BackendFirejail:
			a.fail(a.places[0], KindConflict, e.Sandbox.Type+" filters no network, so rules cannot be added")
		case !e.Sandbox.AllowNetwork:
			a.fail(a.places[0], KindConflict, "allow_network: false leaves nothing for rules to speak of")
		}
	}
	if len(a.problems) > 0 {
		return nil, a.problems
	}
	q := *p
	q.HasRules = true
	q.Rules, q.RulePos = slices.Concat(p.Rules, a.rules), slices.Concat(p.RulePos, a.places)
	a.conflicts(&q)
	if len(a.problems) > 0 {
		return nil, a.problems
	}
	q.added = slices.Clone(p.added)
	for _, r := range a.rules {
		q.added = append(q.added, r.String())
	}
	q.Hash = q.hash()
	return &q, nil
}

// adding is one call of Add.
type adding struct {
	policy   *Policy
	rules    []rules.Rule
	places   []Position
	problems Problems
}

func (a *adding) fail(at Position, kind, text string) {
	a.problems = append(a.problems, Problem{File: at.File, Line: at.Line, Col: at.Col, Kind: kind, Text: text})
}

func (a *adding) flags(name string, texts []string, deny bool) {
	for i, text := range texts {
		at := Position{File: name, Line: i + 1, Col: 1}
		text = strings.TrimSpace(text)
		if deny && !strings.HasPrefix(text, "!") {
			text = "!" + text
		}
		r, err := rules.Parse(text)
		switch parse := (*rules.ParseError)(nil); {
		case errors.As(err, &parse):
			a.problems = append(a.problems, Problem{File: at.File, Line: at.Line, Col: at.Col, Kind: KindRule,
				Problem: parse.Kind, Text: strings.TrimPrefix(parse.Error(), parse.Kind+": ")})
		case err != nil:
			a.fail(at, KindRule, err.Error())
		case r.Deny != deny:
			a.fail(at, KindValue, "a rule to deny is given by --deny")
		case isOwn(r.Host):
			a.fail(at, KindValue, ownName+" is egressd itself: no rule speaks of it")
		default:
			a.rules, a.places = append(a.rules, r), append(a.places, at)
		}
	}
}

// conflicts tells of tunnels that the added rules bring beside others.
func (a *adding) conflicts(p *Policy) {
	for _, c := range rules.Conflicts(p.Rules) {
		a.fail(p.RulePos[c.Index], KindConflict, c.Text)
	}
	for i := range a.rules {
		for _, entry := range p.Credentials {
			for _, t := range entry.Targets {
				if j, hides := rules.TunnelConflict(a.rules[i:i+1], t.Host, t.Port); j >= 0 && !hides {
					a.fail(a.places[i], KindConflict, hostAndPort(t)+" is where "+entry.ID+" is attached, which a tunnel prevents")
				}
			}
		}
	}
}
