//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/internal/proxytest"
)

// hog is a tree of processes that takes too much, or one that does not. None
// takes more than some hundred megabytes and seconds if nobody stops it.
type hog struct {
	name, limits, script string
	code                 int
	says                 string // on stdout or stderr
	limit                string // that the record names, or empty
}

const (
	// fill is a function that keeps so many MiB.
	fill = "import mmap, os, signal, time\ndef fill(n): return bytearray(b\"x\") * (n << 20)\n"
	// burn uses up processor time.
	burn = "import os, signal, time\ndef burn(s):\n    end = time.time() + s\n    while time.time() < end: pass\n"
)

func python(script string) string { return "exec python3 -c '" + script + "'" }

var hogs = []hog{
	{"one alone meets its own", "memory: 96MiB", python(fill + "fill(300)"), 1, "MemoryError", ""},
	{"four below the limit", "memory: 96MiB", "for i in 1 2 3 4; do python3 -c '" + fill + "b = fill(60); time.sleep(20)' & done; wait; echo survived", 137, "sandbox.limits.memory (96MiB)", "memory"},
	{"what a fork shares counts once", "memory: 96MiB", python(fill + `
b = fill(50)
for i in range(6):
    if os.fork() == 0: time.sleep(1.5); os._exit(0)
for i in range(6): os.wait()
print("survived")`), 0, "survived", ""},
	{"files in memory", "memory: 96MiB", "head -c 300M /dev/zero >/tmp/big; sleep 5; echo survived", 137, "sandbox.limits.memory", "memory"},
	{"files in /dev/shm", "memory: 96MiB", "head -c 300M /dev/zero >/dev/shm/big; sleep 5; echo survived", 137, "sandbox.limits.memory", "memory"},
	{"memfds", "memory: 96MiB", python(fill + `
f = os.memfd_create("x")
for i in range(300): os.write(f, b"x" * (1 << 20))
time.sleep(5); print("survived")`), 137, "sandbox.limits.memory", "memory"},
	{"shared mappings", "memory: 96MiB", python(fill + `
m = mmap.mmap(-1, 300 << 20)
for i in range(0, 300 << 20, 4096): m[i] = 1
time.sleep(5); print("survived")`), 137, "sandbox.limits.memory", "memory"},
	{"segments of System V", "memory: 96MiB", python(fill + `
import ctypes
c = ctypes.CDLL(None)
c.shmat.restype = ctypes.c_void_p
at = c.shmat(c.shmget(0, 300 << 20, 0o1600), None, 0)
ctypes.memset(at, 1, 300 << 20)
c.shmdt(ctypes.c_void_p(at))
time.sleep(5); print("survived")`), 137, "sandbox.limits.memory", "memory"},
	{"a small program", "memory: 32MiB, processes: 8, open_files: 32, cpu_seconds: 5", "ulimit -n; (echo survived)", 0, "32\nsurvived", ""},
	{"one burns alone", "cpu_seconds: 1", python(burn + "burn(20)"), 152, "", ""},
	{"one takes SIGXCPU lightly", "cpu_seconds: 1", python(burn + "signal.signal(signal.SIGXCPU, signal.SIG_IGN); burn(20)"), 137, "sandbox.limits.cpu_seconds (1)", "cpu_seconds"},
	{"three burn", "cpu_seconds: 1", "for i in 1 2 3; do python3 -c '" + burn + "burn(20)' & done; wait; echo survived", 137, "sandbox.limits.cpu_seconds (1)", "cpu_seconds"},
	{"one after another", "cpu_seconds: 1", python(burn + `
for i in range(200):
    if os.fork() == 0: burn(0.1); os._exit(0)
    os.wait()
print("survived")`), 137, "sandbox.limits.cpu_seconds", "cpu_seconds"},
	{"a chain, each dead before it is looked at", "cpu_seconds: 1", python(burn + `
for i in range(200):
    burn(0.1)
    if os.fork() != 0 and i > 0: os._exit(0)
    if i == 0 and os.getppid() == 2: time.sleep(20)
print("survived")`), 137, "sandbox.limits.cpu_seconds", "cpu_seconds"},
	{"nobody waits for the dead", "cpu_seconds: 1", python(burn + `
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(100):
    for k in range(2):
        if os.fork() == 0: burn(0.1); os._exit(0)
    time.sleep(0.1)
print("survived")`), 137, "sandbox.limits.cpu_seconds", "cpu_seconds"},
	{"a bomb", "processes: 20", python(`
import os, time
end = time.time() + 1.5
n = 0
while time.time() < end:
    try:
        if os.fork() == 0:
            while time.time() < end:
                try: os.fork()
                except OSError: time.sleep(0.01)
            os._exit(0)
    except OSError: time.sleep(0.01)
    n = max(n, len([p for p in os.listdir("/proc") if p.isdigit()]))
print("survived" if 15 <= n <= 40 else n)`), 0, "survived", ""},
	{"node", "memory: 512MiB", "exec node -e 'console.log(6*7)'", 0, "42", ""},
	{"java", "memory: 512MiB", "exec java -Xshare:auto -version 2>&1", 0, "version", ""},
}

