package policy

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A change between the reading of the policy and the watch is not lost, and a
// file that somebody has open for writing then is not read.
func TestWatchSeesWhatChangedBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "egressd.yaml")
	if err := os.WriteFile(path, []byte("sandbox: {egress_rules: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if written(path) {
		t.Error("a file that nobody writes is written")
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !written(path) {
		t.Error("a file that is open for writing is not written")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	told := make(chan Change, 4)
	w := &Watcher{Path: path, Settle: 10 * time.Millisecond,
		Read: func() (*Policy, Problems, error) {
			p, problems := Load(path, []byte("sandbox: {egress_rules: [GET a.test]}\n"), Options{})
			return p, problems, nil
		},
		Take: func(c Change) error { told <- c; return nil },
	}
	w.Current, _ = Load(path, []byte("sandbox: {egress_rules: []}\n"), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	select {
	case c := <-told:
		if c.Policy == nil || len(c.Policy.Rules) != 1 {
			t.Errorf("told %+v", c)
		}
	case <-time.After(5 * time.Second):
		t.Error("nothing was told")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
