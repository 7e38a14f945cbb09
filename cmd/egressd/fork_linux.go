package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/egressd/egressd/netns/fork"
)

// forkSlow is how long a copy may take before the user is told what is going on.
const forkSlow = 2 * time.Second

// makeFork copies the working folder where the policy wants the program to work
// on a copy. The returned function removes it: call it when nothing of the
// sandbox runs any more.
func (r *runner) makeFork(ctx context.Context) (func(), error) {
	if !r.policy.Fork {
		return func() {}, nil
	}
	if r.cwd == "/" {
		return nil, errors.New("os_env.fork copies the working folder, and that is /: work in another one")
	}
	dir := r.src.dirs.forks()
	if err := r.src.dirs.own(dir); err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("finding where copies lie: %w", err)
	}
	// Until the program runs the signals are egressd's own: what is begun is
	// cleared away.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	slow := time.AfterFunc(forkSlow, func() { r.say(fmt.Sprintf("copying %s (os_env.fork)", r.cwd)) })
	defer slow.Stop()
	skip, err := r.notCopied()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	f, err := fork.Make(ctx, fork.Config{Source: r.cwd, Dir: real, Skip: skip})
	if err != nil {
		return nil, err
	}
	r.fork = f.Path
	for _, note := range f.Notes {
		r.say(note)
	}
	if r.flags.verbose {
		shared := ""
		if f.Shared {
			shared = ", blocks shared"
		}
		r.say(fmt.Sprintf("the program works on a copy of %s: %s, %d bytes in %v%s", r.cwd,
			count(int(f.Files), "file"), f.Bytes, time.Since(begin).Round(time.Millisecond), shared))
	}
	return func() {
		if err := f.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "egressd: %s; the next run tries again\n", plainText(err.Error()))
		}
	}, nil
}

// clearForks removes, beside the run, the copies of sessions that were killed.
// The returned function ends it; the next run does the rest.
func (r *runner) clearForks(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		dir := realPath(r.src.dirs.forks())
		if dir == "" {
			return
		}
		if err := fork.Clear(ctx, dir); err != nil && ctx.Err() == nil {
			r.flags.logger().Warn("removing copies that are left over", "err", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
