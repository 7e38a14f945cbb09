package policy_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/egressd/egressd/policy"
)

// watched runs a Watcher over a file and hands its changes over.
func watched(t *testing.T, file string, byDemand bool) (*policy.Watcher, <-chan policy.Change) {
	t.Helper()
	changes := make(chan policy.Change, 16)
	read := func() (*policy.Policy, policy.Problems, error) {
		data, err := policy.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		p, problems := policy.Load(file, data, policy.Options{ReadFile: policy.ReadFile})
		return p, problems, nil
	}
	current, _, _ := read()
	w := &policy.Watcher{Path: file, Read: read, Current: current, ByDemand: byDemand, Settle: 20 * time.Millisecond,
		Take: func(c policy.Change) error {
			changes <- c
			if c.Policy == nil {
				return errors.New("refused")
			}
			return nil
		}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := w.Reload(context.Background()); !errors.Is(err, policy.ErrEnded) {
			t.Errorf("a reload after the end: %v", err)
		}
	})
	// A reload is answered once Run runs, so the watch stands behind it.
	check(t, w.Reload(t.Context()))
	<-changes
	return w, changes
}

func next(t *testing.T, changes <-chan policy.Change) policy.Change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(5 * time.Second):
		t.Fatal("no change was told")
	}
	return policy.Change{}
}

func quiet(t *testing.T, changes <-chan policy.Change) {
	t.Helper()
	select {
	case c := <-changes:
		t.Errorf("told %+v", c)
	case <-time.After(150 * time.Millisecond):
	}
}

// A file that is written in place, renamed over, made a link, gone and back is
// read again; one that only was touched, or another in its folder, is not.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "egressd.yaml")
	write := func(path, text string) { check(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(file, "audit: {keep: 1}\n")
	_, changes := watched(t, file, false)

	write(file, "audit: {keep: 2}\n")
	if c := next(t, changes); c.Policy == nil || c.Policy.Audit.Keep != 2 || c.Demanded {
		t.Errorf("written in place: %+v", c)
	}
	write(file+".new", "audit: {keep: 3}\n")
	quiet(t, changes)
	check(t, os.Rename(file+".new", file))
	if c := next(t, changes); c.Policy == nil || c.Policy.Audit.Keep != 3 {
		t.Errorf("renamed over: %+v", c)
	}
	write(file, "audit: {keep: 3}\n")
	quiet(t, changes)
	write(file, "audit: {keep: x}\n")
	if c := next(t, changes); c.Policy != nil || len(c.Problems) != 1 {
		t.Errorf("with an error: %+v", c)
	}
	check(t, os.Remove(file))
	if c := next(t, changes); c.Policy != nil || c.Err == nil {
		t.Errorf("gone: %+v", c)
	}
	write(filepath.Join(dir, "real"), "audit: {keep: 4}\n")
	check(t, os.Symlink("real", file))
	if c := next(t, changes); c.Policy == nil || c.Policy.Audit.Keep != 4 {
		t.Errorf("a link: %+v", c)
	}
	write(filepath.Join(dir, "real"), "audit: {keep: 5}\n")
	if c := next(t, changes); c.Policy == nil || c.Policy.Audit.Keep != 5 {
		t.Errorf("behind the link: %+v", c)
	}
}

// Half of a file is not read: it may be a good policy without its deny rules.
func TestWatchWaitsForTheWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "egressd.yaml")
	check(t, os.WriteFile(file, []byte("sandbox: {egress_rules: []}\n"), 0o600))
	_, changes := watched(t, file, false)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	check(t, err)
	_, err = f.WriteString("sandbox:\n  egress_rules:\n    - GET a.test/**\n")
	check(t, err)
	quiet(t, changes)
	_, err = f.WriteString("    - \"!* a.test/x\"\n")
	check(t, err)
	check(t, f.Close())
	if c := next(t, changes); c.Policy == nil || len(c.Policy.Rules) != 2 {
		t.Errorf("%+v", c)
	}
}

// An included file is watched as well, also one in another folder that is
// named only later.
func TestWatchIncludes(t *testing.T) {
	dir, sub := t.TempDir(), t.TempDir()
	file, base := filepath.Join(dir, "egressd.yaml"), filepath.Join(sub, "base.yaml")
	check(t, os.WriteFile(base, []byte("sandbox: {egress_rules: []}\n"), 0o600))
	check(t, os.WriteFile(file, nil, 0o600))
	_, changes := watched(t, file, false)
	check(t, os.WriteFile(file, []byte("include: ["+base+"]\n"), 0o600))
	next(t, changes)
	check(t, os.WriteFile(base, []byte("sandbox: {egress_rules: [GET a.test]}\n"), 0o600))
	if c := next(t, changes); c.Policy == nil || len(c.Policy.Rules) != 1 {
		t.Errorf("%+v", c)
	}
}

// By demand only: a change waits for Reload, whose error is Take's.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "egressd.yaml")
	check(t, os.WriteFile(file, []byte("audit: {keep: 1}\n"), 0o600))
	w, changes := watched(t, file, true)
	check(t, os.WriteFile(file, []byte("audit: {keep: 2}\n"), 0o600))
	quiet(t, changes)
	check(t, w.Reload(t.Context()))
	if c := next(t, changes); c.Policy == nil || c.Policy.Audit.Keep != 2 || !c.Demanded {
		t.Errorf("%+v", c)
	}
	check(t, os.WriteFile(file, []byte("audit: {keep: x}\n"), 0o600))
	if err := w.Reload(t.Context()); err == nil {
		t.Error("a bad policy was taken")
	}
	<-changes
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Reload(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
