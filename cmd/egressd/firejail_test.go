package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// policyText writes a policy outside every grant.
func (r *runPlace) policyText(t *testing.T, text string) string {
	t.Helper()
	return r.write(t, "policy.yaml", text)
}

// ends are the first and the last record of the last run.
func (r *runPlace) ends(t *testing.T) (first, last map[string]any) {
	t.Helper()
	all := r.record(t)
	return all[0], all[len(all)-1]
}

// newFirejailHost is the host of the cases, with a firejail that isolates: one
// that finds no thread of the kernel takes itself for one in a sandbox.
func newFirejailHost(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("firejail"); err != nil {
		t.Fatalf("firejail is needed (.ci/deps test): %v", err)
	}
	newSandboxHost(t)
	if err := os.WriteFile("/proc/1/comm", []byte("kthreadd"), 0); err != nil {
		t.Fatal(err)
	}
}

// firejail holds what bwrap holds for a policy without rules, as a user and as
// root: files, network, environment, privileges and the end.
func TestFirejail(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newFirejailHost(t)
		for _, uid := range []int{annUID, 0} {
			t.Run(fmt.Sprint(uid), func(t *testing.T) { firejailHolds(t, newRunPlace(t, uid)) })
		}
	})
}

func firejailHolds(t *testing.T, r *runPlace) {
	file := r.policyText(t, "sandbox:\n  type: firejail\n  allow_network: false\n  write_paths: [.]\n  read_paths: [../lib]\n  env_passthrough: [TOLD]\n")
	for _, dir := range []string{"proj/.git", "proj/deep/er", "lib", "private", ".config/firejail"} {
		if err := os.MkdirAll(r.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.write(t, "proj/.env", "secret\n")
	r.write(t, "proj/.git/config", "secret\n")
	r.write(t, "proj/deep/er/egressd.yaml", "sandbox: {}\n")
	r.write(t, "proj/egressd.yaml", "sandbox: {type: firejail, allow_network: false, write_paths: [.]}\n")
	r.write(t, "lib/code", "code\n")
	r.write(t, "private/key", "secret\n")
	if err := os.WriteFile("/srv/other", []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// What the sandbox could have written for firejail to read next time. It
	// would not start with any of these.
	for _, name := range []string{"default.profile", "globals.local", "sh.profile", "egressd.profile", "firejail.config", "default.local"} {
		r.write(t, ".config/firejail/"+name, "no such command\n")
	}
	r.env = append(r.env, "TOKEN=t0p", "TOLD=yes", "LD_PRELOAD=/nosuch.so")
	run := func(script, flag string, args ...string) (string, string, int) {
		return r.call(t, append([]string{"run", flag, "--cwd", r.path("proj"), "--policy", file, "--", "sh", "-c", script, "sh"}, args...)...)
	}
	var scripts, wants []string
	inside := func(want, script string) { scripts, wants = append(scripts, script), append(wants, want) }

	// Files.
	inside(r.path("proj"), "pwd")
	inside("done", "echo made >made && echo done")
	inside("code", "cat ../lib/code")
	inside("no", "(echo >../lib/x) 2>/dev/null || echo no")
	inside("nothing", "cat .env .git/config ../private/key /srv/other 2>/dev/null | grep -v '^$' || echo nothing")
	inside("kept", "(echo >egressd.yaml; rm -f egressd.yaml; mv egressd.yaml x) 2>/dev/null; grep -q firejail egressd.yaml && echo kept")
	inside("home", "echo home >~/file && cat ~/file")
	inside("tmp", `cd "$TMPDIR" && echo tmp >x && cat x`)
	inside("none", "for d in / /usr /opt /boot /srv /proc/sys/kernel /run/firejail /run/firejail/lib /run/firejail/sandbox; do (echo >$d/x) 2>/dev/null && echo $d; done; echo none")
	inside("shadow", "cat /etc/shadow 2>/dev/null || echo shadow")

	// Network, environment, processes, privileges, descriptors.
	inside("lo", "ls /proc/self/net >/dev/null; awk -F: 'NR>2 {print $1}' /proc/self/net/dev | tr -d ' '")
	inside("TOKEN= TOLD=yes LD_PRELOAD= container=", `echo "TOKEN=$TOKEN TOLD=$TOLD LD_PRELOAD=$LD_PRELOAD container=$container"`)
	inside("0000000000000000 0000000000000000 1", `awk '/^Cap(Prm|Bnd):|^NoNewPrivs/ {printf "%s%s", s, $2; s=" "} END {print ""}' /proc/self/status`)
	inside("refused", "touch bits; chmod u+s bits 2>/dev/null || echo refused")
	inside("refused", "unshare -r true 2>/dev/null || echo refused")
	inside("0\n1\n2\n3", "exec ls /proc/self/fd") // 3 is ls's own
	inside("few", "[ $(ls -d /proc/[0-9]* | wc -l) -lt 12 ] && echo few")

	// All in one sandbox, each in a shell of its own.
	out, errs, code := run(`for s do sh -c "$s"; echo "=$?"; done`, "-q", scripts...)
	answers := strings.Split(out, "\n=0\n")
	if code != 0 || len(answers) != len(scripts)+1 {
		t.Fatalf("%q, %d\n%s", answers, code, errs)
	}
	for i, want := range wants {
		if answers[i] != want {
			t.Errorf("%s\nis %q, not %q", scripts[i], answers[i], want)
		}
	}
	if data, err := os.ReadFile(r.path("proj/made")); err != nil || string(data) != "made\n" {
		t.Errorf("what was written: %q, %v", data, err)
	}
	if _, err := os.Stat(r.path("file")); err == nil {
		t.Error("HOME is not private")
	}

	// Streams, status and signals.
	cmd := r.command(t, "run", "-q", "--cwd", r.path("proj"), "--policy", file, "--", "cat")
	cmd.Stdin = strings.NewReader("from outside")
	if out, errs, code := finish(t, cmd); out != "from outside" || code != 0 {
		t.Errorf("stdin: %q %d %s", out, code, errs)
	}
	for _, c := range []struct {
		argv []string
		code int
		says string
	}{
		{[]string{"sh", "-c", "exit 7"}, 7, ""}, {[]string{"sh", "-c", "kill -9 $$"}, 137, ""},
		{[]string{"nosuch"}, 127, "nosuch: not found"}, {[]string{"/etc/passwd"}, 126, "permission denied"},
		{[]string{"printf", "%s", "a b\"'$x`y`\n;&*"}, 0, ""},
	} {
		out, errs, code := r.call(t, append([]string{"run", "-q", "--cwd", r.path("proj"), "--policy", file, "--"}, c.argv...)...)
		if code != c.code || !strings.Contains(errs, c.says) || c.argv[0] == "printf" && out != c.argv[2] {
			t.Errorf("%q: %d %q\n%s", c.argv, code, out, errs)
		}
	}
	firejailSignalled(t, r, file)

	// What is less than with bwrap is said, and what was in force is recorded.
	_, errs, _ = run("true", "-v")
	if !strings.Contains(errs, "firejail shows") || !strings.Contains(errs, "does not read as empty") {
		t.Errorf("the notes: %s", errs)
	}
	first, last := r.ends(t)
	if first["kind"] != "session_start" || first["isolator"] != "firejail" || last["kind"] != "session_end" || last["reason"] != "exit" {
		t.Errorf("%v\n%v", first, last)
	}
	// A terminal of its own, inside.
	term := r.command(t, "-q", "-c", fmt.Sprintf("/srv/egressd run -q --cwd %s --policy %s -- sh -c 'tty; test -t 0 && echo terminal'", r.path("proj"), file), "/dev/null")
	if term.Path, term.Err = exec.LookPath("script"); term.Err == nil {
		if out, errs, code := finish(t, term); code != 0 || !strings.Contains(out, "/dev/pts/0") || !strings.Contains(out, "terminal") {
			t.Errorf("terminal: %q %s", out, errs)
		}
	} else {
		t.Errorf("script (util-linux) is needed: %v", term.Err)
	}
	// What cannot be said is refused.
	if err := os.Symlink("/srv", r.path("proj/.link")); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(r.path("proj/.link"))
	r.fails(t, []string{"--cwd", r.path("proj"), "--policy", file, "--", "echo", "ran"}, ".link", "it is a link that must be hidden", "linux_bwrap")
}

// firejailSignalled sends the program a signal, and ends egressd by force.
func firejailSignalled(t *testing.T, r *runPlace, file string) {
	for _, c := range []struct {
		sig  syscall.Signal
		code int
	}{{syscall.SIGUSR1, 9}, {syscall.SIGKILL, -1}} {
		var out, errs lockedBuffer
		cmd := r.command(t, "run", "-q", "--cwd", r.path("proj"), "--policy", file, "--", "sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done #by-firejail")
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), "ready"); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("it does not start: %s", errs.String())
			}
		}
		if err := cmd.Process.Signal(c.sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its status is looked at
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%v: %d, %s", c.sig, code, errs.String())
		}
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			left, _ := exec.Command("pgrep", "-f", "by-firejail").Output() // 1 where there is none
			if len(left) == 0 {
				break
			}
			if time.Now().After(end) {
				t.Errorf("%v: left behind: %s", c.sig, left)
				break
			}
		}
	}
}

