package policy

import (
	"fmt"
	"strings"

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
			ok := reaches(e.Rules, t)
			reached = reached || ok
			if !ok && len(place.targets) > 0 {
				d.warn(d.pos(at), WarnUnreached, "no rule reaches %s, so %s is never attached", hostAndPort(t), entry.ID)
			}
			if j, hides := rules.TunnelConflict(e.Rules, t.Host, t.Port); hides {
				d.warn(d.pos(at), WarnTunnel, "%q makes a tunnel of %s, in which nothing is attached", e.Rules[j].String(), hostAndPort(t))
			}
		}
		if len(entry.Targets) > 0 && len(place.targets) == 0 && !reached {
			d.warn(d.pos(place.at), WarnUnreached, "no rule reaches a host of %s", entry.ID)
		}
	}
}

// reaches says that an allow rule covers https on the target's host and port,
// and is no tunnel.
func reaches(list []rules.Rule, t credbroker.Target) bool {
	for _, r := range list {
		port := r.Port == t.Port || r.Port == rules.AnyPort || r.Port == 0 && t.Port == 443
		if !r.Deny && !r.Tunnel && r.Scheme != "http" && port && (covers(r.Host, t.Host) || covers(t.Host, r.Host)) {
			return true
		}
	}
	return false
}

// issuing is a call whose answer is a secret: what comes back from it is not
// the secret that was attached, and reaches the sandbox. docs/issuing.md has
// this list in words.
type issuing struct{ method, host, path string }

func (x issuing) request() rules.Request {
	return rules.Request{Method: x.method, Scheme: "https", Host: x.host, Port: 443, Target: x.path, Length: -1}
}

var issuingEndpoints = []issuing{
	{"POST", "api.github.com", "/app/installations/1/access_tokens"},
	{"POST", "api.github.com", "/applications/c/token/scoped"},
	{"POST", "api.github.com", "/repos/o/r/keys"},
	{"POST", "api.github.com", "/user/keys"},
	{"POST", "api.github.com", "/repos/o/r/actions/runners/registration-token"},
	{"POST", "api.github.com", "/orgs/o/actions/runners/registration-token"},
	{"POST", "github.com", "/login/oauth/access_token"},
	{"POST", "gitlab.com", "/oauth/token"},
	{"POST", "gitlab.com", "/api/v4/projects/1/access_tokens"},
	{"POST", "gitlab.com", "/api/v4/groups/1/access_tokens"},
	{"POST", "gitlab.com", "/api/v4/user/personal_access_tokens"},
	{"POST", "sts.amazonaws.com", "/"},
	{"POST", "sts.us-east-1.amazonaws.com", "/"},
	{"GET", "sts.amazonaws.com", "/"},
	{"POST", "iam.amazonaws.com", "/"},
	{"POST", "oauth2.googleapis.com", "/token"},
	{"POST", "sts.googleapis.com", "/v1/token"},
	{"POST", "iamcredentials.googleapis.com", "/v1/projects/-/serviceAccounts/a/generateAccessToken"},
	{"POST", "iam.googleapis.com", "/v1/projects/p/serviceAccounts/a/keys"},
	{"POST", "login.microsoftonline.com", "/t/oauth2/v2.0/token"},
	{"POST", "registry.npmjs.org", "/-/npm/v1/tokens"},
	{"POST", "rubygems.org", "/api/v1/api_key"},
	{"PUT", "crates.io", "/api/v1/me/tokens"},
	{"POST", "huggingface.co", "/oauth/token"},
	{"POST", "api.openai.com", "/v1/organization/admin_api_keys"},
	{"POST", "api.openai.com", "/v1/realtime/client_secrets"},
	{"POST", "api.anthropic.com", "/v1/oauth/token"},
	{"POST", "dbc.cloud.databricks.com", "/api/2.0/token/create"},
	{"POST", "dbc.cloud.databricks.com", "/oidc/v1/token"},
	{"POST", "hub.docker.com", "/v2/users/login"},
	{"POST", "api.cloudflare.com", "/client/v4/user/tokens"},
	{"POST", "slack.com", "/api/oauth.v2.access"},
}

// lintIssuing names the allow rules by which a call could be made whose answer
// is a secret, deny rules considered.
func (d *doc) lintIssuing(e *Environment) {
	var denies []rules.Rule
	for _, r := range e.Rules {
		if r.Deny {
			denies = append(denies, r)
		}
	}
	// Each endpoint is asked once whether a deny rule hits it, and only when a
	// rule is for its host: the rules of one host may be many.
	fence := rules.New(append([]rules.Rule{anything}, denies...))
	fenced := map[issuing]bool{}
	denied := func(x issuing) bool {
		hit, asked := fenced[x]
		if !asked {
			hit = fence.Decide(x.request()).Verdict != rules.Allow
			fenced[x] = hit
		}
		return hit
	}
	for i, r := range e.Rules {
		if r.Deny || r.Tunnel {
			continue
		}
		var reached []string
		alone := (*rules.Set)(nil)
		for _, x := range issuingEndpoints {
			if !covers(r.Host, x.host) {
				continue
			}
			if alone == nil {
				bare := r
				bare.Query = nil
				alone = rules.New([]rules.Rule{bare})
			}
			if alone.Decide(x.request()).Verdict == rules.Allow && !denied(x) {
				reached = append(reached, x.method+" "+x.host+x.path)
			}
		}
		if len(reached) > 0 {
			d.warn(e.RulePos[i], WarnIssuing, "the rule reaches %s, whose answer is a new secret that the sandbox gets to see", strings.Join(reached[:min(3, len(reached))], ", "))
		}
	}
}

// anything is the rule that allows every call; it only ever stands beside deny
// rules, to ask whether one of them hits.
var anything = rules.Rule{Methods: []string{"*"}, Host: "*", Path: "/**"}
