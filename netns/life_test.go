//go:build linux

package netns

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// procs are the processes of the test's pid namespace but for this one and
// kernel threads, by pid.
func procs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		pid := filepath.Base(d)
		if pid == fmt.Sprint(os.Getpid()) {
			continue
		}
		if cmd, err := os.ReadFile(d + "/cmdline"); err == nil && len(cmd) > 0 {
			out[pid] = strings.ReplaceAll(string(cmd), "\x00", " ")
		}
	}
	return out
}

// left waits for everything that was not there before to go, and returns what
// stays.
func left(t *testing.T, before map[string]string, wait time.Duration) []string {
	t.Helper()
	for end := time.Now().Add(wait); ; time.Sleep(2 * time.Millisecond) {
		var stay []string
		for pid, cmd := range procs(t) {
			if _, old := before[pid]; !old {
				stay = append(stay, pid+": "+cmd)
			}
		}
		if len(stay) == 0 || time.Now().After(end) {
			return stay
		}
	}
}

// egressd killed at any moment takes everything with it: processes, mounts and
// files.
func TestKilledAtAnyMoment(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("counting processes needs the pid namespace that only root's test run has")
	}
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			r := run{As: uid, Network: Captured, Shell: "setsid sleep 30 & sleep 30"}
			killAtRandom(t, &r, 100, 0)
		})
	}
	t.Run("fallback", func(t *testing.T) {
		r := run{As: user(), Network: Captured, Capture: CaptureExplicit, Shell: "setsid sleep 30 & sleep 30"}
		// A bwrap that has not started anything can stay behind there (NETNS.md).
		killAtRandom(t, &r, 50, 5)
	})
}

func killAtRandom(t *testing.T, r *run, times, idle int) {
	r.prepare(t)
	r.put(t, "proj/.env", "S") // so that there is a keeper
	before, mounts := procs(t), mountCount(t)
	temp := entries(t, "/tmp")
	worst := time.Duration(0)
	for range times {
		cmd := r.command(t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(40_000)) * time.Microsecond)
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		killed := time.Now()
		if stay := left(t, before, 2*time.Second); len(stay) > 0 {
			if idle--; idle < 0 || !onlyBwrap(stay) {
				t.Fatalf("left: %s", stay)
			}
			for _, p := range stay {
				pid, err := strconv.Atoi(p[:strings.IndexByte(p, ':')])
				if err != nil {
					t.Fatal(err)
				}
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may go by itself yet
			}
			left(t, before, 2*time.Second)
		}
		worst = max(worst, time.Since(killed))
	}
	t.Logf("worst time to be gone: %v", worst)
	if n := mountCount(t); n != mounts {
		t.Errorf("%d mounts, %d before", n, mounts)
	}
	if now := entries(t, "/tmp"); !slices.Equal(now, temp) {
		t.Errorf("left in /tmp: %s, before %s", now, temp)
	}
}

// onlyBwrap says that nothing but bwrap is among the processes: no launcher, and
// so no program.
func onlyBwrap(stay []string) bool {
	return !slices.ContainsFunc(stay, func(p string) bool { return !strings.Contains(p, ": /usr/bin/bwrap ") })
}

func mountCount(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// The helper's death, bwrap's then, is the run's: the program does not go on
// without what guards it.
func TestBwrapKilled(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("finding the processes needs the pid namespace that only root's test run has")
	}
	r := run{Network: Captured, As: user(), Shell: "echo up; sleep 30"}
	before := procs(t)
	cmd := r.command(t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	for pid, line := range procs(t) {
		if strings.Contains(line, "bwrap") {
			_ = exec.Command("kill", "-9", pid).Run() // one of them may be gone already
		}
	}
	_ = cmd.Wait() // its status is looked at
	if code := cmd.ProcessState.ExitCode(); code != 137 {
		t.Errorf("status %d, want 137", code)
	}
	if stay := left(t, before, time.Second); len(stay) > 0 {
		t.Errorf("left: %s", stay)
	}
}
