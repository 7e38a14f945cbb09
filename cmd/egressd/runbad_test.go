package main

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/internal/proxytest"
)

// What keeps a run from starting is said so that a newcomer knows what to do,
// and nothing runs.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		policy := r.policy(t, "GET api.test/**")
		true1 := []string{"--policy", policy, "--", "echo", "ran"}

		// The policy.
		r.fails(t, []string{"--policy", "nosuch.yaml", "--", "echo", "ran"}, "reading the policy: ", "nosuch.yaml")
		r.write(t, "secret.yaml", "sandbox: {}\n")
		r.own(t)
		if err := os.Chmod(r.path("secret.yaml"), 0); err != nil {
			t.Fatal(err)
		}
		r.fails(t, []string{"--policy", r.path("secret.yaml"), "--", "echo", "ran"}, "reading the policy: ", "permission denied")
		r.write(t, "bad.yaml", "sandbox: {egress_rules: [GEET x.test]}\n")
		r.fails(t, []string{"--policy", r.path("bad.yaml"), "--", "echo", "ran"}, "the policy does not load:", "bad.yaml:1:26: error bad_rule: ")
		r.fails(t, append([]string{"--allow", "GEET x.test"}, true1...), "unknown_method")

		// The isolation program.
		r.with("PATH", noBwrap(t)).fails(t, true1, "no_sandbox_available: ", "install", "bubblewrap")
		r.with("PATH", fakeBwrap(t, "0.4.1")+":/usr/bin:/bin").fails(t, true1, "no_sandbox_available: ", "0.4.1", "0.8")

		// The record.
		busy := r.write(t, "busy.jsonl", "")
		f, err := os.OpenFile(busy, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Fatal(err)
		}
		r.fails(t, append([]string{"--audit", busy}, true1...), "busy.jsonl", "in use")
		r.fails(t, append([]string{"--audit", r.path("nosuch/a.jsonl")}, true1...), "opening the record: ")
		r.fails(t, append([]string{"--audit", "/proc/x.jsonl"}, true1...), "opening the record: ")
		r.write(t, "grant.yaml", "sandbox: {egress_rules: [], write_paths: [proj]}\n")
		r.fails(t, []string{"--cwd", r.dir, "--policy", r.path("grant.yaml"), "--audit", r.path("proj/a.jsonl"), "--", "echo", "ran"},
			"which the sandbox may write: name another folder")

		// Ports.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		r.fails(t, append([]string{"--publish", "8000:" + port}, true1...), "publishing port 8000", "address already in use", "--publish PORT:HOSTPORT")

		// A control folder that somebody else made.
		if err := os.Remove(r.path("run/egressd")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink("/srv", r.path("run/egressd")); err != nil {
			t.Fatal(err)
		}
		r.fails(t, true1, r.path("run/egressd"))
		if err := os.Remove(r.path("run/egressd")); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := r.call(t, append([]string{"run"}, true1...)...); out != "ran\n" || code != 0 {
			t.Errorf("with nothing in the way: %d %q %s", code, out, errs)
		}
	})
}

// Where the host makes no user namespaces, nothing runs and the setting is
// named: here they are counted out in a namespace of the test's own.
func TestRunNoNamespaces(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, 0)
		policy := r.policy(t)
		for _, args := range [][]string{{"run", "--policy", policy, "--", "echo", "ran"}, {"doctor"}} {
			cmd := r.command(t, args...)
			cmd.Args = append([]string{"sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`, "sh", "/srv/egressd"}, args...)
			cmd.Path = "/bin/sh"
			cmd.SysProcAttr = proxytest.UserNamespace(0, 0, 65536)
			out, errs, code := finish(t, cmd)
			want := map[string]int{"run": exitEgressd, "doctor": 1}[args[0]]
			if code != want || strings.Contains(out, "ran") || !strings.Contains(out+errs, "user.max_user_namespaces") {
				t.Errorf("%v: %d\n%s%s", args, code, out, errs)
			}
		}
	})
}

// The record's disk is full: requests get 503 and nothing is sent, and the
// record still has its end.
func TestRunFullDisk(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		policy := r.policy(t, "GET api.test/**")
		data, err := os.ReadFile(policy)
		if err != nil {
			t.Fatal(err)
		}
		r.write(t, "policy.yaml", string(data)+"audit: {block_timeout: 200ms}\n")
		if err := os.Mkdir("/srv/full", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := proxytest.Mount("tmpfs", "/srv/full", "tmpfs", "size=32k,mode=1777"); err != nil {
			t.Fatal(err)
		}
		script := `n=0; while [ $n -lt 200 ]; do n=$((n+1)); c=$(curl -s -o /tmp/b -w '%{http_code}' https://api.test/$n)
			[ $c = 200 ] || break; done; echo $n $c; cat /tmp/b; curl -s -o /dev/null -w '\n%{http_code}' https://api.test/more`
		out, errs, code := r.call(t, "run", "--policy", policy, "--audit", "/srv/full/a.jsonl", "--", "sh", "-c", script)
		n, rest, _ := strings.Cut(out, " ")
		tries, err := strconv.Atoi(n)
		if err != nil || !strings.HasPrefix(rest, "503\n") || !strings.Contains(out, "audit_unavailable") || !strings.HasSuffix(out, "\n503") {
			t.Fatalf("%d %q\n%s", code, out, errs)
		}
		if got := r.origin.requests(); got != tries-1 {
			t.Errorf("the origin saw %d requests, %d were answered 200", got, tries-1)
		}
		// The operator is told, once; the end has had its room from the start.
		if code != 0 || strings.Count(errs, "the record cannot be written") != 1 {
			t.Errorf("the end: %d %s", code, errs)
		}
		if out, errs, code := r.call(t, "audit", "verify", "/srv/full/a.jsonl"); code != 0 || strings.Contains(out, "no end") {
			t.Errorf("verify: %d %s%s", code, out, errs)
		}
	})
}