// Without bwrap a policy that leaves the isolator open gets firejail, with a
// line; one with rules gets nothing.
func TestFirejailForWantOfBwrap(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newFirejailHost(t)
		jail, err := exec.LookPath("firejail")
		if err != nil {
			t.Fatalf("firejail is needed (.ci/deps test): %v", err)
		}
		bin := noBwrap(t)
		if err := os.Symlink(jail, bin+"/firejail"); err != nil {
			t.Fatal(err)
		}
		r := newRunPlace(t, annUID)
		r = r.with("PATH", bin)
		file := r.policyText(t, "sandbox: {allow_network: false}\n")
		out, errs, code := r.call(t, "run", "-q", "--policy", file, "--", "/bin/echo", "hello")
		if out != "hello\n" || code != 0 || !strings.Contains(errs, "egressd: bwrap is not installed: firejail keeps the program apart") {
			t.Errorf("%q %d %s", out, code, errs)
		}
		if first, _ := r.ends(t); first["isolator"] != "firejail" {
			t.Errorf("%v", first)
		}
		r.fails(t, []string{"--policy", r.policy(t, "GET api.test/**"), "--", "/bin/echo", "ran"}, "no_sandbox_available: ", "bwrap is not installed", "bubblewrap")
		r.with("PATH", noBwrap(t)).fails(t, []string{"--policy", r.policyText(t, "sandbox: {allow_network: false}\n"), "--", "/bin/echo", "ran"}, "no_sandbox_available: ", "neither bwrap nor firejail")
		// In a container firejail would start the program without a sandbox.
		if err := os.WriteFile("/proc/1/comm", []byte("init"), 0); err != nil {
			t.Fatal(err)
		}
		r.fails(t, []string{"--policy", r.policyText(t, "sandbox: {allow_network: false}\n"), "--", "/bin/echo", "ran"},
			"no_sandbox_available: ", "takes this host for a sandbox", "bubblewrap")
		r.fails(t, []string{"--policy", r.policyText(t, "sandbox: {type: firejail, egress_rules: []}\n"), "--", "/bin/echo", "ran"}, "conflict", "egress_rules")
	})
}
