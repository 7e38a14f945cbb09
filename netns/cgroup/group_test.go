//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestGroup works in a real tree, which it mounts in a mount namespace of its
// own. Few hosts of tests have controllers to hand down, so memory and tasks are
// those of TestLimitFiles.
func TestGroup(t *testing.T) {
	if dir := os.Getenv("EGRESSD_TEST_CGROUP"); dir != "" {
		inTree(t, dir)
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("mounting a tree of cgroups takes root: run the tests as root")
	}
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestGroup$", "-test.v")
	cmd.Env = append(os.Environ(), "EGRESSD_TEST_CGROUP="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func inTree(t *testing.T, dir string) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("cgroup2", dir, "cgroup2", 0, ""); err != nil {
		t.Fatalf("mounting a tree of cgroups: %v", err)
	}
	// A place that is ours alone, so that no running egressd is met.
	at := filepath.Join(dir, fmt.Sprintf("egressd.test.%d", os.Getpid()))
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Remove(at); err != nil {
			t.Error(err)
		}
	}()
	h := hierarchy{mount: dir, own: at}
	make := func() *Group {
		t.Helper()
		p, err := h.place(nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := (&Place{at: p}).Make()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}

	// What a killed egressd leaves goes at the next start; what a living one
	// has, or what is not empty, stays.
	dead, busy, alive := filepath.Join(at, prefix+"dead"), filepath.Join(at, prefix+"busy"), make()
	for _, d := range []string{dead, busy, filepath.Join(busy, "below")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	g := make()
	for path, want := range map[string]bool{dead: false, busy: true, alive.Path(): true, g.Path(): true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, there is to be one: %v", path, err, want)
		}
	}
	for _, d := range []string{filepath.Join(busy, "below"), busy} {
		if err := os.Remove(d); err != nil {
			t.Error(err)
		}
	}

	// A process is born inside, and the time of the dead counts.
	for _, script := range []string{"grep -o 'egressd-.*' /proc/self/cgroup", "for i in 1 2 3; do (n=0; while [ $n -lt 30000 ]; do n=$((n+1)); done); done; echo"} {
		cmd := exec.Command("sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		g.Into(cmd.SysProcAttr)
		out, err := cmd.CombinedOutput()
		if line := strings.TrimSpace(string(out)); err != nil || line != "" && line != filepath.Base(g.Path()) {
			t.Errorf("%q, %v", out, err)
		}
	}
	if u, err := g.Usage(); err != nil || u.CPU < 5*time.Millisecond || u.CPU > time.Minute || u.Starved {
		t.Errorf("%+v, %v", u, err)
	}

	// What is left in it ends with it.
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	g.Into(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	go func() { _ = cmd.Wait(); ended.Stop() }()
	for _, g := range []*Group{g, alive} {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(g.Path()); err == nil {
			t.Errorf("%s is still there", g.Path())
		}
	}
}

// The files that a group's limits go to, as the kernel names them, written and
// read in a folder that stands for one.
func TestLimitFiles(t *testing.T) {
	g := &Group{path: t.TempDir()}
	files := []string{"memory.max", "memory.oom.group", "memory.swap.max", "pids.max", "pids.current", "cpu.stat", "memory.events"}
	put := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(g.path, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		put(f, "")
	}
	put("pids.current", "9\n")
	if err := g.set(Limits{Memory: 1 << 20, Tasks: 7}); err != nil {
		t.Fatal(err)
	}
	if err := g.Allow(5); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "1048576", "memory.oom.group": "1", "memory.swap.max": "0", "pids.max": "14"} {
		if text, err := os.ReadFile(filepath.Join(g.path, file)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	put("cpu.stat", "usage_usec 2500000\nuser_usec 1\n")
	for events, starved := range map[string]bool{"low 0\nmax 7\noom 0\noom_kill 0\noom_group_kill 0\n": false, "low 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n": true} {
		put("memory.events", events)
		if u, err := g.Usage(); err != nil || u.CPU != 2500*time.Millisecond || u.Starved != starved {
			t.Errorf("%q: %+v, %v", events, u, err)
		}
	}
	// A kernel without swap accounting, and a policy without a limit of memory.
	for _, f := range []string{"memory.swap.max", "memory.events"} {
		if err := os.Remove(filepath.Join(g.path, f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.set(Limits{Memory: 1}); err != nil {
		t.Error(err)
	}
	if u, err := g.Usage(); err != nil || u.Starved {
		t.Errorf("%+v, %v", u, err)
	}
}
