//go:build linux

package netns

import (
	"os/exec"
	"testing"
	"time"
)

// The chain costs no more than 25 ms over bare bwrap, start to exit of true.
// The fastest of many runs is compared, since the test runs beside others, and
// the bound is wider for the same reason.
func TestCost(t *testing.T) {
	if raced {
		t.Skip("every process of a race build ends a second late")
	}
	bare := fastest(t, func() *exec.Cmd {
		return exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true")
	})
	for name, uid := range users() {
		r := run{As: uid, Network: Captured, Argv: []string{"true"}}
		r.prepare(t)
		chain := fastest(t, func() *exec.Cmd { return r.command(t) })
		t.Logf("%s: %v, bare bwrap %v", name, chain, bare)
		if chain-bare > 60*time.Millisecond {
			t.Errorf("%s: a run costs %v more than bare bwrap", name, chain-bare)
		}
	}
}

func fastest(t *testing.T, command func() *exec.Cmd) time.Duration {
	t.Helper()
	best := time.Hour
	for range 20 {
		cmd := command()
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		best = min(best, time.Since(start))
	}
	return best
}
