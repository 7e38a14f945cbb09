package policy

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/rules"
)

// issuing is a call whose answer is a secret: what comes back from it is not
// the secret that was attached, and reaches the sandbox. docs/issuing.md has
// this list in words.
type issuing struct {
	method string
	// host may hold one star, for the names of regions and workspaces.
	host, path string
	// port is 443 where it is 0.
	port int
}

func (x issuing) request() rules.Request {
	return rules.Request{Method: x.method, Scheme: "https", Host: x.host, Port: x.on(), Target: x.path, Length: -1}
}

func (x issuing) on() int {
	if x.port == 0 {
		return 443
	}
	return x.port
}

// at is the call at a host that a rule names; ok is false where the rule speaks
// of other hosts.
func (x issuing) at(ruleHost string) (call issuing, ok bool) {
	before, behind, pattern := strings.Cut(x.host, "*")
	if !pattern {
		return x, covers(ruleHost, x.host)
	}
	fits := func(host string) bool {
		return len(host) > len(x.host)-1 && strings.HasPrefix(host, before) && strings.HasSuffix(host, behind)
	}
	for _, host := range []string{ruleHost, "x" + strings.TrimPrefix(ruleHost, "*"), before + "x" + behind} {
		if !strings.Contains(host, "*") && fits(host) && covers(ruleHost, host) {
			x.host = host
			return x, true
		}
	}
	return x, false
}

var issuingEndpoints = []issuing{
	{"POST", "api.github.com", "/app/installations/1/access_tokens", 0},
	{"POST", "api.github.com", "/app-manifests/c/conversions", 0},
	{"POST", "api.github.com", "/applications/c/token/scoped", 0},
	{"PATCH", "api.github.com", "/applications/c/token", 0},
	{"POST", "api.github.com", "/repos/o/r/keys", 0},
	{"POST", "api.github.com", "/user/keys", 0},
	{"POST", "api.github.com", "/repos/o/r/actions/runners/registration-token", 0},
	{"POST", "api.github.com", "/repos/o/r/actions/runners/generate-jitconfig", 0},
	{"POST", "api.github.com", "/orgs/o/actions/runners/registration-token", 0},
	{"POST", "github.com", "/login/oauth/access_token", 0},
	{"POST", "gitlab.com", "/oauth/token", 0},
	{"POST", "gitlab.com", "/api/v4/projects/1/access_tokens", 0},
	{"POST", "gitlab.com", "/api/v4/projects/1/deploy_tokens", 0},
	{"POST", "gitlab.com", "/api/v4/projects/1/triggers", 0},
	{"POST", "gitlab.com", "/api/v4/groups/1/access_tokens", 0},
	{"POST", "gitlab.com", "/api/v4/groups/1/deploy_tokens", 0},
	{"POST", "gitlab.com", "/api/v4/user/personal_access_tokens", 0},
	{"POST", "gitlab.com", "/api/v4/user/runners", 0},
	{"POST", "gitlab.com", "/api/v4/personal_access_tokens/self/rotate", 0},
	{"POST", "bitbucket.org", "/site/oauth2/access_token", 0},
	{"POST", "sts.amazonaws.com", "/", 0},
	{"GET", "sts.amazonaws.com", "/", 0},
	{"POST", "sts.*.amazonaws.com", "/", 0},
	{"GET", "sts.*.amazonaws.com", "/", 0},
	{"POST", "iam.amazonaws.com", "/", 0},
	{"POST", "oidc.*.amazonaws.com", "/token", 0},
	{"GET", "portal.sso.*.amazonaws.com", "/federation/credentials", 0},
	{"POST", "codeartifact.*.amazonaws.com", "/v1/authorization-token", 0},
	{"POST", "oauth2.googleapis.com", "/token", 0},
	{"POST", "sts.googleapis.com", "/v1/token", 0},
	{"POST", "securetoken.googleapis.com", "/v1/token", 0},
	{"POST", "iamcredentials.googleapis.com", "/v1/projects/-/serviceAccounts/a/generateAccessToken", 0},
	{"POST", "iam.googleapis.com", "/v1/projects/p/serviceAccounts/a/keys", 0},
	{"POST", "generativelanguage.googleapis.com", "/v1alpha/auth_tokens", 0},
	{"POST", "login.microsoftonline.com", "/t/oauth2/v2.0/token", 0},
	{"POST", "registry.npmjs.org", "/-/npm/v1/tokens", 0},
	{"PUT", "registry.npmjs.org", "/-/user/org.couchdb.user:a", 0},
	{"POST", "registry.npmjs.org", "/-/v1/login", 0},
	{"POST", "pypi.org", "/_/oidc/mint-token", 0},
	{"POST", "rubygems.org", "/api/v1/api_key", 0},
	{"PUT", "crates.io", "/api/v1/me/tokens", 0},
	{"POST", "huggingface.co", "/oauth/token", 0},
	{"POST", "api.openai.com", "/v1/organization/admin_api_keys", 0},
	{"POST", "api.openai.com", "/v1/organization/projects/p/service_accounts", 0},
	{"POST", "api.openai.com", "/v1/realtime/client_secrets", 0},
	{"POST", "api.openai.com", "/v1/realtime/sessions", 0},
	{"POST", "api.anthropic.com", "/v1/oauth/token", 0},
	{"POST", "openrouter.ai", "/api/v1/keys", 0},
	{"POST", "openrouter.ai", "/api/v1/auth/keys", 0},
	{"POST", "*.cloud.databricks.com", "/api/2.0/token/create", 0},
	{"POST", "*.cloud.databricks.com", "/api/2.0/token-management/on-behalf-of/tokens", 0},
	{"POST", "*.cloud.databricks.com", "/oidc/v1/token", 0},
	{"POST", "*.azuredatabricks.net", "/api/2.0/token/create", 0},
	{"POST", "*.azuredatabricks.net", "/oidc/v1/token", 0},
	{"POST", "*.gcp.databricks.com", "/api/2.0/token/create", 0},
	{"POST", "*.gcp.databricks.com", "/oidc/v1/token", 0},
	{"POST", "hub.docker.com", "/v2/users/login", 0},
	{"POST", "hub.docker.com", "/v2/auth/token", 0},
	{"POST", "hub.docker.com", "/v2/access-tokens", 0},
	{"POST", "api.cloudflare.com", "/client/v4/user/tokens", 0},
	{"POST", "slack.com", "/api/oauth.v2.access", 0},
	{"POST", "slack.com", "/api/apps.connections.open", 0},
	{"POST", "slack.com", "/api/tooling.tokens.rotate", 0},
	{"POST", "auth.atlassian.com", "/oauth/token", 0},
	{"POST", "*.atlassian.net", "/rest/pats/latest/tokens", 0},
}

