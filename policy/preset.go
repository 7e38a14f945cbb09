package policy

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/rules"
)

// credentialPreset is an entry by name. Every preset says own: replace: with a
// key of an attacker's, data would leave through an allowed host.
type credentialPreset struct {
	kind, header, username string
	// env are the variables of the placeholder. The secret is read from the
	// first, unless source says otherwise.
	env []string
	// targets are the hosts; none where every user has another one.
	targets []string
	ranges  bool
	// model says that the hosts are a model's API, where a placeholder in a body
	// passes: without it an agent that printed its environment once could never
	// speak to its model again.
	model bool
	// also are further places in which the service takes a credential.
	also credbroker.Places
	// needs are keys that only the user knows.
	needs []string
	// denies are the calls of the service whose answers are new secrets, each
	// METHODS PATH or, where only one of its hosts has it, METHODS HOST/PATH:
	// rules that deny them come with the entry.
	denies []string
}

// credentialPresets are the names that `preset` of an entry knows.
var credentialPresets = map[string]credentialPreset{
	"anthropic": {kind: credbroker.HTTPSHeader, header: "x-api-key", env: []string{"ANTHROPIC_API_KEY"}, targets: []string{"api.anthropic.com"}, model: true,
		denies: []string{"* /v1/oauth/*", "* /api/oauth/*", "* /api/oauth/claude_cli/*"}},
	"openai": {kind: credbroker.HTTPSBearer, env: []string{"OPENAI_API_KEY"}, targets: []string{"api.openai.com"}, model: true,
		denies: []string{"POST /v1/organization/admin_api_keys", "POST /v1/organization/projects/*/service_accounts", "POST /v1/realtime/client_secrets", "POST /v1/realtime/sessions", "POST /v1/realtime/transcription_sessions"},
		also:   credbroker.Places{Protocols: []string{"openai-insecure-api-key.", "openai-ephemeral-api-key."}}},
	"openrouter": {kind: credbroker.HTTPSBearer, env: []string{"OPENROUTER_API_KEY"}, targets: []string{"openrouter.ai"}, model: true,
		denies: []string{"POST /api/v1/keys", "POST /api/v1/auth/keys"}},
	"gemini": {kind: credbroker.HTTPSHeader, header: "x-goog-api-key", env: []string{"GEMINI_API_KEY"}, targets: []string{"generativelanguage.googleapis.com"}, model: true,
		denies: []string{"POST /*/auth_tokens", "* /batch", "* /batch/**"},
		also:   credbroker.Places{Fields: []string{"X-Goog-Iam-Authorization-Token"}, Params: []string{"key", "access_token", "oauth_token"}}},
	"mistral": {kind: credbroker.HTTPSBearer, env: []string{"MISTRAL_API_KEY"}, targets: []string{"api.mistral.ai"}, model: true},
	"github": {kind: credbroker.GHBasic, env: []string{"GH_TOKEN"},
		denies: []string{"POST api.github.com/**/installations/*/access_tokens", "* api.github.com/**/applications/*/token", "* api.github.com/**/applications/*/token/scoped", "POST api.github.com/**/app-manifests/*/conversions",
			"POST api.github.com/**/repos/*/*/keys", "POST api.github.com/**/user/keys", "POST api.github.com/**/runners/registration-token",
			"POST api.github.com/**/runners/generate-jitconfig", "* github.com/login/oauth/*"}},
	"gitlab": {kind: credbroker.HTTPSHeader, header: "PRIVATE-TOKEN", env: []string{"GITLAB_TOKEN"}, targets: []string{"gitlab.com/api"},
		denies: []string{"* /oauth/*", "POST /api/v4/**/access_tokens", "POST /api/v4/**/personal_access_tokens", "POST /api/v4/**/rotate", "POST /api/v4/**/deploy_tokens",
			"POST /api/v4/**/triggers", "POST /api/v4/user/runners", "POST /api/v4/runners", "POST /api/v4/**/impersonation_tokens",
			"POST /api/v4/**/trigger/pipeline", "* /api/v4/jobs", "* /api/v4/jobs/**"}, // these take a token of their own as "token"
		also: credbroker.Places{Fields: []string{"PRIVATE-TOKEN", "JOB-TOKEN", "Deploy-Token", "X-NuGet-ApiKey"},
			Params: []string{"private_token", "job_token", "access_token", "deploy_token"}}},
	"huggingface": {kind: credbroker.HTTPSBearer, env: []string{"HF_TOKEN"}, targets: []string{"huggingface.co"}, ranges: true,
		denies: []string{"* /oauth/*"}},
	"jira": {kind: credbroker.HTTPSBasic, env: []string{"JIRA_API_TOKEN"}, needs: []string{"target", "username"},
		denies: []string{"POST /rest/pats/*/tokens"},
		also:   credbroker.Places{Params: []string{"os_username", "os_password", "jwt"}}},
	"npm": {kind: credbroker.HTTPSBearer, env: []string{"NPM_TOKEN"}, targets: []string{"registry.npmjs.org"},
		denies: []string{"* /-/npm/v1/tokens", "* /-/npm/v1/tokens/**", "PUT /-/user/*", "* /-/v1/login"}},
	"pypi": {kind: credbroker.HTTPSBasic, username: "__token__", env: []string{"TWINE_PASSWORD", "UV_PUBLISH_TOKEN"}, targets: []string{"upload.pypi.org"}},
	"slack": {kind: credbroker.HTTPSBearer, env: []string{"SLACK_BOT_TOKEN"}, targets: []string{"slack.com/api", "files.slack.com"},
		denies: []string{"* /api/oauth.*", "* /api/openid.*", "* /api/tooling.tokens.*", "* /api/apps.connections.open", "* /api/apps.manifest.*", "* /api/rtm.*"},
		also:   credbroker.Places{Params: []string{"token"}}},
}

