package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
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

// forked says whether what the sandbox does at a path is done to a copy.
func (r *runner) forked(path string) bool { return r.policy.Fork && within(path, r.cwd) }

// inFork is a list of paths and, for those in the working folder, where their
// copies are.
func (r *runner) inFork(paths []string) []string {
	if r.fork == "" {
		return paths
	}
	out := slices.Clone(paths)
	for _, p := range paths {
		if rel, err := filepath.Rel(r.cwd, p); err == nil && within(p, r.cwd) {
			out = append(out, filepath.Join(r.fork, rel))
		}
	}
	return out
}

// notCopied says which names of the working folder are left out of a copy: those
// that the program would not see there.
func (r *runner) notCopied() (func(rel string) bool, error) {
	s, home := r.policy.Sandbox, r.src.dirs.home
	hide, err := r.hidden()
	if err != nil {
		return nil, err
	}
	below := func(path string) string {
		if rel, err := filepath.Rel(r.cwd, path); err == nil && rel != "." && within(path, r.cwd) {
			return rel
		}
		return ""
	}
	n := hiddenNames{recursive: s.ScanRecursive, allowed: s.AllowHidden, masks: map[string]bool{}}
	for _, g := range r.grants {
		if rel := below(g.Path); rel != "" {
			n.grants = append(n.grants, rel)
		}
	}
	masks := slices.Concat(hidden(r.src.dirs, home), secretFiles(r.policy, home), hide.masks)
	for _, path := range masks {
		if rel := below(path); rel != "" {
			n.masks[rel] = true
		}
	}
	return n.hides, nil
}

// hiddenNames tell what is not seen in a working folder. Paths are below it.
type hiddenNames struct {
	recursive bool
	allowed   []string
	grants    []string
	masks     map[string]bool
}

// hides says whether a path is not seen, whose folders are or lead to a grant.
func (n *hiddenNames) hides(rel string) bool {
	if n.masks[rel] {
		return true
	}
	// The deepest grant that holds it decides: a dot name is hidden at its top,
	// with recursion at every depth.
	root := ""
	for _, g := range n.grants {
		if within(rel, g) && len(g) > len(root) {
			root = g
		}
	}
	if rel == root {
		return false
	}
	names := strings.Split(strings.TrimPrefix(strings.TrimPrefix(rel, root), "/"), "/")
	if !n.recursive {
		names = names[:1]
	}
	hidden := slices.ContainsFunc(names, func(name string) bool { return name[0] == '.' && !slices.Contains(n.allowed, name) })
	return hidden && !slices.ContainsFunc(n.grants, func(g string) bool { return within(g, rel) })
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
