package policy

import (
	"strings"
	"testing"
)

// What is often written wrong says what to write.
func TestWordsForMistakes(t *testing.T) {
	for _, c := range []struct{ entries, want string }{
		{"[{type: bearer, target: a.test, source: {env: T}}]", "is no type of a credential: aws_sigv4, "},
		{"[{type: https_bearer, target: a.test, source: TOKEN}]", "text where a mapping such as {env: NAME} belongs"},
		{"[{type: https_bearer, target: a.test, source: {value: x}}]", "a policy holds no secret, but says where it lies: env, file, command, keyring or vault"},
		{"[{type: https_bearer, target: \"https://a.test\", source: {env: T}}]", "write host[:port][/path]"},
		{"[{type: https_bearer, target: \"*.a.test\", source: {env: T}}]", "list them in targets"},
		{"[github]", "text where a mapping such as {preset: github} belongs"},
		{"[{preset: github}]", ": include: [github] brings rules"},
		{"[]\n  credentials: []", "is credential_proxy meant?"},
	} {
		_, problems := Load("egressd.yaml", []byte("sandbox:\n  egress_rules: []\n  credential_proxy: "+c.entries+"\n"), Options{Platform: "linux"})
		if len(problems) != 1 || !strings.Contains(problems[0].Text, c.want) {
			t.Errorf("%s: %v, want %q", c.entries, problems, c.want)
		}
	}
}

// What trust shows of profiles, which name hosts of their own.
func TestGrantOfProfiles(t *testing.T) {
	p, problems := Load("egressd.yaml", []byte("sandbox: {egress_rules: [], credential_proxy: [{id: d, type: databricks_cli, profiles: [dev]}, {id: c, canary: true, env: K}]}\n"), Options{Platform: "linux", NoLint: true})
	if p == nil {
		t.Fatal(problems)
	}
	var got []string
	for _, g := range p.Grants() {
		if g.What == "credential" {
			got = append(got, g.Text)
		}
	}
	if strings.Join(got, "|") != "d: the profiles dev for the workspaces they name|c: a canary" {
		t.Errorf("%q", got)
	}
}
