package policy

import (
	"strings"
	"testing"
)

// What check says of each entry: one line that a person understands.
func TestSentence(t *testing.T) {
	for _, c := range []struct{ entry, want string }{
		{"{id: api, type: https_bearer, target: a.test, source: {env: TOK}}",
			"api: a.test gets Authorization: Bearer, from the variable TOK; attached where a request has none; the sandbox sees nothing of it"},
		{"{id: api, type: https_bearer, targets: [a.test, \"b.test:8443/x\"], source: {file: /k}, env: [A, B], inject: placeholder, own: refuse}",
			"api: a.test, b.test:8443/x get Authorization: Bearer, from the file /k; only in place of the placeholder, one of the client's own is refused; the sandbox sees a placeholder in A, B"},
		{"{id: trap, canary: true, env: K}", "trap: a canary, bound to nothing: the sandbox sees a placeholder in K, and its use raises the alarm"},
		{"{id: gh, type: gh_basic, target: ghe.test, source: {command: gh auth token}}",
			"gh: ghe.test gets the login of git and gh, from what gh auth token prints; attached where a request has none; the sandbox sees a placeholder in GH_ENTERPRISE_TOKEN"},
		{"{preset: pypi}",
			"https_basic:upload.pypi.org: upload.pypi.org gets Authorization: Basic with the user __token__, from the variable TWINE_PASSWORD; attached where a request has none, one of the client's own is replaced; the sandbox sees a placeholder in TWINE_PASSWORD, UV_PUBLISH_TOKEN"},
		{"{id: d, type: databricks_cli, profiles: [dev, prod]}",
			"d: the workspaces of its profiles get Authorization: Bearer, from the profiles dev, prod; attached where a request has none; the sandbox sees a .databrickscfg with placeholders"},
		{"{id: s, type: aws_sigv4, target: \"*.amazonaws.com\", source: {command: creds}}",
			"s: *.amazonaws.com gets signatures of AWS (version 4), made with what creds prints; in place of those made with the placeholder; the sandbox sees a placeholder in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN"},
		{"{id: s, type: aws_sigv4, target: a.test, access_key_id: AKIAIOSFODNN7EXAMPLE, source: {env: K}}",
			"s: a.test gets signatures of AWS (version 4), made with the variable K; in place of those made with the placeholder; the sandbox sees a placeholder in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"},
		{"{id: c, type: https_bearer, target: a.test, source: {command: echo $TOK}}",
			"c: a.test gets Authorization: Bearer, from what echo $TOK prints (no shell runs: $TOK is passed on as it is written); attached where a request has none; the sandbox sees nothing of it"},
		{"{id: c, type: https_bearer, target: a.test, source: {command: [sh, -c, \"a | b\", \"|\"]}}",
			"c: a.test gets Authorization: Bearer, from what sh -c \"a | b\" | prints; attached where a request has none; the sandbox sees nothing of it"},
		{"{id: o, type: oauth2, target: a.test, token_url: \"https://i.test/t\", client_id: c, source: {keyring: {service: s, user: u}}}",
			"o: a.test gets Authorization: Bearer with a token of https://i.test/t, had with the keyring's item of service s, user u; attached where a request has none; the sandbox sees nothing of it"},
		{"{id: a, type: github_app, app_id: \"12\", installation_id: \"34\", target: ghe.test, source: {file: /k.pem}}",
			"a: ghe.test gets a token of the GitHub app 12, installation 34, had with the key in the file /k.pem; attached where a request has none; the sandbox sees a placeholder in GH_ENTERPRISE_TOKEN"},
		{"{id: g, type: git_https, target: git.test, username: ann, source: {env: T}, own: replace}",
			"g: git.test gets Authorization: Basic with the user ann, from the variable T; attached where a request has none, one of the client's own is replaced; the sandbox sees nothing of it"},
		{"{id: h, type: https_header, header: x-api-key, target: a.test, source: {env: T}, inject: placeholder}",
			"h: a.test gets the field x-api-key, from the variable T; only in place of the placeholder; no variable holds that, so it is never used: name one with env"},
		{"{id: s, type: aws_sigv4, target: a.test, source: {command: creds}, issue: true}",
			"s: a.test gets signatures of AWS (version 4), made with what creds prints; in place of those made with the placeholder, for calls that answer with a key too; the sandbox sees a placeholder in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN"},
		{"{id: \"q\\u202e\", type: https_query, param: key, target: a.test, source: {vault: {path: kv/x, field: f}}}",
			`q\u202e: a.test gets the query parameter key, from the field f of the Vault's kv/x; attached where a request has none; the sandbox sees nothing of it`},
	} {
		p, problems := Load("egressd.yaml", []byte("sandbox: {egress_rules: [], credential_proxy: ["+c.entry+"]}\n"), Options{Platform: "linux", NoLint: true})
		if p == nil {
			t.Errorf("%s: %v", c.entry, problems)
			continue
		}
		if got := Sentence(p.Credentials[0]); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.entry, got, c.want)
		}
	}
}

// What would carry a secret inside, or hide a placeholder, is not passed on.
func TestPassthroughOfSecrets(t *testing.T) {
	for _, c := range []struct {
		entry, variable string
		conflict        bool
	}{
		{"{type: https_bearer, target: a.test, source: {env: TOK}}", "TOK", true},
		{"{type: https_bearer, target: a.test, source: {env: TOK}}", "OTHER", false},
		{"{type: https_bearer, target: a.test, source: {vault: {path: kv/x, field: f}}}", "VAULT_TOKEN", true},
		{"{type: oauth2, target: a.test, token_url: \"https://i.test/t\", client_id: c, grant: refresh_token, source: {env: R}, client_secret: {env: S}}", "S", true},
		{"{type: aws_sigv4, target: a.test, access_key_id: A, source: {env: K}, session_token: {env: T}}", "T", true},
		{"{preset: openai, source: {env: MY}}", "MY", true},
		{"{preset: openai, source: {env: MY}}", "OPENAI_API_KEY", true},
		{"{type: gh_basic, source: {env: T}}", "GH_TOKEN", true},
		{"{type: gh_basic, source: {env: T}}", "GH_HOST", false},
		{"{type: gh_basic, target: ghe.test, source: {env: T}}", "GH_HOST", true},
		{"{canary: true, env: K}", "K", true},
	} {
		text := "sandbox: {egress_rules: [], env_passthrough: [" + c.variable + "], credential_proxy: [" + c.entry + "]}\n"
		_, problems := Load("egressd.yaml", []byte(text), Options{Platform: "linux", NoLint: true})
		var kinds []string
		for _, p := range problems {
			kinds = append(kinds, p.Kind)
		}
		if got := strings.Join(kinds, " "); (got == KindConflict) != c.conflict || !c.conflict && got != "" {
			t.Errorf("%s with %s: %v", c.variable, c.entry, problems)
		}
	}
}
