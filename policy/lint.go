package policy

import (
	"fmt"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/rules"
)

func (d *doc) warn(at Position, kind, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: at.File, Line: at.Line, Col: at.Col, Kind: kind, Text: fmt.Sprintf(format, args...), Warning: true})
}

// lint warns of what loads but is odd.
func (d *doc) lint(envs []*Environment) {
	for _, e := range envs {
		if e.inherited {
			continue
		}
		if e.HasSandbox && e.Unfiltered() {
			d.warn(d.pos(e.pos.sandbox), WarnUnfiltered, "no egress_rules: the program has the host's network, unfiltered")
		}
		for _, w := range rules.Lint(e.Rules) {
			d.warn(e.RulePos[w.Index], w.Kind, "%s", w.Text)
		}
		d.lintIssuing(e)
		d.noteLoopback(e)
		d.lintGrants(e)
		d.lintCredentials(e)
	}
}

// lintGrants names grants that a mask hides, for a mask beats every grant.
func (d *doc) lintGrants(e *Environment) {
	for _, list := range [][]grant{e.pos.reads, e.pos.writable} {
		for _, g := range list {
			for _, mask := range e.pos.masks {
				if within(g.text, mask) {
					d.warn(d.pos(g.at), WarnMasked, "the grant lies in %s, which mask_paths hides", mask)
					break
				}
			}
		}
	}
}

// lintCredentials names entries whose host no rule reaches, and those that a
// tunnel may hide.
func (d *doc) lintCredentials(e *Environment) {
	for i, entry := range e.Credentials {
		place := e.pos.entries[i]
		reached := false
		for j, t := range entry.Targets {
			at := place.at
			if j < len(place.targets) {
				at = place.targets[j]
			}
			ok := Reaches(e.Rules, t)
			reached = reached || ok
			if !ok && len(place.targets) > 0 {
				d.warn(d.pos(at), WarnUnreached, "no rule reaches %s, so %s is never attached", hostAndPort(t), entry.ID)
			}
			if j, hides := rules.TunnelConflict(e.Rules, t.Host, t.Port); hides {
				d.warn(d.pos(at), WarnTunnel, "%q makes a tunnel of %s, in which nothing is attached", e.Rules[j].String(), hostAndPort(t))
			}
		}
		if len(entry.Targets) > 0 && len(place.targets) == 0 && !reached {
			hint := ""
			if _, ok := Presets()[entry.Preset]; ok {
				hint = fmt.Sprintf(": include: [%s] brings rules", entry.Preset)
			}
			d.warn(d.pos(place.at), WarnUnreached, "no rule reaches a host of %s, so it is never attached%s", entry.ID, hint)
		}
	}
}

// Reaches says that an allow rule covers https on the target's host and port,
// and is no tunnel.
func Reaches(list []rules.Rule, t credbroker.Target) bool {
	for _, r := range list {
		port := r.Port == t.Port || r.Port == rules.AnyPort || r.Port == 0 && t.Port == 443
		if !r.Deny && !r.Tunnel && r.Scheme != "http" && port && (covers(r.Host, t.Host) || covers(t.Host, r.Host)) {
			return true
		}
	}
	return false
}
