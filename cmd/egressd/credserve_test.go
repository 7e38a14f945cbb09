package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// credentialPolicy writes a policy with an entry for api.test whose source is a
// file.
func (p *place) credentialPolicy(t *testing.T, sandbox string) string {
	t.Helper()
	return p.write(t, "policy.yaml", fmt.Sprintf(`
sandbox:
  egress_rules: ["* api.test/**"]
  credential_proxy:
    - {id: api, type: https_bearer, target: api.test, source: {file: ~/tok}, env: API_TOKEN}
    - {id: trap, canary: true, env: BACKUP_KEY}
    - {id: git, type: git_https, target: git.test, source: {file: %q}}
  %s
upstream:
  resolve: {"api.test:443": %q, "api.test:80": %q}
  ca_files: [%q]
`, p.path("home/tok"), sandbox, p.origin.https, p.origin.http, p.origin.caFile))
}

// serve attaches, swaps and guards; --env-out has the placeholders; a reload
// reads the sources again and keeps the placeholders.
func TestServeCredentials(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "home/tok", "tok-live-first-7Qm4x9Zr\n")
	s := p.serve(t, "--policy", p.credentialPolicy(t, ""), "--env-out", p.path("env"))
	s.says(t, "every program on this host can use the credentials")
	data, err := os.ReadFile(p.path("env"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	form := regexp.MustCompile(`^oa_cred_[A-Za-z0-9_-]{43}$`)
	if !form.MatchString(env["API_TOKEN"]) || !form.MatchString(env["BACKUP_KEY"]) || env["API_TOKEN"] == env["BACKUP_KEY"] {
		t.Errorf("the placeholders in --env-out are %q and %q", env["API_TOKEN"], env["BACKUP_KEY"])
	}
	if env["GIT_CONFIG_KEY_0"] != "url.https://git.test/.insteadOf" || env["GIT_CONFIG_VALUE_0"] != "git@git.test:" {
		t.Errorf("--env-out leads no ssh spelling to https: %s", data)
	}
	c := s.client(t)
	ask := func(url, login string) (status int, got string) {
		t.Helper()
		r, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if login != "" {
			r.Header.Set("Authorization", login)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode, p.origin.lastLogin()
	}
	for _, login := range []string{"", "Bearer " + env["API_TOKEN"]} {
		if code, got := ask("https://api.test/a", login); code != 200 || got != "Bearer tok-live-first-7Qm4x9Zr" {
			t.Errorf("with %q: %d, the origin got %q", login, code, got)
		}
	}
	for _, leak := range []string{"https://api.test/" + env["API_TOKEN"], "https://api.test/?k=" + env["BACKUP_KEY"], "http://api.test/"} {
		if code, _ := ask(leak, ""); code != 403 {
			t.Errorf("%s: %d", leak, code)
		}
	}
	p.write(t, "home/tok", "tok-live-second-Zk31vT0p\n")
	if out, errs, code := p.call(t, "reload"); code != 0 {
		t.Fatalf("reload: %s %s", out, errs)
	}
	if code, got := ask("https://api.test/b", "Bearer "+env["API_TOKEN"]); code != 200 || got != "Bearer tok-live-second-Zk31vT0p" {
		t.Errorf("after the reload: %d, the origin got %q", code, got)
	}
	if err := os.Remove(p.path("home/tok")); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := p.call(t, "reload"); code != 1 || !strings.Contains(errs, "credential api") {
		t.Errorf("a reload without the secret: %d %s", code, errs)
	}
	if code, _ := ask("https://api.test/c", ""); code != 200 {
		t.Errorf("the policy in force does not stay: %d", code)
	}
	s.stop(t)
	text, err := os.ReadFile(s.path("home/.local/state/egressd/audit", s.session+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := s.records(t)
	if countRecords(all, map[string]any{"kind": "leak", "verdict": "deny"}) != 2 || countRecords(all, map[string]any{"kind": "credential", "credential": "api"}) < 4 {
		t.Errorf("the record: %s", text)
	}
	for _, secret := range []string{"tok-live", env["API_TOKEN"], env["BACKUP_KEY"]} {
		if strings.Contains(string(text)+s.stderr.String()+string(data), secret) && secret == "tok-live" || strings.Contains(string(text)+s.stderr.String(), secret) {
			t.Errorf("%s is in the record, on stderr or in --env-out", secret)
		}
	}
	if !strings.Contains(string(text), "[credential]") {
		t.Error("a placeholder in a path is not masked in the record")
	}
}

// What keeps serve from starting, and what explain and check say of entries.
func TestCredentialsAreToldOf(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	policy := p.credentialPolicy(t, "")
	if _, errs, code := p.call(t, "serve", "--policy", policy); code != 1 || !strings.Contains(errs, "credential api") || !strings.Contains(errs, "tok") {
		t.Errorf("serve without the secret: %d %s", code, errs)
	}
	for request, want := range map[string]any{"https://api.test/a": "api", "https://API.test./a": "api", "http://api.test/a": nil, "https://api.test:8443/a": nil} {
		out, _, _ := p.call(t, "explain", "--json", "--policy", policy, "GET", request)
		var answer map[string]any
		if err := json.Unmarshal([]byte(out), &answer); err != nil || answer["credential"] != want {
			t.Errorf("explain %s: %s", request, out)
		}
	}
	if out, _, code := p.call(t, "explain", "--policy", policy, "GET", "http://api.test/a"); code != 0 || !strings.Contains(out, "  but refused: credential_plaintext: api goes by https only\n") {
		t.Errorf("explain of plain http: %d, %s", code, out)
	}
	if out, _, code := p.call(t, "explain", "--policy", policy, "GET", "https://api.test/a"); code != 0 || !strings.Contains(out, "  credential: api\n") {
		t.Errorf("explain: %d %s", code, out)
	}
	if out, _, _ := p.call(t, "explain", "--json", "--policy", policy, "OPTIONS", "https://api.test/a"); !strings.Contains(out, `"credential":null`) {
		t.Errorf("explain OPTIONS: %s", out)
	}
	out, _, code := p.call(t, "check", policy)
	for _, line := range []string{"credential api: api.test gets Authorization: Bearer, from the file ", "credential trap: a canary",
		"warning credential_unreached: no rule reaches git.test:443", "ok: 1 rule, 3 credentials"} {
		if code != 0 || !strings.Contains(out, line) {
			t.Errorf("check, %d, lacks %q: %s", code, line, out)
		}
	}
	policy = p.credentialPolicy(t, "on_leak: kill")
	if _, errs, code := p.call(t, "serve", "--policy", policy); code != 1 || !strings.Contains(errs, "serve has none") {
		t.Errorf("serve with on_leak: kill: %d %s", code, errs)
	}
	p.write(t, "home/tok", "tok-live-first-7Qm4x9Zr\n")
	s := p.serve(t, "--policy", p.credentialPolicy(t, ""), "--auth-token-file", p.write(t, "token", "right"))
	if strings.Contains(s.stderr.String(), "every program on this host") {
		t.Error("serve warns although it asks for a token")
	}
	s.stop(t)
}

// A process that is made to fall over tells its state to the operator, and no
// secret with it: not in the trace and not in a core.
func TestCrashShowsNoSecret(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "home/tok", "tok-live-first-7Qm4x9Zr\n")
	p.env = append(p.env, "GOTRACEBACK=crash", "SECOND=tok-live-in-environ-11aa")
	policy := p.credentialPolicy(t, "")
	s := p.serve(t, "--policy", policy)
	if code, _ := s.get(t, "https://api.test/a"); code != 200 || p.origin.lastLogin() != "Bearer tok-live-first-7Qm4x9Zr" {
		t.Fatalf("the secret is not attached: %d %q", code, p.origin.lastLogin())
	}
	s.signal(t, syscall.SIGQUIT)
	s.wait(t, 10*time.Second)
	if trace := s.stderr.String(); !strings.Contains(trace, "goroutine ") || strings.Contains(trace, "tok-live") {
		t.Errorf("the trace is missing, or holds the secret: %s", cut(trace))
	}
	cores, err := filepath.Glob(p.path("core*"))
	if err != nil || len(cores) > 0 {
		t.Errorf("a core is left: %q %v", cores, err)
	}
	if st, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.CoreDump() {
		t.Error("the kernel wrote a core")
	}
}
