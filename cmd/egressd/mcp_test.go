package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/egressd/egressd/internal/proxytest"
)

// agent is an MCP client of an egressd that runs as a user of the cases.
type agent struct {
	*mcp.ClientSession
	place  *runPlace
	errs   *lockedText
	server *exec.Cmd
}

// lockedText is what a process says, readable while it runs.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newAgent starts egressd mcp with a policy.
func newAgent(t *testing.T, r *runPlace, policy string) *agent {
	t.Helper()
	return newAgentAs(t, r, policy, false, func() {})
}

// newAgentAs does it, as root in the user's name if so, when the home is the
// user's and ready has changed that.
func newAgentAs(t *testing.T, r *runPlace, policy string, root bool, ready func()) *agent {
	t.Helper()
	a := &agent{place: r, errs: &lockedText{}}
	a.server = r.command(t, "mcp", "--policy", r.write(t, "mcp-policy.yaml", policy))
	r.own(t)
	ready()
	if root {
		a.server.SysProcAttr = nil
	}
	a.server.Stderr = a.errs
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	var err error
	if a.ClientSession, err = client.Connect(t.Context(), &mcp.CommandTransport{Command: a.server, TerminateDuration: time.Minute}, nil); err != nil {
		t.Fatalf("connecting: %v\n%s", err, a.errs)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// say calls a tool and answers its text.
func (a *agent) say(ctx context.Context, name string, args any) (text string, refused bool, err error) {
	r, err := a.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "", false, err
	}
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text, r.IsError, nil
}

// sh runs a script and answers what came of it.
func (a *agent) sh(t *testing.T, script string, more ...any) (stdout string, code int) {
	t.Helper()
	args := map[string]any{"script": script}
	for i := 0; i+1 < len(more); i += 2 {
		args[fmt.Sprint(more[i])] = more[i+1]
	}
	return a.exec(t, args)
}

// run runs a program.
func (a *agent) run(t *testing.T, argv []string) (stdout string, code int) {
	t.Helper()
	return a.exec(t, map[string]any{"argv": argv})
}

func (a *agent) exec(t *testing.T, args map[string]any) (stdout string, code int) {
	t.Helper()
	text, refused, err := a.say(t.Context(), "shell", args)
	if err != nil || refused {
		t.Fatalf("%v: %s %v\n%s", args, text, err, a.errs)
	}
	var r struct {
		Stdout   string `json:"stdout"`
		Stderr   string `json:"stderr"`
		Code     int    `json:"exit_code"`
		Isolator string `json:"isolator"`
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Isolator != "linux_bwrap" {
		t.Fatalf("%v: %s (%v)", args, text, err)
	}
	if r.Stderr != "" {
		t.Logf("%v: stderr %s", args, r.Stderr)
	}
	return r.Stdout, r.Code
}

// want runs a script and wants this.
func (a *agent) want(t *testing.T, script, stdout string, code int, more ...any) {
	t.Helper()
	if out, c := a.sh(t, script, more...); out != stdout || c != code {
		t.Errorf("%s: %d %q, want %d %q", script, c, out, code, stdout)
	}
}

// atEnd closes the client's end and wants egressd to go by itself, with nothing
// left, and before any grace of the proxy is over.
func (a *agent) atEnd(t *testing.T) {
	t.Helper()
	begin := time.Now()
	if err := a.Close(); err != nil || time.Since(begin) > 14*time.Second {
		t.Errorf("the end after %v: %v\n%s", time.Since(begin), err, a.errs)
	}
	nothingRuns(t)
}

// nothingRuns wants no process of a sandbox in this test's pid namespace.
func nothingRuns(t *testing.T) {
	t.Helper()
	for tries := 0; ; tries++ {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, path := range lines {
			if text, err := os.ReadFile(path); err == nil && (strings.Contains(string(text), "egressd\x00mcp") || strings.Contains(string(text), "/run/egressd/") || strings.Contains(string(text), "bwrap")) {
				left = append(left, strings.ReplaceAll(string(text), "\x00", " "))
			}
		}
		if len(left) == 0 {
			return
		}
		if tries == 100 {
			t.Errorf("these are left: %q", left)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const fullPolicy = `
sandbox:
  write_paths: [., ~/open/w]
  write_files: [~/open/inplace]
  read_paths: [~/open]
  mask_paths: [masked, ~/open/w/key]
  egress_rules: ["GET ok.test/**"]
tools: {preset: full}
`

// A real client over stdio: the tools are those granted, each call is judged,
// done where it may be, and recorded; a sandbox stays up between calls.
func TestMCP(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			t.Run(fmt.Sprint("uid ", uid), func(t *testing.T) {
				r := newRunPlace(t, uid)
				r.write(t, "proj/hello.txt", "hello\n")
				a := newAgent(t, r, fullPolicy)
				list, err := a.ListTools(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, tool := range list.Tools {
					schema, err := json.Marshal(tool.InputSchema)
					if err != nil || !strings.Contains(string(schema), `"additionalProperties":false`) || tool.Description == "" || tool.Annotations == nil {
						t.Errorf("%s: %s %q %+v", tool.Name, schema, tool.Description, tool.Annotations)
					}
					if readOnly := tool.Name == "file_read" || tool.Name == "grep" || tool.Name == "glob"; tool.Annotations.ReadOnlyHint != readOnly {
						t.Errorf("%s: read-only %v", tool.Name, tool.Annotations.ReadOnlyHint)
					}
					names = append(names, tool.Name)
				}
				if got := strings.Join(names, " "); got != "file_edit file_read file_write glob grep shell" {
					t.Errorf("tools are %s", got)
				}
				if text, refused, err := a.say(t.Context(), "file_read", map[string]any{"path": "hello.txt"}); text != "hello\n" || refused || err != nil {
					t.Errorf("%q %v %v", text, refused, err)
				}
				a.want(t, "cat hello.txt; echo x > new; echo $HOME; echo $$ > /tmp/t; exit 7", "hello\n"+r.dir+"\n", 7)
				a.want(t, "test -s /tmp/t && ls /tmp", "t\n", 0)
				a.want(t, "test -e /tmp/t; echo $?; echo here > /tmp/u; curl -s -m 2 -o /dev/null http://ok.test/; test $? = 0 && echo network", "1\n", 1, "allow_network", false)
				a.want(t, "ls /tmp", "u\n", 0, "allow_network", false)
				a.want(t, `for u in http://ok.test/ http://no.test/; do curl -s -o /dev/null -w '%{http_code}\n' $u; done`, "502\n403\n", 0)
				a.want(t, "cat", "", 0)
				a.want(t, "pwd", "/usr\n", 0, "cwd", "/usr")
				a.want(t, "kill -9 $$", "", 137)
				a.want(t, "nope-nope", "", 127)
				a.want(t, "echo before; sleep 60", "before\n", 124, "timeout_ms", 300)
				for _, name := range []string{"rm_rf", "", "Shell"} {
					text, refused, err := a.say(t.Context(), name, map[string]any{})
					if !refused || err != nil || !strings.HasPrefix(text, "not granted") {
						t.Errorf("%q: %q %v %v", name, text, refused, err)
					}
				}
				if text, refused, err := a.say(t.Context(), "shell", map[string]any{"script": "true", "env": map[string]string{}}); !refused || err != nil || !strings.Contains(text, `there is no argument "env"`) {
					t.Errorf("%q %v %v", text, refused, err)
				}
				a.atEnd(t)
				records := r.record(t)
				if last := records[len(records)-1]; last["kind"] != "session_end" {
					t.Errorf("the last record is %v", last)
				}
				kinds := map[string]int{}
				for _, rec := range records {
					kind := fmt.Sprint(rec["kind"], " ", rec["verdict"])
					if rec["kind"] == "exec" {
						kind += fmt.Sprint(" ", rec["isolator"])
					}
					kinds[kind]++
				}
				for kind, n := range map[string]int{"exec allow linux_bwrap": 8, "exec allow linux_bwrap allow_network=false": 2, "exec deny linux_bwrap": 4,
					"file allow": 1, "request deny": 1, "request error": 1, "self_test allow": 2, "session_start <nil>": 1} {
					if kinds[kind] != n {
						t.Errorf("%d records of %s, want %d", kinds[kind], kind, n)
					}
				}
				if t.Failed() {
					t.Log(kinds, a.errs)
				}
			})
		}
	})
}

// A copy to work on, a scratch folder to start in and a home that is kept are
// the same for commands and file tools, where both have them.
func TestMCPPlaces(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			r.write(t, "proj/f", "old\n")
			r.write(t, "home2-file", "")
			if err := os.MkdirAll(r.path("kept"), 0o700); err != nil {
				t.Fatal(err)
			}
			read := func(a *agent, path, want string) {
				t.Helper()
				if text, _, err := a.say(t.Context(), "file_read", map[string]any{"path": path}); err != nil || !strings.HasPrefix(text, want) {
					t.Errorf("%s: %q %v, want %q", path, text, err, want)
				}
			}
			a := newAgent(t, r, "os_env: {fork: true, sandbox: {write_paths: [.], egress_rules: []}}\ntools: {preset: full}\n")
			a.want(t, "echo new > f; pwd", r.path("proj")+"\n", 0)
			read(a, "f", "new\n")
			read(a, r.path("proj/f"), "new\n")
			if text, refused, err := a.say(t.Context(), "file_write", map[string]any{"path": "g", "content": "tool\n"}); refused || err != nil {
				t.Error(text, err)
			}
			a.want(t, "cat f g", "new\ntool\n", 0)
			a.atEnd(t)
			if text, err := os.ReadFile(r.path("proj/f")); string(text) != "old\n" {
				t.Errorf("the folder itself was changed: %q %v", text, err)
			}
			a = newAgent(t, r, "os_env: {start_in_scratch: true, sandbox: {egress_rules: []}}\ntools: {preset: full}\n")
			a.want(t, "echo x > here; ls; cd "+r.path("proj")+"; cat f", "here\nold\n", 0)
			read(a, "f", "old\n")
			a.atEnd(t)
			a = newAgent(t, r, "sandbox: {home: ~/kept, egress_rules: []}\ntools: {preset: full}\n")
			a.want(t, "echo mine > ~/note", "", 0)
			read(a, r.path("note"), "mine\n")
			a.atEnd(t)
			if _, err := os.Stat(r.path("kept/note")); err != nil {
				t.Error(err)
			}
		}
	})
}

