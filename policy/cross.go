package policy

import (
	"maps"
	"slices"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/rules"
)

// crossEnvironment looks at the keys of one environment that exclude or need
// each other.
func (d *doc) crossEnvironment(e *Environment) {
	s, pos := &e.Sandbox, &e.pos
	if e.Fork && e.StartInScratch {
		later := pos.scratch
		if pos.fork.after(later) {
			later = pos.fork
		}
		d.fail(later, KindConflict, "fork and start_in_scratch do not go together")
	}
	if e.StartInScratch && s.Type == BackendNone {
		d.fail(pos.scratch, KindConflict, "type: none has no scratch folder to start in")
	}
	if !e.HasSandbox || e.inherited {
		return
	}
	off := pos.network != spot{} && !s.AllowNetwork
	hasRules, hasCredentials := pos.rules != spot{}, pos.credentials != spot{}
	filters := s.Type != BackendNone && s.Type != BackendFirejail
	if hasRules && !filters {
		d.fail(pos.rules, KindConflict, "%s filters no network: egress_rules need linux_bwrap or darwin_seatbelt", s.Type)
	}
	if hasCredentials && !filters {
		d.fail(pos.credentials, KindConflict, "%s filters no network: credential_proxy needs linux_bwrap or darwin_seatbelt", s.Type)
	} else if hasCredentials && !hasRules {
		d.fail(pos.credentials, KindConflict, "credential_proxy needs egress_rules: a secret is attached to requests that a rule allows")
	}
	if off && s.Type == BackendNone {
		d.fail(pos.network, KindConflict, "type: none cannot take the network away")
	}
	if off && hasRules && s.Type != BackendNone {
		later := pos.rules
		if pos.network.after(later) {
			later = pos.network
		}
		d.fail(later, KindConflict, "allow_network: false leaves nothing for egress_rules to speak of")
	}
	d.crossPassthrough(e)
	d.crossEntries(e)
}

// crossPassthrough refuses a variable that would carry a real secret inside:
// the source of an entry, or the real twin of a placeholder.
func (d *doc) crossPassthrough(e *Environment) {
	holds, real, inside := map[string]string{}, map[string]string{}, map[string]string{}
	for i, entry := range e.Credentials {
		place := e.pos.entries[i]
		for _, g := range place.env {
			if holder := holds[g.text]; holder != "" {
				d.fail(g.at, KindConflict, "%s holds the placeholder of %s already", g.text, holder)
			}
			holds[g.text] = entry.ID
		}
		for _, name := range place.secrets {
			real[name] = entry.ID
		}
		for _, name := range InsideVariables(entry) {
			inside[name] = entry.ID
		}
	}
	for _, g := range e.pos.passed {
		switch {
		case real[g.text] != "":
			d.fail(g.at, KindConflict, "%s is the source of %s: passed through, the secret would be in the sandbox", g.text, real[g.text])
		case inside[g.text] != "":
			d.fail(g.at, KindConflict, "%s holds the placeholder of %s inside", g.text, inside[g.text])
		}
	}
}

// InsideVariables are the variables that an entry sets inside the sandbox, or
// may set: they cannot be passed through.
func InsideVariables(x credbroker.Entry) []string {
	names := slices.Clone(x.Env)
	switch x.Type {
	case credbroker.GHBasic, credbroker.GitHubApp:
		names = append(names, githubVariables(x.Targets)...)
	case credbroker.AWSSigV4:
		names = append(names, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
	case credbroker.DatabricksCLI:
		names = append(names, "DATABRICKS_CONFIG_FILE", "DATABRICKS_CONFIG_PROFILE")
	}
	return names
}

// githubVariables are the variables that gh looks for: others for a GitHub
// Enterprise host than for github.com.
func githubVariables(targets []credbroker.Target) []string {
	var names []string
	for _, t := range targets {
		add := []string{"GH_HOST", "GH_ENTERPRISE_TOKEN"}
		if covers("*.github.com", t.Host) {
			add = []string{"GH_TOKEN", "GITHUB_TOKEN"}
		}
		for _, name := range add {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// crossEntries refuses two entries that one request could be for.
func (d *doc) crossEntries(e *Environment) {
	for i := range e.Credentials {
		for j := range i {
			if a, b, ok := both(e.Credentials[j], e.Credentials[i]); ok {
				d.fail(e.pos.entries[i].at, KindConflict, "%s and %s of %s are for the same requests: keep their paths apart",
					quoted(b.Text), quoted(a.Text), e.Credentials[j].ID)
				break
			}
		}
	}
}

func both(x, y credbroker.Entry) (a, b credbroker.Target, ok bool) {
	for _, a := range x.Targets {
		for _, b := range y.Targets {
			if overlap(a, b) {
				return a, b, true
			}
		}
	}
	return a, b, false
}

// crossFile looks at what the sections of a file say together, once rules of
// includes are known.
func (d *doc) crossFile(p *Policy) {
	envs := p.environments()
	for _, e := range envs {
		if !e.inherited {
			d.crossTunnels(e)
		}
		for _, record := range p.records {
			d.crossRecord(record, e)
		}
	}
	if !d.opts.NoLint && len(d.problems.Errors()) == 0 {
		d.lint(envs)
	}
}

// environments are the file's own: the top's, and those of terminals that have
// one.
func (p *Policy) environments() []*Environment {
	list := []*Environment{&p.Environment}
	for _, name := range slices.Sorted(maps.Keys(p.Terminals)) {
		if t := p.Terminals[name]; !t.Inherit {
			list = append(list, &t.Environment)
		}
	}
	return list
}

// crossRecord refuses a record that the sandbox could write.
func (d *doc) crossRecord(record grant, e *Environment) {
	if e.Writes(record.text) {
		d.fail(record.at, KindConflict, "the record would lie where the sandbox can write")
	}
}

// Writes says that a path lies below what the sandbox can write, a kept home
// included. Paths are compared as they are spelled, with the caller's folder
// taken for the policy file's: what they are on this host, links followed, is
// for the caller to compare.
func (e *Environment) Writes(path string) bool {
	return slices.ContainsFunc(e.pos.writable, func(g grant) bool { return within(path, g.text) })
}

// crossTunnels refuses a tunnel to a host and port that another rule or a
// credential names: what goes through it is not looked into.
func (d *doc) crossTunnels(e *Environment) {
	for _, c := range rules.Conflicts(e.Rules) {
		pos := e.RulePos[c.Index]
		d.problems = append(d.problems, Problem{File: pos.File, Line: pos.Line, Col: pos.Col, Kind: KindConflict, Text: c.Text})
	}
	for i, entry := range e.Credentials {
		for _, t := range entry.Targets {
			if j, hides := rules.TunnelConflict(e.Rules, t.Host, t.Port); j >= 0 && !hides {
				d.fail(e.pos.entries[i].at, KindConflict, "%s is a tunnel by %q, in which nothing can be attached", hostAndPort(t), e.Rules[j].String())
				break
			}
		}
	}
}
