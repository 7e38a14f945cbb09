package shell

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

// fake is an executor that does as it is told.
type fake struct {
	starts, execs, ends atomic.Int32
	start               func(context.Context) error
	exec                func(context.Context, Command) (Result, error)
	end                 error
}

func (f *fake) Start(ctx context.Context) error {
	f.starts.Add(1)
	if f.start != nil {
		return f.start(ctx)
	}
	return nil
}

func (f *fake) Exec(ctx context.Context, cmd Command) (Result, error) {
	f.execs.Add(1)
	if f.exec != nil {
		return f.exec(ctx, cmd)
	}
	return Result{Stdout: []byte("ok"), Isolator: "fake"}, nil
}

func (f *fake) Dispose(context.Context) error {
	f.ends.Add(1)
	return f.end
}

func (f *fake) counts(t *testing.T, starts, execs, ends int32) {
	t.Helper()
	if f.starts.Load() != starts || f.execs.Load() != execs || f.ends.Load() != ends {
		t.Errorf("%d starts, %d commands, %d ends, want %d, %d, %d", f.starts.Load(), f.execs.Load(), f.ends.Load(), starts, execs, ends)
	}
}

// The executor is started before the first command that may run, once, and
// disposed of once.
func TestSession(t *testing.T) {
	f := &fake{exec: func(_ context.Context, cmd Command) (Result, error) {
		if cmd.Timeout != DefaultTimeout {
			t.Errorf("timeout %v", cmd.Timeout)
		}
		return Result{}, nil
	}}
	s := &Session{Executor: f}
	if _, err := s.Exec(t.Context(), Command{}); err == nil {
		t.Error("an empty command ran")
	}
	f.counts(t, 0, 0, 0)
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			if _, err := s.Exec(t.Context(), Command{Script: "x"}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	f.counts(t, 1, 10, 0)
	for range 3 {
		if err := s.Dispose(t.Context()); err != nil {
			t.Error(err)
		}
	}
	f.counts(t, 1, 10, 1)
	if _, err := s.Exec(t.Context(), Command{Script: "x"}); !errors.Is(err, ErrDisposed) {
		t.Error(err)
	}
	if err := s.Start(t.Context()); !errors.Is(err, ErrDisposed) {
		t.Error(err)
	}
	f.counts(t, 1, 10, 1)
}

func TestFailedStart(t *testing.T) {
	no, end := errors.New("no_sandbox_available"), errors.New("end")
	f := &fake{start: func(context.Context) error { return no }, end: end}
	s := &Session{Executor: f}
	for range 2 {
		if _, err := s.Exec(t.Context(), Command{Script: "x"}); !errors.Is(err, no) {
			t.Error(err)
		}
	}
	f.counts(t, 1, 0, 0)
	for range 2 {
		if err := s.Dispose(t.Context()); !errors.Is(err, end) {
			t.Error(err)
		}
	}
	f.counts(t, 1, 0, 1)
	never := &fake{}
	if err := (&Session{Executor: never}).Dispose(t.Context()); err != nil {
		t.Error(err)
	}
	never.counts(t, 0, 0, 1)
}

// Who stops waiting for a start does not stop it for the others.
func TestSlowStart(t *testing.T) {
	ready := make(chan struct{})
	f := &fake{start: func(ctx context.Context) error {
		select {
		case <-ready:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	s := &Session{Executor: f}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := s.Exec(ctx, Command{Script: "x"}); err != nil || r.ExitCode != ExitCancelled {
		t.Error(r, err)
	}
	close(ready)
	if r, err := s.Exec(t.Context(), Command{Script: "x"}); err != nil || string(r.Stdout) != "ok" {
		t.Error(r, err)
	}
	f.counts(t, 1, 1, 0)
	hangs := &Session{Executor: &fake{start: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}}
	go func() { _ = hangs.Start(t.Context()) }()
	time.Sleep(10 * time.Millisecond)
	if err := hangs.Dispose(t.Context()); err != nil {
		t.Error(err)
	}
}

// An executor that ignores its time, or the end of the caller, holds nobody up.
func TestBackstop(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	f := &fake{exec: func(context.Context, Command) (Result, error) { <-stuck; return Result{}, nil }}
	s := &Session{Executor: f, Grace: 20 * time.Millisecond}
	begin := time.Now()
	if r, err := s.Exec(t.Context(), Command{Script: "x", Timeout: 30 * time.Millisecond}); err != nil || r.ExitCode != ExitTimeout {
		t.Error(r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if r, err := s.Exec(ctx, Command{Script: "x"}); err != nil || r.ExitCode != ExitCancelled {
		t.Error(r, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if r, err := s.Exec(ctx, Command{Script: "x"}); err != nil || r.ExitCode != ExitTimeout {
		t.Error(r, err)
	}
	if err := s.Dispose(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	f.counts(t, 1, 3, 1)
}

// What an executor says of the end of a command becomes an exit code, and its
// output is kept and bounded.
func TestForeign(t *testing.T) {
	f := &fake{exec: func(ctx context.Context, _ Command) (Result, error) {
		<-ctx.Done()
		return Result{Stdout: []byte(strings.Repeat("é", MaxOutput)), Stderr: []byte("kept")}, ctx.Err()
	}}
	r, err := (&Session{Executor: f}).Exec(t.Context(), Command{Script: "x", Timeout: 20 * time.Millisecond})
	if err != nil || r.ExitCode != ExitTimeout || len(r.Stdout) != MaxOutput || !r.StdoutCut || r.StderrCut || string(r.Stderr) != "kept" || !utf8.Valid(r.Stdout) {
		t.Errorf("%d %d %v", r.ExitCode, len(r.Stdout), err)
	}
	lost := errors.New("connection lost")
	f.exec = func(context.Context, Command) (Result, error) { return Result{}, lost }
	if _, err := (&Session{Executor: f}).Exec(t.Context(), Command{Script: "x"}); !errors.Is(err, lost) {
		t.Error(err)
	}
}

// Dispose ends what runs.
func TestDisposeRunning(t *testing.T) {
	s := &Session{Executor: &Local{Cwd: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}, Warn: func(string) {}}}
	disposed := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { disposed <- s.Dispose(t.Context()) })
	if r, err := s.Exec(t.Context(), Command{Script: "echo kept; sleep 60"}); err != nil || r.ExitCode != ExitCancelled || string(r.Stdout) != "kept\n" {
		t.Error(r, err)
	}
	if err := <-disposed; err != nil {
		t.Error(err)
	}
}

func TestShare(t *testing.T) {
	f := &fake{}
	share := NewShare(f)
	a, b, c := share.Use(), share.Use(), share.Use()
	for _, u := range []Executor{a, b, a} {
		if _, err := u.Exec(t.Context(), Command{Script: "x"}); err != nil {
			t.Error(err)
		}
		if err := u.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}
	f.counts(t, 1, 3, 0)
	for _, u := range []Executor{a, a, a, b} {
		if err := u.Dispose(t.Context()); err != nil {
			t.Error(err)
		}
	}
	f.counts(t, 1, 3, 0)
	if _, err := a.Exec(t.Context(), Command{Script: "x"}); !errors.Is(err, ErrDisposed) {
		t.Error(err)
	}
	if err := a.Start(t.Context()); !errors.Is(err, ErrDisposed) {
		t.Error(err)
	}
	if _, err := c.Exec(t.Context(), Command{Script: "x"}); err != nil {
		t.Error(err)
	}
	if err := c.Dispose(t.Context()); err != nil {
		t.Error(err)
	}
	f.counts(t, 1, 4, 1)
	late := share.Use()
	if err := late.Start(t.Context()); !errors.Is(err, ErrDisposed) {
		t.Error(err)
	}
	if err := late.Dispose(t.Context()); err != nil {
		t.Error(err)
	}
	f.counts(t, 1, 4, 1)
}

func FuzzWhole(f *testing.F) {
	for _, seed := range []string{"", "a", "é", "é\xc3", "\xf0\x9f\x98", "\xff\xff\xff\xff\xff", "\x80\x80\x80\x80", "a\xe2\x82"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := Whole(b)
		if !bytes.HasPrefix(b, got) || len(b)-len(got) > utf8.UTFMax-1 {
			t.Fatalf("%q became %q", b, got)
		}
		// A cut anywhere in good text is good text.
		text := []byte(strings.ToValidUTF8(string(b), "é"))
		for n := range text {
			if !utf8.Valid(Whole(text[:n])) {
				t.Fatalf("%q cut at %d", text, n)
			}
		}
	})
}
