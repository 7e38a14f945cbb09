package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/cases"
	"github.com/egressd/egressd/internal/proxytest"
)

// insideCase is a line of credentials.jsonl as far as it is about the start and
// what the sandbox sees: those lines run through the real binary. What is sent
// and answered is run in package proxy.
type insideCase struct {
	ID, Why string
	Rules   []any
	Entries []map[string]any
	Sandbox map[string]any
	Sources struct {
		Env   map[string]string
		Files map[string]string
		Dirs  []string
		Exec  []string
	}
	StartError *struct {
		Entry      string
		Has, Lacks []string
		WithinS    float64 `json:"within_s"`
	} `json:"start_error"`
	Inside *insideExpect

	Q                         any
	Send, Steps, Expect       json.RawMessage
	Upstream, Origin, Resolve json.RawMessage
	TokenEndpoint             json.RawMessage `json:"token_endpoint"`
	TokenRequests             json.RawMessage `json:"token_requests"`
}

type insideExpect struct {
	Env           map[string]string
	EnvMatch      map[string]string                        `json:"env_match"`
	EnvDiffer     []string                                 `json:"env_differ"`
	EnvLacks      []string                                 `json:"env_lacks"`
	EnvLacksValue []string                                 `json:"env_lacks_value"`
	EnvFile       map[string]struct{ Has, Lacks []string } `json:"env_file"`
	Run           string
	Stdout        *string
}

// What the sandbox sees of an entry, and starts that must fail.
func TestCredentialCases(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, dir string) {
		all := cases.Load[insideCase](t, "credentials.jsonl", "")
		h := newSandboxHost(t)
		for _, c := range all {
			if c.Case.Inside != nil || c.Case.StartError != nil {
				t.Run(c.ID, func(t *testing.T) { h.runInside(t, c.Case) })
			}
		}
	})
}

func (h *sandboxHost) runInside(t *testing.T, c insideCase) {
	home := filepath.Join("/home", c.ID)
	h.layOut(t, home, c)
	run, vars := "env -0", []string(nil)
	if c.Inside != nil {
		vars = slices.Sorted(maps.Keys(c.Inside.EnvFile))
		for _, v := range vars {
			run += "; cat \"$" + v + "\"; printf '\\0'"
		}
		if c.Inside.Run != "" {
			run = c.Inside.Run
		}
	}
	begin := time.Now()
	out, errs, code := h.runAnn(t, home, c, run)
	if c.StartError != nil {
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: it took %v", c.Why, took)
		}
		if code != exitEgressd || out != "" {
			t.Errorf("%s: exit status %d, stdout %q", c.Why, code, out)
		}
		for _, s := range append(c.StartError.Has, c.StartError.Entry) {
			if !strings.Contains(errs, s) {
				t.Errorf("%s: %q lacks %q", c.Why, errs, s)
			}
		}
		for _, s := range c.StartError.Lacks {
			if strings.Contains(errs, s) {
				t.Errorf("%s: %q holds %q", c.Why, errs, s)
			}
		}
		return
	}
	if code != 0 {
		t.Fatalf("%s: exit status %d: %s", c.Why, code, errs)
	}
	if c.Inside.Run != "" {
		if out != *c.Inside.Stdout {
			t.Errorf("%s: stdout is %q, not %q", c.Why, out, *c.Inside.Stdout)
		}
		return
	}
	parts := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	files := parts[len(parts)-len(vars):]
	env := map[string]string{}
	for _, kv := range parts[:len(parts)-len(vars)] {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	checkEnv(t, c, env)
	for i, v := range vars {
		for _, s := range c.Inside.EnvFile[v].Has {
			if !strings.Contains(files[i], s) {
				t.Errorf("%s: the file of %s lacks %q: %q", c.Why, v, s, files[i])
			}
		}
		for _, s := range c.Inside.EnvFile[v].Lacks {
			if strings.Contains(files[i], s) {
				t.Errorf("%s: the file of %s holds %q", c.Why, v, s)
			}
		}
	}
}

var placeholderMark = regexp.MustCompile(`^\$\{ph:([^}]*)\}$`)