// issuingOf are the calls beyond the list that an entry itself tells of: those
// of a GitHub of one's own, and the endpoint that its tokens come from.
func issuingOf(entries []credbroker.Entry) []issuing {
	var list []issuing
	for _, x := range entries {
		switch x.Type {
		case credbroker.GHBasic, credbroker.GitHubApp:
			for _, t := range x.Targets {
				if t.Host != "github.com" && !strings.HasSuffix(t.Host, ".github.com") {
					list = append(list,
						issuing{"POST", t.Host, "/api/v3/app/installations/1/access_tokens", t.Port},
						issuing{"POST", t.Host, "/api/v3/user/keys", t.Port},
						issuing{"POST", t.Host, "/login/oauth/access_token", t.Port})
				}
			}
		case credbroker.OAuth2:
			u, err := url.Parse(x.TokenURL)
			if err != nil || u.Hostname() == "" {
				continue
			}
			port, _ := strconv.Atoi(u.Port()) // none: 443
			path := u.EscapedPath()
			if path == "" {
				path = "/"
			}
			list = append(list, issuing{"POST", canonical(u.Hostname()), path, port})
		}
	}
	return list
}

// guarded says that the broker refuses a call by itself: one of STS or IAM to
// where a key of AWS is bound that may not issue. Whoever calls it with no key,
// or with another, gets nothing of this one.
func (x issuing) guarded(entries []credbroker.Entry) bool {
	if x.path != "/" || !strings.HasPrefix(x.host, "sts.") && !strings.HasPrefix(x.host, "iam.") {
		return false
	}
	bound := func(t credbroker.Target) bool {
		return t.Port == x.on() && covers(t.Host, x.host) && slices.ContainsFunc(globs(t.Path), func(glob string) bool {
			return meet(segments(glob), segments(x.path), map[[2]int]bool{})
		})
	}
	guards := false
	for _, e := range entries {
		for _, t := range e.Targets {
			if e.Type != credbroker.AWSSigV4 || !bound(t) {
				continue
			}
			if e.Issue {
				return false
			}
			guards = true
		}
	}
	return guards
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
	own := issuingOf(e.Credentials)
	for i, r := range e.Rules {
		if r.Deny || r.Tunnel {
			continue
		}
		var reached []string
		alone := (*rules.Set)(nil)
		reach := func(list []issuing) {
			for _, x := range list {
				x, ok := x.at(r.Host)
				if !ok {
					continue
				}
				if alone == nil {
					bare := r
					bare.Query = nil
					alone = rules.New([]rules.Rule{bare})
				}
				if alone.Decide(x.request()).Verdict == rules.Allow && !denied(x) && !x.guarded(e.Credentials) {
					reached = append(reached, x.method+" "+x.host+x.path)
				}
			}
		}
		reach(issuingEndpoints)
		reach(own)
		if len(reached) > 0 {
			d.warn(e.RulePos[i], WarnIssuing, "the rule reaches %s, whose answer is a new secret that the sandbox gets to see", strings.Join(reached[:min(3, len(reached))], ", "))
		}
	}
}

// anything is the rule that allows every call; it only ever stands beside deny
// rules, to ask whether one of them hits.
var anything = rules.Rule{Methods: []string{"*"}, Host: "*", Port: rules.AnyPort, Path: "/**"}
