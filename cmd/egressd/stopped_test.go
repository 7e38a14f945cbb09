package main

import (
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// A program that stops the launcher, the only one who could tell of its end,
// does not make a run that nobody can end.
func TestStoppedLauncher(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		h := newSandboxHost(t)
		code, left := 137, 0
		h.runCase(t, sandboxCase{
			ID: "stopped-launcher", Why: "SIGTERM ends a sandbox whose launcher is stopped.",
			Policy: map[string]any{"sandbox": map[string]any{"egress_rules": []string{}}},
			Run:    "sleep 0.4; kill -STOP 2; exit 3", // before that the launcher has not said that the program runs
			Signal: &caseSignal{Sig: "TERM", AfterMS: 1500},
			Expect: sandboxExpect{Exit: &code, WithinS: 6, Left: &left, StderrHas: []string{"takes no signals"}},
		})
	})
}
