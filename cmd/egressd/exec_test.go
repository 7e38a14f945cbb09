package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
	"github.com/egressd/egressd/tools"
)

// One command, JSON in and out: the answer is the command's, the status says
// whether there is one.
func TestExec(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			policy := r.write(t, "exec-policy.yaml", "sandbox: {write_paths: [.], egress_rules: []}\n")
			for _, c := range []struct {
				in   string
				want tools.Answer
			}{
				{`{"script":"echo out; echo err >&2; exit 3"}`, tools.Answer{Stdout: "out\n", Stderr: "err\n", ExitCode: 3}},
				{`{"argv":["printf","%s|","a b","$HOME",""]}`, tools.Answer{Stdout: "a b|$HOME||"}},
				{`{"script":"echo early; sleep 60","timeout_ms":1500}`, tools.Answer{Stdout: "early\n", ExitCode: 124}},
				{`{"script":"setsid sleep 60 & sleep 60 & echo done"}`, tools.Answer{Stdout: "done\n"}},
				{`{"argv":["none-such"]}`, tools.Answer{Stderr: "egressd: none-such: not found in the sandbox\n", ExitCode: 127}},
				{`{"argv":["pwd"],"cwd":"/usr"}`, tools.Answer{Stdout: "/usr\n"}},
				{`{"argv":["pwd"],"cwd":"none"}`, tools.Answer{Stderr: "egressd: " + r.path("proj/none") + ": entering the working folder: no such file or directory\n", ExitCode: 127}},
				{`{"script":"kill -TERM $$"}`, tools.Answer{ExitCode: 143}},
				{`{"script":"head -c 300000 /dev/zero | tr '\\0' x"}`, tools.Answer{Stdout: strings.Repeat("x", 100000), Truncated: true}},
				{`{"script":"cat /proc/self/cmdline | tr '\\0' ' '; echo $0 $#"}`, tools.Answer{Stdout: "cat /proc/self/cmdline bash 0\n"}},
				{`{"script":"ls /sys/class/net; ls /proc/net/dev >/dev/null","allow_network":false}`, tools.Answer{Stderr: "ls: cannot access '/sys/class/net': No such file or directory\n"}},
			} {
				c.want.Isolator = "linux_bwrap"
				for _, argument := range []bool{false, true} {
					args := []string{"exec", "--policy", policy}
					if argument {
						args = append(args, c.in)
					}
					cmd := r.command(t, args...)
					if !argument {
						cmd.Stdin = strings.NewReader(c.in)
					}
					begin := time.Now()
					out, errs, code := finish(t, cmd)
					var got tools.Answer
					if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got != c.want || errs != "" || strings.Count(out, "\n") != 1 || time.Since(begin) > 20*time.Second {
						t.Errorf("%s as %d after %v: status %d, %.300q, %s (%v)", c.in, uid, time.Since(begin), code, out, errs, err)
					}
				}
			}
			nothingRuns(t)
			// No answer: 125, and words.
			for in, words := range map[string]string{
				`{"script":"true"`: "not JSON", `{}`: "needs argv or script", ``: "needs argv or script", `{"script":"a","argv":["b"]}`: "not both",
				`{"script":"a","timeout_ms":0.5}`: "timeout_ms is of the wrong type", `[]`: "not a JSON object", `{"script":"a","stdin":"x"}`: `no argument "stdin"`,
			} {
				cmd := r.command(t, "exec", "--policy", policy)
				cmd.Stdin = strings.NewReader(in)
				if out, errs, code := finish(t, cmd); code != exitEgressd || out != "" || !strings.HasPrefix(errs, "egressd: ") || !strings.Contains(errs, words) {
					t.Errorf("%s: %d %q %q lacks %q", in, code, out, errs, words)
				}
			}
			for _, args := range [][]string{{"{}", "{}"}, {"--nope"}, {"--policy", "/none"}} {
				if out, errs, code := r.call(t, append([]string{"exec"}, args...)...); code != exitEgressd || out != "" || !strings.HasPrefix(errs, "egressd: ") {
					t.Errorf("%q: %d %q %s", args, code, out, errs)
				}
			}
			// A found policy needs trust, as with run.
			r.write(t, "proj/egressd.yaml", "sandbox: {egress_rules: []}\n")
			for _, command := range []string{"exec", "mcp"} {
				if out, errs, code := r.call(t, command); code != exitEgressd || out != "" || !strings.Contains(errs, "egressd trust") {
					t.Errorf("%s: %d %q %s", command, code, out, errs)
				}
			}
			if err := os.Remove(r.path("proj/egressd.yaml")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Each backend, and none at all, is in the answer and the record; without one
// nothing runs.
func TestExecIsolators(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		none := r.write(t, "none.yaml", "sandbox: {type: none}\n")
		open := r.write(t, "open.yaml", "sandbox: {write_paths: [.]}\n")
		rules := r.write(t, "rules.yaml", "sandbox: {egress_rules: []}\n")
		quiet := r.write(t, "quiet.yaml", "sandbox: {allow_network: false}\n")
		for _, c := range []struct {
			place         *runPlace
			policy        string
			in            string
			isolator      string
			errs, refused string
		}{
			{r, none, `{"argv":["true"]}`, "none", "NO SANDBOX", ""},
			{r.with(unsafeVariable, "1"), open, `{"argv":["true"]}`, "none", "NO SANDBOX", ""},
			{r.with(unsafeVariable, "1"), rules, `{"argv":["true"]}`, "", "", "unset it"},
			{r.with("PATH", noBwrap(t)), rules, `{"argv":["true"]}`, "", "", "no_sandbox_available"},
			{r, open, `{"argv":["/bin/true"]}`, "linux_bwrap", "network is NOT filtered", ""},
			{r, open, `{"argv":["/bin/true"],"allow_network":true}`, "linux_bwrap", "", ""},
			{r, quiet, `{"argv":["/bin/true"],"allow_network":false}`, "linux_bwrap", "", ""},
			{r, quiet, `{"argv":["/bin/true"],"allow_network":true}`, "", "", "not granted"},
			{r, none, `{"argv":["true"],"allow_network":false}`, "", "", "cannot take the network away"},
		} {
			out, errs, code := c.place.call(t, "exec", "--policy", c.policy, c.in)
			name := fmt.Sprintf("%s of %s", c.in, c.policy)
			if c.refused != "" {
				if code != exitEgressd || out != "" || !strings.Contains(errs, c.refused) {
					t.Errorf("%s: %d %q %s", name, code, out, errs)
				}
				continue
			}
			if code != 0 || !strings.Contains(out, `"exit_code":0,"truncated":false,"isolator":"`+c.isolator+`"`) || !strings.Contains(errs, c.errs) {
				t.Errorf("%s: %d %q %s", name, code, out, errs)
			}
			records := r.record(t)
			if len(records) < 3 || !strings.HasPrefix(fmt.Sprint(records[len(records)-2]["isolator"]), c.isolator) {
				t.Errorf("%s: %v", name, records)
			}
		}
	})
}
