package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// What the program would not see is not copied: masks, and dot names at the top
// of each grant or everywhere, but for what is or leads to a grant.
func TestHiddenNames(t *testing.T) {
	for _, x := range []struct {
		n           hiddenNames
		seen, hides string
	}{
		{hiddenNames{}, "a a/.b a/.b/c", ".a .git .venv"},
		{hiddenNames{allowed: []string{".venv", ".git"}}, ".venv .git a/.git .venv/.x", ".env"},
		{hiddenNames{recursive: true, allowed: []string{".git"}}, "a a/b .git a/.git", ".a a/.b a/b/.c .git/.x"},
		{hiddenNames{grants: []string{"sub"}}, "sub sub/a sub/a/.b a/.b", ".a sub/.a"},
		{hiddenNames{grants: []string{".env", ".ssh/keys/config"}}, ".env .ssh .ssh/keys .ssh/keys/config", ".ssh2 .ssh/id .ssh/keys/id .a"},
		{hiddenNames{grants: []string{".ssh"}}, ".ssh .ssh/id", ".ssh/.x"},
		{hiddenNames{grants: []string{"a/b"}, masks: map[string]bool{"a/b/c": true, "x": true}}, "a a/b a/b/d", "a/b/c x"},
		{hiddenNames{recursive: true, grants: []string{"a/.b/c"}}, "a a/.b a/.b/c a/.b/c/d", "a/.c a/.b/d a/.b/c/.d"},
	} {
		for _, path := range strings.Fields(x.seen) {
			if x.n.hides(path) {
				t.Errorf("%+v hides %s", x.n, path)
			}
		}
		for _, path := range strings.Fields(x.hides) {
			if !x.n.hides(path) {
				t.Errorf("%+v shows %s", x.n, path)
			}
		}
	}
}

