package policy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/rules"
)

// Words are split as a shell splits them; nothing is expanded.
func TestSplitWords(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"gh auth token", []string{"gh", "auth", "token"}},
		{"  a\t b\n", []string{"a", "b"}},
		{`a 'b c' "d e"f`, []string{"a", "b c", "d ef"}},
		{`a "" ''`, []string{"a", "", ""}},
		{`a\ b "c\"d\e" '\'`, []string{"a b", `c"d\e`, `\`}},
		{"a\\\nb $HOME *", []string{"ab", "$HOME", "*"}},
		{"", nil},
		{`a "b`, nil},
		{`a 'b`, nil},
		{`a \`, nil},
	} {
		got, ok := splitWords(c.text)
		if !slices.Equal(got, c.want) || ok == (c.want == nil && c.text != "") {
			t.Errorf("%q: %q %v", c.text, got, ok)
		}
	}
}

// A program is looked up in PATH, absolute or below home: a relative path could
// be the sandbox's own file.
func TestPrograms(t *testing.T) {
	for text, good := range map[string]bool{
		"gh auth": true, "/usr/bin/gh": true, "~/bin/gh": true, "./gh": false, "bin/gh": false, "../gh": false, "~u/gh": false,
		"env A=b gh": true, "env A=b ./gh": false, "/usr/bin/env -i A=b bin/gh": false, "sh -c ./x": true,
	} {
		argv, _ := splitWords(text)
		all := true
		for _, i := range programs(argv) {
			all = all && program(argv[i])
		}
		if all != good {
			t.Errorf("%q is %v", text, all)
		}
	}
}

// Paths are compared as they are spelled, name by name.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/a", "/", true}, {"a", ".", true}, {"..", ".", false},
		{"../a", ".", false}, {"/a", ".", false}, {"~/a", "~", true}, {"~/a", ".", false}, {"a", "/", false}, {"/a", "/a/b", false},
	} {
		if got := within(c.path, c.dir); got != c.want {
			t.Errorf("%s within %s: %v", c.path, c.dir, got)
		}
	}
	for _, c := range [][4]string{
		{"~", "/p", "/home/u", "/home/u"}, {"~/x/../y", "/p", "/home/u", "/home/u/y"}, {"~u/x", "/p", "/home/u", "/p/~u/x"},
		{"$HOME/x", "/p", "/home/u", "/p/$HOME/x"}, {"../x", "/p/q", "", "/p/x"}, {"/x/", "/p", "", "/x"}, {"~/x", "/p", "", "~/x"}, {"x", "", "", "x"},
	} {
		if got := Expand(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%s is %s, want %s", c[0], got, c[3])
		}
	}
}

// Segments meet where one text fits both.
func TestMeetSegment(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"*", "x", true}, {"*.js", "a*", true}, {"*.js", "*.css", false}, {"a*c", "ab*", true},
		{"a*", "b*", false}, {"*a*", "*b*", true}, {"", "*", true}, {"ab", "a", false},
	} {
		if meetSegment(c.a, c.b) != c.want || meetSegment(c.b, c.a) != c.want {
			t.Errorf("%q and %q: want %v", c.a, c.b, c.want)
		}
	}
}

// Every rule of a preset is one, and every preset of a credential a whole entry.
func TestPresets(t *testing.T) {
	for name := range Presets() {
		if p, problems := Load("egressd.yaml", []byte("include: ["+name+"]\n"), Options{Platform: "linux"}); p == nil || len(p.Rules) == 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	for name, preset := range credentialPresets {
		own := ""
		if len(preset.needs) > 0 {
			own = ", target: site.test, username: ann"
		}
		p, problems := Load("egressd.yaml", []byte("sandbox: {egress_rules: [], credential_proxy: [{preset: "+name+own+"}]}\n"), Options{Platform: "linux"})
		if p == nil {
			t.Errorf("%s: %v", name, problems)
			continue
		}
		c := p.Credentials[0]
		if c.Own != "replace" || c.Source == nil || len(c.Targets) == 0 || c.ID == "" {
			t.Errorf("%s: %+v", name, c)
		}
		if preset.model != slices.Contains(p.Sandbox.LeakPass, c.Targets[0].Host) {
			t.Errorf("%s: leak_pass is %q", name, p.Sandbox.LeakPass)
		}
		for _, r := range p.Rules {
			if !r.Deny {
				t.Errorf("%s allows %s", name, r)
			}
		}
	}
}

// A preset's deny rules go with its hosts, and no rule for everything on them
// reaches a known issuing endpoint then.
func TestPresetDenies(t *testing.T) {
	for _, c := range []struct{ entry, rule, want string }{
		{"{preset: openai}", "* api.openai.com/**", "!POST api.openai.com/v1/realtime/sessions"},
		{"{preset: openai, target: gateway.test}", "* gateway.test/**", "!POST gateway.test/v1/realtime/sessions"},
		{"{preset: openai, target: \"gateway.test:8443\"}", "* gateway.test:8443/**", "!POST gateway.test:8443/v1/realtime/sessions"},
		{"{preset: github}", "* *.github.com/**", "!POST api.github.com/**/user/keys"},
		{"{preset: github}", "* github.com/**", "!* github.com/login/oauth/*"},
		{"{preset: github, target: ghe.test}", "* ghe.test/**", "!POST ghe.test/**/user/keys"},
		{"{preset: gitlab}", "* gitlab.com/**", "!* gitlab.com/oauth/*"},
		{"{preset: slack}", "* slack.com/**", "!* slack.com/api/oauth.*"},
		{"{preset: npm}", "* registry.npmjs.org/**", "!PUT registry.npmjs.org/-/user/*"},
		{"{preset: huggingface}", "* huggingface.co/**", "!* huggingface.co/oauth/*"},
		{"{preset: anthropic}", "* api.anthropic.com/**", "!* api.anthropic.com/v1/oauth/*"},
		{"{preset: openrouter}", "* openrouter.ai/**", "!POST openrouter.ai/api/v1/keys"},
		{"{preset: gemini}", "* generativelanguage.googleapis.com/**", "!POST generativelanguage.googleapis.com/*/auth_tokens"},
		{"{preset: jira, target: x.atlassian.net, username: ann}", "* x.atlassian.net/**", "!POST x.atlassian.net/rest/pats/*/tokens"},
	} {
		text := "sandbox: {egress_rules: [\"" + c.rule + "\"], credential_proxy: [" + c.entry + "]}\n"
		p, problems := Load("egressd.yaml", []byte(text), Options{Platform: "linux"})
		if p == nil || len(problems) > 0 {
			t.Errorf("%s: %v", c.entry, problems)
			continue
		}
		if !slices.ContainsFunc(p.Rules, func(r rules.Rule) bool { return r.String() == c.want }) {
			t.Errorf("%s: no %s in %v", c.entry, c.want, p.Rules)
		}
	}
	p, problems := Load("egressd.yaml", []byte("sandbox: {egress_rules: [], credential_proxy: [{preset: github}]}\n"), Options{Platform: "linux"})
	if p == nil || len(p.Rules) != 9 {
		t.Errorf("github: %v %v", problems, p)
	}
}

// A call that hands out a secret is known where its host has many names, and
// where only the entry tells of it.
func TestIssuingEndpoints(t *testing.T) {
	for _, c := range []struct {
		rule, entry string
		want        bool
	}{
		{"* sts.eu-west-1.amazonaws.com/**", "", true},
		{"* s3.eu-west-1.amazonaws.com/**", "", false},
		{"* *.amazonaws.com/**", "", true},
		{"POST dbc-1.cloud.databricks.com/**", "", true},
		{"GET dbc-1.cloud.databricks.com/**", "", false},
		{"POST *.eu.azuredatabricks.net/**", "", true},
		{"POST ghe.test/**", "", false},
		{"POST ghe.test/**", "{type: gh_basic, target: ghe.test, source: {env: T}}", true},
		{"POST \"idp.test:8443/**\"", "", false},
		{"POST idp.test:8443/t/**", "{type: oauth2, target: api.test, source: {env: T}, token_url: \"https://idp.test:8443/t/tok\", client_id: c}", true},
		{"POST idp.test/t/**", "{type: oauth2, target: api.test, source: {env: T}, token_url: \"https://idp.test:8443/t/tok\", client_id: c}", false},
	} {
		text := "sandbox:\n  egress_rules: ['" + strings.ReplaceAll(c.rule, "\"", "") + "']\n  credential_proxy: [" + c.entry + "]\n"
		_, problems := Load("egressd.yaml", []byte(text), Options{Platform: "linux"})
		got := slices.ContainsFunc(problems, func(p Problem) bool { return p.Kind == WarnIssuing })
		if got != c.want || len(problems.Errors()) > 0 {
			t.Errorf("%s with %s: %v", c.rule, c.entry, problems)
		}
	}
}

// Files that hold a secret or the record are named, of agents too.
func TestSecretFiles(t *testing.T) {
	const text = `audit: {file: rec, sqlite: /db}
tls: {ca: {cert: c.pem, key: c.key}}
upstream: {client_certificates: {a.test: {cert: d.pem, key: ~/d.key}}}
tools: {agents: [a]}
sandbox: {egress_rules: [], credential_proxy: [{type: https_bearer, target: a.test, source: {file: tok}}]}
`
	agent := []byte("sandbox: {egress_rules: [], credential_proxy: [{type: https_bearer, target: a.test, source: {file: tok}}]}\n")
	p, problems := Load("/p/egressd.yaml", []byte(text), Options{Platform: "linux", Home: "/home/u", ReadFile: func(string) ([]byte, error) { return agent, nil }})
	if p == nil {
		t.Fatal(problems)
	}
	if got := strings.Join(p.SecretFiles(), " "); got != "/p/rec /db /p/c.key /home/u/d.key /p/tok /p/agents/a/tok" {
		t.Error(got)
	}
}

// A pipe or device is no policy: reading one might never end.
func TestReadFileRegular(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero", t.TempDir()} {
		if _, err := ReadFile(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

// A problem stays on its line, whatever the file says in it.
func TestProblemString(t *testing.T) {
	p := Problem{File: "a\x1b.yaml", Line: 2, Col: 3, Kind: KindRule, Problem: "bad_host", Text: "x\ny\u202ez"}
	if got := p.String(); got != `a\u001b.yaml:2:3: error bad_rule: bad_host: x\u000ay\u202ez` {
		t.Error(got)
	}
	err := Problems{p, {Warning: true}}.Err()
	if err == nil || strings.Contains(err.Error(), "\n") || Problems(nil).Err() != nil || len((Problems{p, {Warning: true}}).Warnings()) != 1 {
		t.Error(err)
	}
}
