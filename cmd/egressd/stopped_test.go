package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// A program that stops the launcher, the only one who could tell of its end,
// does not make a run that nobody can end. Each step waits for the one before,
// however slow the machine: a first signal that arrives says that the launcher
// has told of the start, and only then is it stopped.
func TestStoppedLauncher(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		h := newSandboxHost(t)
		c := insideCase{ID: "stopped", Rules: []any{}, Entries: []map[string]any{}, Sandbox: map[string]any{"write_paths": []string{"."}}}
		h.layOut(t, "/home/stopped", c)
		cmd := h.annCommand(t, "/home/stopped", c, `
			stop() {
				kill -STOP 2
				# On a busy machine its threads stop one by one.
				while cat /proc/2/task/*/status | grep "^State:" | grep -qv stopped; do sleep 0.02; done
				: >stopped
				exit 3
			}
			trap stop USR1
			: >ready
			while :; do sleep 0.05; done`)
		var errs lockedBuffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for _, step := range []struct {
			file string
			then syscall.Signal
		}{{"ready", syscall.SIGUSR1}, {"stopped", syscall.SIGTERM}} {
			eventually(t, "the program did not come to "+step.file, func() bool {
				_, err := os.Stat("/home/stopped/proj/" + step.file)
				return err == nil
			})
			if err := cmd.Process.Signal(step.then); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("nobody can end the run: %s", &errs)
		}
		if code := cmd.ProcessState.ExitCode(); code != 137 || !strings.Contains(errs.String(), "takes no signals") {
			t.Errorf("%d, stderr %s", code, &errs)
		}
		if l := left(); len(l) != 0 {
			t.Errorf("processes are left: %q", l)
		}
	})
}
