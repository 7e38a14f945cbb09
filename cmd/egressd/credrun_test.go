package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/internal/proxytest"
)

// Sandboxes with credentials beyond the cases.
func TestRunCredentials(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, dir string) {
		h := newSandboxHost(t)
		bearer := map[string]any{"id": "api", "type": "https_bearer", "target": "api.test", "source": map[string]any{"env": "TOK"}, "env": "K"}
		for _, x := range []struct {
			name, run, stdout, stderr string
			entries                   []map[string]any
			sandbox                   map[string]any
			files, env                map[string]string
			exec                      []string
			flags                     []string
			code                      int
		}{
			{name: "a sandbox that is started once the secrets are read", entries: []map[string]any{bearer}, flags: []string{"--capture", "explicit"},
				run: "echo ${#K}", stdout: "51\n"},
			{name: "one in another folder than the caller's", entries: []map[string]any{bearer}, flags: []string{"--cwd", "/"},
				run: "echo ${#K}", stdout: "51\n"},
			{name: "a source among the variables that are passed on", env: map[string]string{"LC_TOKEN": "tok-live-7Qm4x9Zr2Lp8"},
				entries: []map[string]any{{"type": "https_bearer", "target": "api.test", "source": map[string]any{"env": "LC_TOKEN"}}},
				run:     "echo ${LC_TOKEN-none}", stdout: "none\n"},
			{name: "settings of git that are there stay", entries: []map[string]any{{"type": "git_https", "target": "git.test", "source": map[string]any{"env": "TOK"}}},
				env:     map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ann"},
				sandbox: map[string]any{"env_passthrough": []string{"GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"}},
				run:     "git config user.name; git ls-remote --get-url git@git.test:x", stdout: "Ann\nhttps://git.test/x\n"},
			{name: "profiles in the working folder", entries: []map[string]any{{"id": "dbx", "type": "databricks_cli", "profiles": []string{"dev"}, "default": "dev"}},
				env:   map[string]string{"DATABRICKS_CONFIG_FILE": "${home}/proj/cfg"},
				files: map[string]string{"~/proj/cfg": "[dev]\nhost = https://dev.test\ntoken = dapi-dev-22bb33cc\n"},
				run:   "wc -c < cfg; grep -c oa_cred_ $DATABRICKS_CONFIG_FILE; echo $DATABRICKS_CONFIG_PROFILE", stdout: "0\n1\ndev\n"},
			{name: "workspaces that no rule reaches", entries: []map[string]any{{"id": "dbx", "type": "databricks_cli", "profiles": []string{"dev"}}},
				files: map[string]string{"~/.databrickscfg": "[dev]\nhost = https://dev.test\ntoken = dapi-dev-22bb33cc\n"},
				run:   "true", stderr: "egressd: credential dbx: no rule reaches dev.test:443, so it is never attached there"},
			{name: "a program that lies where the sandbox writes", entries: []map[string]any{{"id": "api", "type": "https_bearer", "target": "api.test",
				"source": map[string]any{"command": []string{"sh", "${home}/proj/x.sh"}}}},
				files: map[string]string{"~/proj/x.sh": "echo tok-live-from-here\n"}, run: "echo ran", code: 125, stderr: "credential api: checking ${home}/proj/x.sh: it lies in ${home}/proj, where"},
			{name: "a program that is there by a link", entries: []map[string]any{{"id": "api", "type": "https_bearer", "target": "api.test",
				"source": map[string]any{"command": []string{"${home}/tools/x"}}}},
				files: map[string]string{"~/tools/x": "#!/bin/sh\necho tok-live-from-here\n"}, exec: []string{"~/tools/x"}, run: "echo ran", stdout: "ran\n"},
			{name: "and one that a grant opens for writing", entries: []map[string]any{{"id": "api", "type": "https_bearer", "target": "api.test",
				"source": map[string]any{"command": []string{"${home}/tools/x"}}}}, sandbox: map[string]any{"write_paths": []string{"~/tools"}},
				files: map[string]string{"~/tools/x": "#!/bin/sh\necho tok-live-from-here\n"}, exec: []string{"~/tools/x"}, run: "echo ran", code: 125, stderr: "lies in ${home}/tools"},
			{name: "what a program is given", entries: []map[string]any{{"id": "api", "type": "https_bearer", "target": "api.test", "env": "K",
				"source": map[string]any{"command": []string{"sh", "-c", "env | cut -d= -f1 | sort | tr '\\n' ' ' >&2; pwd >&2; exit 1"}}}},
				env: map[string]string{"LD_X": "1", "VAULT_ADDR": "http://v.test", "LC_ALL": "C"}, run: "echo ran", code: 125, stderr: "HOME LANG LC_ALL LOGNAME PATH PWD USER VAULT_ADDR"},
		} {
			t.Run(x.name, func(t *testing.T) {
				c := insideCase{ID: strings.ReplaceAll(x.name[:14], " ", "-"), Rules: []any{"GET api.test/**"}, Entries: x.entries, Sandbox: x.sandbox}
				home := filepath.Join("/home", c.ID)
				c.Sources.Files, c.Sources.Exec = x.files, x.exec
				c.Sources.Env = map[string]string{"TOK": "tok-live-7Qm4x9Zr2Lp8"}
				for k, v := range x.env {
					c.Sources.Env[k] = v
				}
				h.layOut(t, home, c)
				out, errs, code := h.runAnn(t, home, c, x.run, x.flags...)
				if out != x.stdout || code != x.code || !strings.Contains(errs, strings.ReplaceAll(x.stderr, "${home}", home)) {
					t.Errorf("%d, stdout %q, stderr %s", code, out, errs)
				}
				if strings.Contains(out+errs, "tok-live") {
					t.Error("the secret is shown")
				}
			})
		}
	})
}