// Hogs end alone, for a user and for root, and what is no hog does not. The
// host lends no cgroup here, so egressd counts.
func TestLimits(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			for _, h := range hogs {
				t.Run(fmt.Sprintf("%d/%s", uid, h.name), func(t *testing.T) { r.bounded(t, h, "a count of all") })
			}
		}
	})
}

func (r *runPlace) bounded(t *testing.T, h hog, by string) {
	t.Helper()
	file := r.policyText(t, "sandbox: {allow_network: false, limits: {"+h.limits+"}}\n")
	begin := time.Now()
	cmd := r.command(t, "run", "-v", "--policy", file, "--", "sh", "-c", h.script)
	if by != "a count of all" {
		attr := syscall.SysProcAttr{}
		if cmd.SysProcAttr != nil {
			attr = *cmd.SysProcAttr
		}
		f, err := os.Open(by)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		attr.UseCgroupFD, attr.CgroupFD = true, int(f.Fd())
		cmd.SysProcAttr = &attr
	}
	out, errs, code := finish(t, cmd)
	if code != h.code || !strings.Contains(out+errs, h.says) || h.code != 0 && strings.Contains(out, "survived") {
		t.Errorf("%d after %v, stdout %q, stderr:\n%s", code, time.Since(begin), out, errs)
	}
	if !strings.Contains(errs, "sandbox.limits is held by") || !strings.Contains(errs, by) {
		t.Errorf("%q holds the limits:\n%s", by, errs)
	}
	var limits []string
	all := r.record(t)
	for _, rec := range all {
		if rec["kind"] == "limit" {
			limits = append(limits, fmt.Sprint(rec["verdict"], " ", rec["reason"]))
		}
	}
	reason := "exit"
	var want []string
	if h.limit != "" {
		reason, want = "limit", []string{"deny " + h.limit}
	}
	if last := all[len(all)-1]; !slices.Equal(limits, want) || last["kind"] != "session_end" || last["reason"] != reason {
		t.Errorf("the record has %q and ends with %v", limits, last)
	}
	if l := left(); len(l) != 0 {
		t.Errorf("processes are left: %q", l)
	}
}

