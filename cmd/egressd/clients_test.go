package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// A way is how a client reaches egressd.
type way string

const (
	// captured: the proxy variables are unset, as for a program that ignores them.
	captured way = "transparent"
	// explicit: nothing is captured, only the proxy variables lead out.
	explicit way = "explicit"
	// variables: capture stands ready, but the client heeds the variables.
	variables way = "variables"
)

// door is what the record calls the way.
func (w way) door() string {
	if w == variables {
		return string(explicit)
	}
	return string(w)
}

// A step is one command of a user, and what they must see of it, as a regular
// expression over stdout and stderr together.
type step struct {
	run   string
	fails bool
	says  string
}

// A clientCase is a client with the steps that it takes in a sandbox by each way.
type clientCase struct {
	name  string
	needs []string // programs of the host
	steps []step
	// by are other steps for a way; an empty list leaves the way out. The way
	// of the variables beside capture is taken where it is named, or with root.
	by map[way][]step
	// root: by capture as root too.
	root bool
	// sandbox are further keys of the policy.
	sandbox map[string]any
	// quiet says that no request is to be recorded at all.
	quiet bool
	// within bounds a step, in seconds; 20 if it is nought.
	within int
}

// runClients runs every client by every way, as an ordinary user, and some as root.
func runClients(t *testing.T, h *clientsHost, all []clientCase) {
	t.Helper()
	for _, c := range all {
		if !strings.Contains(h.table, "\n| "+c.name+" |") {
			t.Errorf("docs/clients.md has no row for %q", c.name)
		}
		for _, w := range []way{captured, explicit, variables} {
			steps, other := c.by[w]
			if !other {
				steps = c.steps
			}
			if w == variables && !other && !c.root || len(steps) == 0 {
				continue
			}
			t.Run(c.name+"/"+string(w), func(t *testing.T) { h.runClient(t, c, w, steps, clientUsers[0]) })
			if c.root && w == captured {
				t.Run(c.name+"/"+string(w)+"/root", func(t *testing.T) { h.runClient(t, c, w, steps, clientUsers[1]) })
			}
		}
	}
}

// mark divides the outputs of steps.
const mark = "--- step"

func (h *clientsHost) runClient(t *testing.T, c clientCase, w way, steps []step, u clientUser) {
	for _, program := range c.needs {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not there: .ci/deps test installs it", program)
		}
	}
	var script strings.Builder
	if w == captured {
		script.WriteString("unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy NODE_USE_ENV_PROXY\n")
	}
	within := c.within
	if within == 0 {
		within = 20
	}
	for _, s := range steps {
		fmt.Fprintf(&script, "timeout %d sh -c %s </dev/null 2>&1\necho \"%s $?\"\n", within, quote(s.run), mark)
	}
	out, records := h.runScript(t, c, w, script.String(), u)
	parts := regexp.MustCompile(mark+` (\d+)\n`).Split(out, -1)
	codes := regexp.MustCompile(mark+` (\d+)\n`).FindAllStringSubmatch(out, -1)
	if len(codes) != len(steps) {
		t.Fatalf("%d of %d steps ended:\n%s", len(codes), len(steps), out)
	}
	for i, s := range steps {
		if failed := codes[i][1] != "0"; failed != s.fails || codes[i][1] == "124" {
			t.Errorf("%s\nended with %s and said:\n%s", s.run, codes[i][1], parts[i])
		} else if !regexp.MustCompile(s.says).MatchString(strings.TrimSpace(parts[i])) {
			t.Errorf("%s\nsaid:\n%s\nnot %s", s.run, parts[i], s.says)
		}
	}
	requests := 0
	for _, r := range records {
		if r.Kind != "request" {
			continue
		}
		requests++
		if r.Capture != w.door() {
			t.Errorf("%s %s://%s:%d%s came by the door %s, not %s", r.Method, r.Scheme, r.Host, r.Port, r.Path, r.Capture, w.door())
		}
	}
	if (requests == 0) != c.quiet {
		t.Errorf("%d requests were recorded", requests)
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// clientRecord is what the tests read of a record.
type clientRecord struct {
	Kind, Verdict, Reason, Method, Scheme, Host, Path, Capture, Proto string
	Port                                                              int
	Tunnel                                                            bool
}

// runScript runs a script in a sandbox and returns what it said and what was
// recorded.
func (h *clientsHost) runScript(t *testing.T, c clientCase, w way, script string, u clientUser) (string, []clientRecord) {
	t.Helper()
	name := strings.ReplaceAll(strings.TrimPrefix(t.Name(), "TestClients"), "/", "-")
	policy, record := filepath.Join("/srv/record", name+".yaml"), filepath.Join("/srv/record", name+".jsonl")
	h.write(t, policy, []byte(h.policy(t, c.sandbox)), 0o644)
	if err := os.Chown(policy, u.uid, u.uid); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "-q", "--policy", policy, "--audit", record}
	if w == explicit {
		args = append(args, "--capture", "explicit")
	}
	cmd := exec.CommandContext(t.Context(), h.bin, append(args, "--", "sh", "-c", script)...)
	home := filepath.Join("/home", u.name)
	cmd.Dir = filepath.Join(home, "proj")
	cmd.Env = []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8", "SHELL=/bin/sh", "USER=" + u.name, "LOGNAME=" + u.name}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.credential()}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	guard := time.AfterFunc(100*time.Second, func() { _ = cmd.Process.Kill() })
	begin := time.Now()
	err := cmd.Run()
	guard.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || stderr.Len() > 0 || strings.Count(stdout.String(), mark) == 0 {
		t.Fatalf("egressd run: %v\n%s%s", err, stderr.String(), cut(stdout.String()))
	}
	t.Logf("%.1f s", time.Since(begin).Seconds())
	return stdout.String(), h.records(t, record)
}

func (h *clientsHost) records(t *testing.T, file string) []clientRecord {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []clientRecord
	for line := range bytes.Lines(data) {
		var r clientRecord
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("reading the record: %v", err)
		}
		all = append(all, r)
	}
	if !slices.ContainsFunc(all, func(r clientRecord) bool { return r.Kind == "session_end" }) {
		t.Error("the record has no end")
	}
	return all
}

// clients runs a test of clients in namespaces of its own.
func clients(t *testing.T, f func(t *testing.T, h *clientsHost)) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) { f(t, newClientsHost(t)) })
}
