package policy

import "slices"

// rulePresets are the names that `include` knows: what the usual clients of a
// service need to read from it. What hands out a secret there is denied.
var rulePresets = map[string][]string{
	"github": {
		"GET,HEAD github.com/**", "POST github.com/*/*/git-upload-pack", "GET,HEAD codeload.github.com/**",
		"GET,HEAD raw.githubusercontent.com/**", "GET,HEAD objects.githubusercontent.com/**",
		"GET,HEAD release-assets.githubusercontent.com/**", "GET,HEAD api.github.com/**",
	},
	"gitlab": {"GET,HEAD gitlab.com/**", "POST gitlab.com/**/git-upload-pack"},
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
	"openrouter": {"POST openrouter.ai/api/v1/chat/completions", "POST openrouter.ai/api/v1/responses", "GET openrouter.ai/api/v1/models/**", "GET openrouter.ai/api/v1/models"},
	"gemini":     {"POST generativelanguage.googleapis.com/*/models/**", "GET generativelanguage.googleapis.com/*/models/**", "GET generativelanguage.googleapis.com/*/models"},
	"mistral":    {"POST api.mistral.ai/v1/chat/completions", "POST api.mistral.ai/v1/fim/completions", "POST api.mistral.ai/v1/embeddings", "GET api.mistral.ai/v1/models/**", "GET api.mistral.ai/v1/models"},
	"slack": {
		"GET,POST slack.com/api/*", "GET files.slack.com/**", "!* slack.com/api/oauth.*", "!* slack.com/api/openid.*", "!* slack.com/api/tooling.tokens.*",
		"!* slack.com/api/apps.connections.open", "!* slack.com/api/apps.manifest.*", "!* slack.com/api/rtm.*",
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
