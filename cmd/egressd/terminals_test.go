package main

import (
	"os"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

const terminalsPolicy = `
os_env:
  sandbox: &base
    egress_rules: ["GET api.test/one"]
    credential_proxy:
      - {type: https_bearer, target: api.test, env: API_TOKEN, source: {env: REAL}}
tools: {agents: [helper, gone]}
terminals:
  plain: {os_env: inherit}
  build:
    command: sh
    args: ["-c", "echo $0 $MODE $PATH $GIT_AUTHOR_NAME; pwd", built]
    env: {MODE: fast, PATH: "/usr/bin:/bin:/nosuch", GIT_AUTHOR_NAME: Build}
    os_env: {cwd: other, sandbox: inherit}
  open:
    command: bash
    os_env:
      sandbox:
        <<: *base
        egress_rules: ["GET api.test/two"]
`

// A terminal is a command with an environment of its own; what runs in it, a
// shell too, has the same rules and credentials as any command.
func TestRunTerminals(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid).with("REAL", "secret-4821-9937")
			for _, dir := range []string{"other", "agents/helper", "proj/sub"} {
				if err := os.MkdirAll(r.path(dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			tail := "upstream: {resolve: {\"api.test:443\": \"" + r.origin.https + "\"}, ca_files: [" + r.origin.caFile + "]}\n"
			policy := r.write(t, "policy.yaml", terminalsPolicy+tail)
			r.write(t, ".gitconfig", "[user]\n\tname = Ann Example\n\temail = a@example.test\n")
			r.write(t, "agents/helper/config.yaml", "model: some\nos_env: {cwd: ../../proj/sub, sandbox: {egress_rules: [\"GET api.test/three\"]}}\nterminals: {t: {command: pwd}}\n")
			run := func(args ...string) []string { return append([]string{"run", "--policy", policy}, args...) }
			for _, x := range []struct {
				args []string
				want string
			}{
				{run("--terminal", "build"), "built fast /usr/bin:/bin Build\n" + r.path("other") + "\n"},
				{run("--terminal", "build", "--", "sh", "-c", "echo $MODE"), "fast\n"},
				{run("--terminal", "plain", "--", "sh", "-c", "echo $MODE$GIT_AUTHOR_NAME; pwd"), "Ann Example\n" + r.path("proj") + "\n"},
				{run(append([]string{"--terminal", "plain"}, curl("https://api.test/one", "https://api.test/two")...)...), "200\n403\n"},
				{run(append([]string{"--terminal", "open"}, curl("https://api.test/one", "https://api.test/two")...)...), "403\n200\n"},
				{run(append([]string{"--agent", "helper"}, curl("https://api.test/one", "https://api.test/three")...)...), "403\n200\n"},
				{run("--agent", "helper", "--terminal", "t"), r.path("proj/sub") + "\n"},
				{[]string{"check", "--terminal", "open", policy}, ""},
				{[]string{"explain", "--policy", policy, "--terminal", "open", "GET", "https://api.test/two"}, ""},
				{[]string{"explain", "--policy", policy, "--agent", "helper", "GET", "https://api.test/three"}, ""},
			} {
				out, errs, code := r.call(t, x.args...)
				if code != 0 || x.want != "" && out != x.want {
					t.Errorf("uid %d: %v: %d %q\n%s", uid, x.args, code, out, errs)
				}
			}
			// A shell that reads its commands.
			cmd := r.command(t, run("--terminal", "open")...)
			cmd.Stdin = strings.NewReader("echo \"${API_TOKEN%%_*} $0\"\ncurl -s -o /dev/null -w '%{http_code}\\n' https://api.test/two\n")
			if out, errs, code := finish(t, cmd); out != "oa bash\n200\n" || code != 0 {
				t.Errorf("uid %d: bash: %d %q\n%s", uid, code, out, errs)
			}
			if got := r.origin.lastLogin(); got != "Bearer secret-4821-9937" {
				t.Errorf("uid %d: the origin saw %q", uid, got)
			}
			for _, x := range []struct{ flag, name, words string }{
				{"--terminal", "none", "terminals names build, open, plain"}, {"--agent", "../../x", "tools.agents names helper"},
				{"--agent", "gone", "agents/gone/config.yaml beside "},
			} {
				r.fails(t, []string{"--policy", policy, x.flag, x.name, "--", "true"}, x.words)
			}
			// The file of an agent that is not there could be made inside.
			in := r.write(t, "proj/policy.yaml", "sandbox: {egress_rules: [], write_paths: [.]}\ntools: {agents: [gone]}\n")
			r.fails(t, []string{"--policy", in, "--", "true"}, "agents/gone/config.yaml belongs to the policy and is not there")
			// One that was found is trusted with its agents.
			r.write(t, "proj/egressd.yaml", "sandbox: {egress_rules: []}\ntools: {agents: [a]}\n")
			if err := os.MkdirAll(r.path("proj/agents/a"), 0o755); err != nil {
				t.Fatal(err)
			}
			r.write(t, "proj/agents/a/config.yaml", "os_env: inherit\n")
			r.fails(t, []string{"--agent", "a", "--", "true"}, "egressd.yaml is new")
			if out, errs, code := r.call(t, "trust", "--yes"); code != 0 {
				t.Errorf("trust: %d %s%s", code, out, errs)
			}
			if out, errs, code := r.call(t, "run", "--agent", "a", "--", "echo", "ran"); out != "ran\n" || code != 0 {
				t.Errorf("uid %d: a trusted agent: %d %q %s", uid, code, out, errs)
			}
			r.write(t, "proj/agents/a/config.yaml", "os_env: inherit\nmodel: other\n")
			r.fails(t, []string{"--agent", "a", "--", "true"}, "egressd.yaml is changed")
		}
	})
}