// A leak ends the sandbox at once, with a line, a status and a record that say
// so; a canary's use is one.
func TestLeakEndsTheSandbox(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, dir string) {
		h := newSandboxHost(t)
		c := insideCase{ID: "leak", Rules: []any{"* ok.test/**"}, Sandbox: map[string]any{"on_leak": "kill"},
			Entries: []map[string]any{{"id": "trap", "canary": true, "env": "BACKUP_KEY"}}}
		h.layOut(t, "/home/leak", c)
		out, errs, code := h.runAnn(t, "/home/leak", c, `curl -sS -o /dev/null "http://ok.test/?k=$BACKUP_KEY"; echo late`)
		if code != 137 || strings.Contains(out, "late") || !strings.Contains(errs, "a placeholder (credential trap) was used where it is not bound: the sandbox is ended") {
			t.Errorf("%d, stdout %q, stderr %s", code, out, errs)
		}
		if text := records(t, "/home/leak"); !strings.Contains(text, `"kind":"leak"`) || !strings.Contains(text, `"reason":"leak"`) || strings.Contains(text, "oa_cred_") {
			t.Errorf("the record: %s", text)
		}
	})
}

// A policy whose secret the running sandbox was shown does not come into force.
func TestReloadExposes(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, dir string) {
		h := newSandboxHost(t)
		for i, x := range []struct{ source, want string }{
			{`{"file":"~/proj/tok"}`, "has a secret in /home/expose0/proj/tok, which the sandbox was shown"},
			{`{"env":"LC_TOKEN"}`, "has a secret in the variable LC_TOKEN, which the sandbox was given"},
			{`{"file":"~/tok"}`, ""},
		} {
			c := insideCase{ID: fmt.Sprintf("expose%d", i), Rules: []any{"GET api.test/**"}, Entries: []map[string]any{}}
			c.Sources.Files = map[string]string{"~/proj/tok": "tok-live-7Qm4x9Zr2Lp8\n", "~/tok": "tok-live-7Qm4x9Zr2Lp8\n"}
			c.Sources.Env = map[string]string{"LC_TOKEN": "tok-live-7Qm4x9Zr2Lp8"}
			home := "/home/" + c.ID
			h.layOut(t, home, c)
			time.AfterFunc(700*time.Millisecond, func() {
				policy := `{"sandbox":{"egress_rules":["GET api.test/**"],"credential_proxy":[{"id":"api","type":"https_bearer","target":"api.test","source":` + x.source + `}]}}`
				if err := os.WriteFile("/srv/"+c.ID+"/policy.yaml", []byte(policy), 0o644); err != nil {
					t.Error(err)
				}
			})
			_, errs, code := h.runAnn(t, home, c, "sleep 2")
			if code != 0 || !strings.Contains(errs, x.want) || x.want == "" && errs != "" {
				t.Errorf("%s: %d, stderr %s", x.source, code, errs)
			}
			if verdict := `"verdict":"deny"`; strings.Contains(records(t, home), verdict) != (x.want != "") {
				t.Errorf("%s: the record: %s", x.source, records(t, home))
			}
		}
	})
}

// Settings go behind those that are there.
func TestGitVariables(t *testing.T) {
	settings := []credbroker.GitSetting{{Key: "a.b", Value: "1"}, {Key: "a.b", Value: "2"}}
	for _, c := range []struct{ env, want string }{
		{"", "GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=a.b GIT_CONFIG_VALUE_0=1 GIT_CONFIG_KEY_1=a.b GIT_CONFIG_VALUE_1=2"},
		{"GIT_CONFIG_COUNT=3", "GIT_CONFIG_COUNT=5 GIT_CONFIG_KEY_3=a.b GIT_CONFIG_VALUE_3=1 GIT_CONFIG_KEY_4=a.b GIT_CONFIG_VALUE_4=2"},
		{"GIT_CONFIG_COUNT=x", "GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=a.b GIT_CONFIG_VALUE_0=1 GIT_CONFIG_KEY_1=a.b GIT_CONFIG_VALUE_1=2"},
	} {
		if got := strings.Join(gitVariables([]string{"A=B", c.env}, settings), " "); got != c.want {
			t.Errorf("%s: %s", c.env, got)
		}
	}
	if got := gitVariables([]string{"GIT_CONFIG_COUNT=3"}, nil); got != nil {
		t.Errorf("no settings: %q", got)
	}
}

// The root folder as a grant does not make the system's programs unsafe.
func TestBelowRoot(t *testing.T) {
	list := belowRoot([]string{"/", "/x"})
	if slices.Contains(list, "/usr") || slices.Contains(list, "/") || !slices.Contains(list, "/x") || !slices.Contains(list, "/tmp") {
		t.Errorf("%q", list)
	}
}
