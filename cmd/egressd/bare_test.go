package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// Without a sandbox a program runs as its caller would run it, and every start
// says so, with -q too, and the record.
func TestBare(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			file := r.policyText(t, "sandbox: {type: none, read_paths: [lib], env_passthrough: [X]}\n")
			none := []string{"run", "-q", "--policy", file, "--"}
			r.env = append(r.env, "TOKEN=t0p")
			out, errs, code := r.call(t, append(none, "sh", "-c", `echo "$TOKEN $(pwd)"; echo >made; exit 7`)...)
			if out != "t0p "+r.path("proj")+"\n" || code != 7 {
				t.Errorf("%d: %q %d", uid, out, code)
			}
			for _, want := range []string{"egressd: there is NO sandbox (sandbox.type: none)", "these do nothing: read_paths, env_passthrough"} {
				if strings.Count(errs, want) != 1 {
					t.Errorf("%d: %q is not there once:\n%s", uid, want, errs)
				}
			}
			first, last := r.ends(t)
			if first["kind"] != "session_start" || first["isolator"] != "none" || last["kind"] != "session_end" || last["reason"] != "exit" {
				t.Errorf("%d: %v\n%v", uid, first, last)
			}
			for _, c := range []struct {
				argv []string
				code int
				says string
			}{
				{[]string{"nosuch"}, 127, "egressd: nosuch: not found"}, {[]string{"/etc/passwd"}, 126, "permission denied"}, {[]string{"/etc"}, 126, "folder"},
				{[]string{"./nosuch"}, 127, "not found"}, {[]string{"sh", "-c", "kill -9 $$"}, 137, ""}, {[]string{"true"}, 0, ""},
			} {
				if out, errs, code := r.call(t, append(none, c.argv...)...); code != c.code || out != "" || !strings.Contains(errs, c.says) {
					t.Errorf("%d: %q: %d %q %s", uid, c.argv, code, out, errs)
				}
			}
			bareSignalled(t, r, none)

			// By the variable, where the policy asks for nothing that only a sandbox has.
			unsafe := r.with("EGRESSD_UNSAFE_NO_SANDBOX", "1").with("PATH", noBwrap(t))
			file = r.policyText(t, "sandbox: {}\n")
			out, errs, code = unsafe.call(t, "run", "-q", "--policy", file, "--", "/bin/echo", "bare")
			if out != "bare\n" || code != 0 || strings.Count(errs, "NO sandbox (EGRESSD_UNSAFE_NO_SANDBOX=1)") != 1 {
				t.Errorf("%d: %q %d %s", uid, out, code, errs)
			}
			if first, _ := r.ends(t); first["isolator"] != "none" {
				t.Errorf("%d: %v", uid, first)
			}
			unsafe.fails(t, []string{"--policy", r.policy(t, "GET api.test/**"), "--", "/bin/echo", "ran"}, "EGRESSD_UNSAFE_NO_SANDBOX=1", "egress_rules", "unset it")
			unsafe.fails(t, []string{"--policy", r.policyText(t, "sandbox: {allow_network: false}\n"), "--", "/bin/echo", "ran"}, "allow_network")
			unsafe.fails(t, []string{"--policy", r.policyText(t, "{}\n"), "--", "/bin/echo", "ran"}, "egress_rules")
		}
	})
}

// bareSignalled: signals reach the program, and it does not outlive egressd.
func bareSignalled(t *testing.T, r *runPlace, none []string) {
	for _, c := range []struct {
		sig  syscall.Signal
		code int
	}{{syscall.SIGTERM, 9}, {syscall.SIGINT, 9}, {syscall.SIGKILL, -1}} {
		var out lockedBuffer
		cmd := r.command(t, append(none, "sh", "-c", "trap 'exit 9' TERM INT; echo $$; while :; do sleep 0.05; done")...)
		cmd.Stdout = &out
		cmd.SysProcAttr = sessionOf(cmd.SysProcAttr)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); !strings.Contains(out.String(), "\n"); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it does not start")
			}
		}
		if err := cmd.Process.Signal(c.sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its status is looked at
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%v: %d", c.sig, code)
		}
		pid := strings.TrimSpace(out.String())
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat("/proc/" + pid + "/cmdline"); err != nil {
				break
			}
			if data, _ := os.ReadFile("/proc/" + pid + "/cmdline"); len(data) == 0 {
				break // nobody waits for it
			}
			if time.Now().After(end) {
				t.Errorf("%v: it lives on", c.sig)
				break
			}
		}
	}
}

// sessionOf makes a session of its own, without a terminal.
func sessionOf(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Setsid = true
	return attr
}