// checkEnv looks at the variables. What a placeholder is only the broker knows:
// here it is one text for each entry, another one than every other entry's, of
// the form of placeholders.
func checkEnv(t *testing.T, c insideCase, env map[string]string) {
	in, ids := c.Inside, map[string]string{}
	for name, want := range in.Env {
		got, there := env[name]
		m := placeholderMark.FindStringSubmatch(want)
		switch {
		case !there:
			t.Errorf("%s: no variable %s", c.Why, name)
		case m == nil && got != want:
			t.Errorf("%s: %s is %q, not %q", c.Why, name, got, want)
		case m != nil:
			if before, ok := ids[m[1]]; ok && before != got {
				t.Errorf("%s: two placeholders of %s", c.Why, m[1])
			}
			ids[m[1]] = got
			if !strings.Contains(m[1], ":") && !regexp.MustCompile(`^oa_cred_[A-Za-z0-9_-]{43}$`).MatchString(got) {
				t.Errorf("%s: %s is no placeholder: %q", c.Why, name, got)
			}
		}
	}
	for name, want := range in.EnvMatch {
		if !regexp.MustCompile(want).MatchString(env[name]) {
			t.Errorf("%s: %s is %q", c.Why, name, env[name])
		}
	}
	for i, name := range in.EnvDiffer {
		for _, other := range in.EnvDiffer[:i] {
			if env[name] == env[other] || env[name] == "" {
				t.Errorf("%s: %s and %s are the same, or empty", c.Why, name, other)
			}
		}
	}
	for _, name := range in.EnvLacks {
		if _, there := env[name]; there {
			t.Errorf("%s: %s is there", c.Why, name)
		}
	}
	for name, value := range env {
		for _, s := range in.EnvLacksValue {
			if strings.Contains(value, s) {
				t.Errorf("%s: %s holds %q", c.Why, name, s)
			}
		}
	}
}

// layOut makes the home of a case and its policy.
func (h *sandboxHost) layOut(t *testing.T, home string, c insideCase) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	host := func(path string) string { return strings.Replace(path, "~", home, 1) }
	must(os.MkdirAll(filepath.Join(home, "proj"), 0o755))
	for _, d := range c.Sources.Dirs {
		must(os.MkdirAll(host(d), 0o755))
	}
	for path, text := range c.Sources.Files {
		must(os.MkdirAll(filepath.Dir(host(path)), 0o755))
		mode := os.FileMode(0o600)
		if slices.Contains(c.Sources.Exec, path) {
			mode = 0o755
		}
		must(os.WriteFile(host(path), []byte(text), mode))
	}
	sandbox := map[string]any{"egress_rules": c.Rules, "credential_proxy": c.Entries}
	maps.Copy(sandbox, c.Sandbox)
	data, err := json.Marshal(map[string]any{"sandbox": sandbox})
	must(err)
	policy := filepath.Join("/srv", c.ID, "policy.yaml")
	must(os.MkdirAll(filepath.Dir(policy), 0o755))
	must(os.WriteFile(policy, []byte(strings.ReplaceAll(string(data), "${home}", home)), 0o644))
	must(filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, annUID, annUID)
	}))
}

// runAnn runs a shell line in a sandbox of the case's policy, as an ordinary
// user.
func (h *sandboxHost) runAnn(t *testing.T, home string, c insideCase, run string, flags ...string) (out, errs string, code int) {
	t.Helper()
	return finish(t, h.annCommand(t, home, c, run, flags...))
}

// annCommand is that run, not yet started.
func (h *sandboxHost) annCommand(t *testing.T, home string, c insideCase, run string, flags ...string) *exec.Cmd {
	t.Helper()
	args := slices.Concat([]string{"run", "--policy", filepath.Join("/srv", c.ID, "policy.yaml")}, flags, []string{"--", "sh", "-c", run})
	cmd := exec.CommandContext(t.Context(), h.bin, args...)
	cmd.Dir = filepath.Join(home, "proj")
	cmd.Env = []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=" + annName, "LOGNAME=" + annName}
	for name, value := range c.Sources.Env {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s", name, strings.ReplaceAll(value, "${home}", home)))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: annUID, Gid: annUID}}
	return cmd
}