// The operator's program is asked about each call that is granted, and nobody is
// who grants nothing.
func TestMCPOnCall(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		r.write(t, "judge", "#!/bin/sh\nread call; echo \"$call\" >> "+r.path("asked")+"\ncase $call in *secret*) echo 'not that one'; exit 1;; esac\n")
		if err := os.Chmod(r.path("judge"), 0o755); err != nil {
			t.Fatal(err)
		}
		a := newAgent(t, r, "sandbox: {write_paths: [.], egress_rules: []}\ntools: {preset: full, on_call: ["+r.path("judge")+"]}\n")
		a.want(t, "echo fine", "fine\n", 0)
		for name, args := range map[string]map[string]any{"shell": {"script": "echo secret"}, "file_read": {"path": "secret"}} {
			if text, refused, err := a.say(t.Context(), name, args); text != "not that one" || !refused || err != nil {
				t.Errorf("%q %v %v", text, refused, err)
			}
		}
		a.atEnd(t)
		asked, err := os.ReadFile(r.path("asked"))
		if err != nil || !strings.HasPrefix(string(asked), `{"tool":"shell","arguments":{"script":"echo fine"},"cwd":"`+r.path("proj")+`"}`) || strings.Count(string(asked), "\n") != 3 {
			t.Errorf("asked: %s %v", asked, err)
		}
		a = newAgent(t, r, "sandbox: {egress_rules: []}\n")
		if list, err := a.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 0 {
			t.Errorf("%v %v", list, err)
		}
		if text, refused, err := a.say(t.Context(), "shell", map[string]any{"script": "true"}); !refused || err != nil || !strings.HasPrefix(text, "not granted") {
			t.Errorf("%q %v %v", text, refused, err)
		}
		a.atEnd(t)
		if !strings.Contains(a.errs.String(), "no tool is granted") {
			t.Error(a.errs)
		}
		// What the sandbox could have written does not judge.
		policy := r.write(t, "mcp-policy.yaml", "sandbox: {write_paths: [.], egress_rules: []}\ntools: {preset: full, on_call: [./judge]}\n")
		r.write(t, "proj/judge", "#!/bin/sh\n")
		if err := os.Chmod(r.path("proj/judge"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"mcp", "exec"} {
			if out, errs, code := r.call(t, command, "--policy", policy, "--cwd", r.path("proj")); code != exitEgressd || out != "" || !strings.Contains(errs, "egressd: ") {
				t.Errorf("%s: %d %q %s", command, code, out, errs)
			}
		}
	})
}