// preset fills the entry in from the name; what is written beside it wins, and
// is read afterwards.
func (c *credential) preset() {
	v, ok := c.m.get("preset")
	if !ok {
		return
	}
	name, ok := c.text(v)
	if !ok {
		return
	}
	p, known := credentialPresets[name]
	if !known {
		c.fail(v.spot(), KindValue, "%s is no preset of a credential: %s", quoted(name),
			strings.Join(slices.Sorted(maps.Keys(credentialPresets)), ", "))
		return
	}
	x := &c.entry
	x.Preset, x.Type, x.Header, x.Username, x.Own, x.Ranges, x.Also = name, p.kind, p.header, p.username, "replace", p.ranges, p.also
	x.Source = &credbroker.Source{Env: p.env[0]}
	if !c.m.has("source") {
		c.secrets = append(c.secrets, p.env[0])
	}
	if p.kind != credbroker.GHBasic {
		x.Env = slices.Clone(p.env)
	}
	for _, t := range p.targets {
		target, _ := parseTarget(t, false)
		x.Targets = append(x.Targets, target)
	}
}

// presetNeeds looks for the keys that a preset cannot fill in.
func (c *credential) presetNeeds() {
	p := credentialPresets[c.entry.Preset]
	if c.entry.Type != p.kind {
		return // another type has other needs
	}
	for _, key := range p.needs {
		if key != "target" { // every type asks for that one
			c.m.need(key, "the preset "+c.entry.Preset+" does not know it")
		}
	}
}

// presetGrants adds what a preset brings beside the entry: hosts where a
// placeholder in a body passes, and rules that deny what hands out new secrets.
func (c *credential) presetGrants(e *Environment) {
	x := &c.entry
	p := credentialPresets[x.Preset]
	v, _ := c.m.get("preset")
	denied := map[string]bool{}
	for _, t := range x.Targets {
		if p.model && !slices.Contains(e.Sandbox.LeakPass, t.Host) {
			e.Sandbox.LeakPass = append(e.Sandbox.LeakPass, t.Host)
		}
		for _, call := range p.denies {
			methods, path, _ := strings.Cut(call, " ")
			host, path, _ := strings.Cut(path, "/")
			text := "!" + methods + " " + ruleHost(t) + "/" + path
			if elsewhere := host != "" && host != t.Host && slices.Contains(credentialTypes[x.Type].targets, t.Host); elsewhere || denied[text] {
				continue
			}
			denied[text] = true
			if r, err := rules.Parse(text); err == nil {
				e.Rules, e.RulePos = append(e.Rules, r), append(e.RulePos, c.pos(v.spot()))
			}
		}
	}
}

// ruleHost is a target's host as a rule spells it, with a port that is not the
// usual one.
func ruleHost(t credbroker.Target) string {
	if t.Port != 443 {
		return net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
	}
	if strings.Contains(t.Host, ":") {
		return "[" + t.Host + "]"
	}
	return t.Host
}