// A group that the host has handed to the user holds what it can, and is gone
// afterwards, also when egressd was killed.
func TestLimitsInGroup(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		const tree = "/srv/cgroups"
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("cgroup2", tree, "cgroup2", 0, ""); err != nil {
			t.Fatalf("mounting a tree of cgroups: %v", err)
		}
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			// By the time, since processes of all namespaces share the tree.
			at := filepath.Join(tree, fmt.Sprintf("egressd.test.%d.%d", uid, time.Now().UnixNano()))
			if err := os.Mkdir(at, 0o755); err != nil {
				t.Fatal(err)
			}
			defer func() {
				// What a killed egressd had started on the host may be on its way out.
				eventually(t, "the tests' group stays busy", func() bool { return os.Remove(at) == nil })
			}()
			for _, path := range []string{at, at + "/cgroup.procs"} {
				if err := os.Chown(path, uid, uid); err != nil {
					t.Fatal(err)
				}
			}
			// As systemd marks what it hands out; it counts for root alone.
			if err := unix.Setxattr(at, "user.delegate", []byte("1"), 0); err != nil {
				t.Fatal(err)
			}
			groups := func() []string {
				list, _ := filepath.Glob(at + "/egressd-*")
				return list
			}
			for _, h := range hogs {
				if !strings.HasPrefix(h.limits, "cpu_seconds: 1") {
					continue
				}
				if h.code == 152 { // the group's, there is none of its own
					h.code, h.says, h.limit = 137, "sandbox.limits.cpu_seconds", "cpu_seconds"
				}
				t.Run(fmt.Sprintf("%d/%s", uid, h.name), func(t *testing.T) { r.bounded(t, h, at) })
				if l := groups(); len(l) != 0 {
					t.Errorf("groups are left: %q", l)
				}
			}
			file := r.policyText(t, "sandbox: {allow_network: false, limits: {cpu_seconds: 100}}\n")
			f, err := os.Open(at)
			if err != nil {
				t.Fatal(err)
			}
			start := func(script string) func() {
				cmd := r.command(t, "run", "-q", "--policy", file, "--", "sh", "-c", script)
				attr := syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
				if cmd.SysProcAttr != nil {
					attr.Credential = cmd.SysProcAttr.Credential
				}
				cmd.SysProcAttr = &attr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
			}
			kill := start("sleep 1000")
			eventually(t, "no group has a process", func() bool {
				l := groups()
				if len(l) == 0 {
					return false
				}
				text, _ := os.ReadFile(l[0] + "/cgroup.procs")
				return len(text) > 0
			})
			kill()
			eventually(t, "the sandbox is not gone", func() bool { return len(left()) == 0 })
			dead := groups()
			kill = start("sleep 1000")
			eventually(t, "a killed egressd's group is not swept away", func() bool {
				l := groups()
				return len(dead) == 1 && len(l) == 1 && l[0] != dead[0]
			})
			kill()
			eventually(t, "the sandbox is not gone", func() bool { return len(left()) == 0 })
			eventually(t, "the group of a killed egressd stays busy", func() bool {
				for _, dir := range groups() {
					_ = os.Remove(dir) // its last process may be on its way out
				}
				return len(groups()) == 0
			})
			f.Close()
		}
	})
}

