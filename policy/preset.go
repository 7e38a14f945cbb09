package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/egressd/egressd/credbroker"
)

// credentialPreset is an entry by name. Every preset says own: replace: with a
// key of an attacker's, data would leave through an allowed host.
type credentialPreset struct {
	kind, header, env string
	targets           []string
	ranges            bool
	// leakPass are the hosts of a model's API, where a placeholder in a body
	// passes: without it an agent that printed its environment once could
	// never speak to its model again.
	leakPass []string
}

// credentialPresets are the names that `preset` of an entry knows. The secret
// is read from the variable that is also the placeholder's inside, unless
// source and env say otherwise.
var credentialPresets = map[string]credentialPreset{
	"anthropic":   {kind: credbroker.HTTPSHeader, header: "x-api-key", env: "ANTHROPIC_API_KEY", targets: []string{"api.anthropic.com"}, leakPass: []string{"api.anthropic.com"}},
	"openai":      {kind: credbroker.HTTPSBearer, env: "OPENAI_API_KEY", targets: []string{"api.openai.com"}, leakPass: []string{"api.openai.com"}},
	"openrouter":  {kind: credbroker.HTTPSBearer, env: "OPENROUTER_API_KEY", targets: []string{"openrouter.ai"}, leakPass: []string{"openrouter.ai"}},
	"gemini":      {kind: credbroker.HTTPSHeader, header: "x-goog-api-key", env: "GEMINI_API_KEY", targets: []string{"generativelanguage.googleapis.com"}, leakPass: []string{"generativelanguage.googleapis.com"}},
	"mistral":     {kind: credbroker.HTTPSBearer, env: "MISTRAL_API_KEY", targets: []string{"api.mistral.ai"}, leakPass: []string{"api.mistral.ai"}},
	"github":      {kind: credbroker.GHBasic, env: "GH_TOKEN"},
	"gitlab":      {kind: credbroker.HTTPSHeader, header: "PRIVATE-TOKEN", env: "GITLAB_TOKEN", targets: []string{"gitlab.com/api"}},
	"huggingface": {kind: credbroker.HTTPSBearer, env: "HF_TOKEN", targets: []string{"huggingface.co"}, ranges: true},
	"npm":         {kind: credbroker.HTTPSBearer, env: "NPM_TOKEN", targets: []string{"registry.npmjs.org"}},
}

// preset fills the entry in from the name; what is written beside it wins, and
// is read afterwards.
func (c *credential) preset(e *Environment) {
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
	x.Preset, x.Type, x.Header, x.Own, x.Ranges = name, p.kind, p.header, "replace", p.ranges
	x.Source = &credbroker.Source{Env: p.env}
	if !c.m.has("source") {
		c.secrets = append(c.secrets, p.env)
	}
	if p.kind != credbroker.GHBasic {
		x.Env = []string{p.env}
	}
	for _, t := range p.targets {
		target, _ := parseTarget(t, false)
		x.Targets = append(x.Targets, target)
	}
	for _, h := range p.leakPass {
		if !slices.Contains(e.Sandbox.LeakPass, h) {
			e.Sandbox.LeakPass = append(e.Sandbox.LeakPass, h)
		}
	}
}

// rulePresets are the names that `include` knows: what the usual clients of a
// service need to read from it. What hands out a secret there is denied.
var rulePresets = map[string][]string{
	"github": {
		"GET,HEAD github.com/**", "POST github.com/*/*/git-upload-pack", "GET,HEAD codeload.github.com/**",
		"GET,HEAD raw.githubusercontent.com/**", "GET,HEAD objects.githubusercontent.com/**",
		"GET,HEAD release-assets.githubusercontent.com/**", "GET,HEAD api.github.com/**",
	},
	"pypi":   {"GET,HEAD pypi.org/simple/**", "GET,HEAD pypi.org/pypi/**", "GET,HEAD files.pythonhosted.org/**"},
	"npm":    {"GET,HEAD registry.npmjs.org/**", "POST registry.npmjs.org/-/npm/v1/security/**", "!* registry.npmjs.org/-/npm/v1/tokens/**", "!* registry.npmjs.org/-/npm/v1/tokens"},
	"go":     {"GET,HEAD proxy.golang.org/**", "GET,HEAD sum.golang.org/**"},
	"crates": {"GET,HEAD index.crates.io/**", "GET,HEAD static.crates.io/**", "GET,HEAD crates.io/api/v1/crates/**"},
	"debian": {"GET,HEAD deb.debian.org/**", "GET,HEAD security.debian.org/**"},
	"ubuntu": {"GET,HEAD archive.ubuntu.com/**", "GET,HEAD security.ubuntu.com/**", "GET,HEAD ports.ubuntu.com/**"},
	"alpine": {"GET,HEAD dl-cdn.alpinelinux.org/**"},
	"maven":  {"GET,HEAD repo1.maven.org/maven2/**", "GET,HEAD repo.maven.apache.org/maven2/**"},
	"rubygems": {
		"GET,HEAD rubygems.org/**", "GET,HEAD index.rubygems.org/**", "!* rubygems.org/api/v1/api_key", "!* rubygems.org/api/v1/api_key.*",
	},
	"huggingface": {"GET,HEAD huggingface.co/**", "GET,HEAD *.hf.co/**"},
	"anthropic":   {"POST api.anthropic.com/v1/messages/**", "POST api.anthropic.com/v1/messages", "GET api.anthropic.com/v1/models/**", "GET api.anthropic.com/v1/models"},
	"openai": {
		"POST api.openai.com/v1/responses", "POST api.openai.com/v1/chat/completions", "POST api.openai.com/v1/embeddings",
		"GET api.openai.com/v1/models", "GET api.openai.com/v1/models/*",
	},
}

// Presets are the names that include takes beside files, with their rules.
func Presets() map[string][]string {
	out := map[string][]string{}
	for name, list := range rulePresets {
		out[name] = slices.Clone(list)
	}
	return out
}