// forks are the copies that are left.
func (r *runPlace) forks(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(r.path(".local/state/egressd/forks/*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A fork is what the folder is, at its own path; the host's stays as it is, git
// folders included, and nothing of the copy is left or to be seen elsewhere.
func TestRunFork(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			if err := os.MkdirAll(r.path("proj/out/keep"), 0o755); err != nil {
				t.Fatal(err)
			}
			r.write(t, "proj/a", "old\n")
			r.write(t, "proj/.env", "K=7731\n")
			r.write(t, "proj/out/keep/x", "kept\n")
			fork := func(sandbox string) []string {
				return []string{"run", "-q", "--policy", r.write(t, "fork.yaml", "os_env: {fork: true, sandbox: {egress_rules: [], "+sandbox+"}}\n"), "--", "sh", "-c"}
			}
			for _, x := range []struct{ sandbox, script, want string }{
				// Only cwd is a copy, whatever grants lie in it and around it.
				{"write_paths: [.]", "pwd; cat a; echo new >a; mkdir -p d/e; rm -r out; cat a; ls", r.path("proj") + "\nold\nnew\na\nd\n"},
				{"write_paths: [out]", "echo x 2>/dev/null >a || echo ro; echo y >out/keep/x; cat out/keep/x", "ro\ny\n"},
				{"write_paths: [out], read_paths: [.env]", "cat .env; rm out/keep/x; ls out/keep", "K=7731\n"},
				{"write_paths: [~]", "echo x 2>/dev/null >a || echo ro; ls -A ~/.local; cat a", "ro\nold\n"},
				{"write_paths: [~, .]", "cat .env 2>/dev/null; echo new >a; cat a; find ~ -path '*/forks/*' | wc -l", "new\n0\n"},
				{"write_paths: [.]", "find . -newer a -name a; chmod 000 out; mkdir -p z/z/z; chmod 0 z/z z; id -u >/dev/null; ln -s / l; echo ok", "ok\n"},
				{"cwd_allow_hidden: [.env]", "cat .env", "K=7731\n"},
				{"write_paths: [.]", "grep -r 7731 . /proc/self/environ 2>/dev/null | wc -l; ls -A", "0\na\nout\n"},
			} {
				out, errs, code := r.call(t, append(fork(x.sandbox), x.script)...)
				if out != x.want || code != 0 || errs != "" {
					t.Errorf("uid %d: %s: %s: %d %q\n%s", uid, x.sandbox, x.script, code, out, errs)
				}
				for path, want := range map[string]string{"proj/a": "old\n", "proj/.env": "K=7731\n", "proj/out/keep/x": "kept\n"} {
					if got, err := os.ReadFile(r.path(path)); err != nil || string(got) != want {
						t.Fatalf("uid %d: %s: %s on the host is %q, %v", uid, x.script, path, got, err)
					}
				}
				if left := r.forks(t); len(left) > 0 {
					t.Errorf("uid %d: %s: left %v", uid, x.script, left)
				}
			}
			// A git folder that is shown is the program's to use; nothing is made in
			// the host's.
			r.shell(t, "git init -q -b main . && git config user.name A && git config user.email a@b.test && git add a && git commit -qm one && rm -rf .git/hooks")
			before := r.shell(t, "find .git | sort")
			out, errs, code := r.call(t, append(fork("write_paths: [.], cwd_allow_hidden: [.git]"),
				"git config alias.x status && mkdir -p .git/hooks && echo new >a && git commit -qam two && git log --format=%s")...)
			if out != "two\none\n" || code != 0 {
				t.Errorf("uid %d: git: %d %q\n%s", uid, code, out, errs)
			}
			if after := r.shell(t, "find .git | sort"); after != before {
				t.Errorf("uid %d: the host's git folder was\n%sand is\n%s", uid, before, after)
			}
			if err := os.RemoveAll(r.path("proj/.git")); err != nil {
				t.Fatal(err)
			}
			// A killed run leaves a copy, and another run takes it away; one that
			// runs is left alone.
			cmd := r.command(t, append(fork("write_paths: [.]"), "echo on; sleep 60")...)
			begun(t, cmd)
			one := r.forks(t)
			if out, errs, code := r.call(t, append(fork("write_paths: [.]"), "sleep 0.4; cat a")...); out != "old\n" || code != 0 {
				t.Errorf("uid %d: beside another: %d %q %s", uid, code, out, errs)
			}
			if now := r.forks(t); len(one) != 1 || !slices.Equal(one, now) {
				t.Errorf("uid %d: copies %v, then %v", uid, one, now)
			}
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if len(r.forks(t)) != 1 {
				t.Errorf("uid %d: after the kill: %v", uid, r.forks(t))
			}
			r.call(t, "run", "-q", "--policy", r.write(t, "plain.yaml", "sandbox: {egress_rules: []}\n"), "--", "sleep", "0.4")
			if left := r.forks(t); len(left) > 0 {
				t.Errorf("uid %d: after the next run: %v", uid, left)
			}
			// Commands of exec work on one too, and so does the fallback.
			call := `{"script": "cat a; echo new >a; cat a; rm -r out"}`
			if out, errs, code := r.call(t, "exec", "-q", "--policy", r.path("fork.yaml"), call); code != 0 || !strings.Contains(out, `"stdout":"old\nnew\n"`) {
				t.Errorf("uid %d: exec: %d %q %s", uid, code, out, errs)
			}
			if out, errs, code := r.call(t, append([]string{"run", "--capture", "explicit"}, append(fork("write_paths: [.]")[1:], "echo new >a; cat a; rm -r out")...)...); out != "new\n" || code != 0 {
				t.Errorf("uid %d: fallback: %d %q %s", uid, code, out, errs)
			}
			if text, err := os.ReadFile(r.path("proj/out/keep/x")); err != nil || string(text) != "kept\n" || len(r.forks(t)) > 0 {
				t.Errorf("uid %d: on the host %q %v, left %v", uid, text, err, r.forks(t))
			}
			// What cannot be copied starts nothing.
			r.fails(t, []string{"--cwd", "/", "--policy", r.path("fork.yaml"), "--", "echo", "ran"}, "os_env.fork copies the working folder, and that is /")
		}
		// Under sudo the copy is the caller's, as the folder is, and root's files in
		// it stay root's.
		ann := newRunPlace(t, annUID)
		policy := ann.write(t, "fork.yaml", "os_env: {fork: true, sandbox: {egress_rules: [], write_paths: [.]}}\n")
		ann.own(t)
		if err := os.Chown(ann.path("proj/out/keep"), 0, 0); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "/srv/egressd", "run", "-q", "--policy", policy, "--", "sh", "-c", "echo new >a; cat a; touch out/keep/y 2>/dev/null || echo no; stat -c %U a")
		cmd.Dir, cmd.Env = ann.path("proj"), append(slices.Clone(ann.env), "SUDO_UID=4242", "HOME=/root", "USER=root")
		if out, errs, code := finish(t, cmd); out != "new\nno\nann\n" || code != 0 || len(ann.forks(t)) > 0 {
			t.Errorf("sudo: %d %q %s, left %v", code, out, errs, ann.forks(t))
		}
	})
}

// begun starts a command and waits for its first line.
func begun(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A start in the scratch folder: what the program writes where it stands is gone,
// and its folder of work stays to be read.
func TestRunScratch(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			r.write(t, "proj/a", "old\n")
			policy := r.write(t, "scratch.yaml", "os_env: {start_in_scratch: true, sandbox: {egress_rules: []}}\n")
			script := `echo x >f && cat f; pwd; [ "$PWD" = "$TMPDIR" ] && cat ` + r.path("proj/a") + `; touch ` + r.path("proj/b") + ` 2>/dev/null || echo ro`
			if out, errs, code := r.call(t, "run", "--policy", policy, "--", "sh", "-c", script); out != "x\n/tmp\nold\nro\n" || code != 0 {
				t.Errorf("uid %d: %d %q\n%s", uid, code, out, errs)
			}
			if out, errs, code := r.call(t, "exec", "--policy", policy, `{"script": "pwd; cat ~/proj/a; echo x >f"}`); code != 0 || !strings.Contains(out, `"stdout":"/tmp\nold\n"`) {
				t.Errorf("uid %d: exec: %d %q %s", uid, code, out, errs)
			}
		}
	})
}