// A run has its time, and not more: not if it takes SIGTERM lightly, and not if
// it is stopped, when egressd is too.
func TestTimeout(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			for _, c := range []struct {
				kind, script, out string
				code              int
				from, to          time.Duration
			}{
				{"allow_network: false", "echo on; sleep 100", "on\n", 124, time.Second, 20 * time.Second},
				{"allow_network: false", "trap 'echo term; exit 3' TERM; echo on; sleep 100 & wait", "on\nterm\n", 124, time.Second, 20 * time.Second},
				{"allow_network: false", "trap '' TERM; echo on; sleep 100; sleep 100", "on\n", 124, 6 * time.Second, 25 * time.Second},
				{"allow_network: false", "echo on; kill -STOP $$; echo more", "on\n", 124, time.Second, 20 * time.Second},
				{"allow_network: false", "echo on; exit 5", "on\n", 5, 0, 20 * time.Second},
				// Without a sandbox it is the program's own process that is ended.
				{"type: none", "echo on; exec sleep 100", "on\n", 124, time.Second, 20 * time.Second},
				{"type: none", "echo on; trap '' TERM; exec sleep 100", "on\n", 124, 6 * time.Second, 25 * time.Second},
				{"type: none", "echo on; kill -STOP $$; echo more", "on\n", 124, time.Second, 20 * time.Second},
				{"type: none", "echo on; exit 5", "on\n", 5, 0, 20 * time.Second},
			} {
				file := r.policyText(t, "sandbox: {"+c.kind+", timeout: 1s}\n")
				cmd := r.command(t, "run", "-q", "--policy", file, "--", "sh", "-c", c.script)
				attr := syscall.SysProcAttr{Setpgid: true} // what stops is its group
				if cmd.SysProcAttr != nil {
					attr.Credential = cmd.SysProcAttr.Credential
				}
				cmd.SysProcAttr = &attr
				begin := time.Now()
				guard := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
				out, errs, code := finish(t, cmd)
				guard.Stop()
				took := time.Since(begin)
				says := strings.Contains(errs, "the run took longer than sandbox.timeout (1s): it was ended")
				if out != c.out || code != c.code || says != (code == 124) || took < c.from || took > c.to {
					t.Errorf("%d, %s, %q: %d after %v, stdout %q, stderr:\n%s", uid, c.kind, c.script, code, took, out, errs)
				}
				reason := "exit"
				if c.code == 124 {
					reason = "timeout"
				}
				all := r.record(t)
				if last := all[len(all)-1]; last["reason"] != reason || (countRecords(all, map[string]any{"kind": "limit", "reason": "timeout"}) == 1) != (c.code == 124) {
					t.Errorf("%q: the record ends with %v", c.script, last)
				}
				if l := left(); len(l) != 0 {
					t.Errorf("%q: processes are left: %q", c.script, l)
				}
			}
		}
	})
}

// While egressd is stopped nothing inside runs that nobody would count.
func TestLimitsWhileStopped(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		file := r.policyText(t, "sandbox: {allow_network: false, write_paths: [.], limits: {memory: 96MiB}}\n")
		cmd := r.command(t, "run", "-q", "--policy", file, "--", "sh", "-c",
			"(while :; do echo >>beats; sleep 0.05; done) & kill -STOP $$; echo went on")
		cmd.SysProcAttr.Setpgid = true
		var out lockedBuffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "egressd does not stop", func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
			return err == nil && strings.Contains(string(stat), ") T ")
		})
		size := func() int64 {
			info, err := os.Stat(r.path("proj/beats"))
			if err != nil {
				return 0
			}
			return info.Size()
		}
		before := size()
		time.Sleep(500 * time.Millisecond)
		if after := size(); after != before {
			t.Errorf("a job in the background went on: %d, then %d beats", before, after)
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || out.String() != "went on\n" {
			t.Errorf("%v, %q", err, &out)
		}
	})
}

// A command whose sandbox met a limit has a status, and the next one a new
// sandbox. A policy's time bounds each command.
func TestLimitsOfCommands(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		file := r.policyText(t, "sandbox: {allow_network: false, timeout: 3s, limits: {memory: 96MiB}}\n")
		out, errs, code := r.call(t, "exec", "--policy", file, `{"script":"echo on; head -c 300M /dev/zero >/tmp/big; sleep 9","timeout_ms":20000}`)
		if code != 0 || !strings.Contains(out, `"exit_code":137`) || !strings.Contains(out, `"stdout":"on\n"`) ||
			!strings.Contains(out, "limit of memory") || !strings.Contains(errs, "sandbox.limits.memory (96MiB)") {
			t.Errorf("%d %s\n%s", code, out, errs)
		}
		if all := r.record(t); countRecords(all, map[string]any{"kind": "limit", "reason": "memory"}) != 1 {
			t.Errorf("%v", all)
		}
		begin := time.Now()
		out, errs, code = r.call(t, "exec", "--policy", file, `{"script":"sleep 20","timeout_ms":20000}`)
		if code != 0 || !strings.Contains(out, `"exit_code":124`) || time.Since(begin) > 9*time.Second {
			t.Errorf("%d %s\n%s", code, out, errs)
		}
	})
}
