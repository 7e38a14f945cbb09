package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/netns/remains"
)

const (
	leftLines   = 20              // named on stderr
	leftRecords = 1000            // named in the record
	leftTime    = 5 * time.Second // of looking, at most
)

// watchFor has what counts at the end of the run looked at, beside the rest of
// the start: it must be known before the program runs.
func (r *runner) watchFor(git []string) {
	c := remains.Config{
		Named: r.found.Named, Git: git, Writable: r.leavesIn(), Settings: gitSettings(r.src.dirs.home), Home: r.src.dirs.home,
	}
	for _, g := range r.reach() {
		if g.Write && !r.forked(g.Path) {
			c.Roots = append(c.Roots, g.Path)
		}
	}
	if len(c.Roots) == 0 {
		return
	}
	for _, f := range r.found.Folders {
		if r.canWrite(f.Path) {
			c.Folders = append(c.Folders, remains.Folder(f))
		}
	}
	r.watch = sync.OnceValue(func() *remains.Watch { return remains.New(c) })
	go r.watch()
}

// leavesIn says whether the sandbox could leave something at a path: it can
// write there, and it is not hidden.
func (r *runner) leavesIn() func(path string) bool {
	masked := map[string]bool{}
	for _, list := range [][]string{r.found.Hidden, r.masks, hidden(r.src.dirs, r.src.dirs.home)} {
		for _, path := range list {
			masked[path] = true
		}
	}
	for _, g := range r.grants {
		if !g.Write {
			continue
		}
		entries, err := os.ReadDir(g.Path)
		if err != nil {
			continue // a file
		}
		for _, e := range entries { // what is hidden at the top of a grant: what is there now
			if e.Name()[0] == '.' && !slices.Contains(r.policy.Sandbox.AllowHidden, e.Name()) {
				masked[filepath.Join(g.Path, e.Name())] = true
			}
		}
	}
	return func(path string) bool {
		if !r.canWrite(path) {
			return false
		}
		for at := path; !r.granted(at) && at != "/"; at = filepath.Dir(at) {
			if masked[at] {
				return false
			}
		}
		return true
	}
}

// leftBehind names what the sandbox has left in the folders that it could write
// and that could run on this host, on stderr and in the record.
func (r *runner) leftBehind(ctx context.Context) {
	if r.watch == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leftTime)
	defer cancel()
	limits := remains.Limits{Entries: r.policy.Sandbox.ScanMaxEntries, Unlooked: map[string]bool{}}
	if r.policy.Sandbox.ScanOverflow == "unlimited" {
		limits.Entries = 0
	}
	for _, path := range slices.Concat(r.found.Unreached, r.found.Closed) {
		limits.Unlooked[path] = true
	}
	report := r.watch().Look(ctx, limits)
	said := 0
	for i, f := range report.Findings {
		if i < leftRecords {
			r.recordLeft(audit.Record{Path: f.Path})
		}
		if f.Rank == remains.Named && r.flags.quiet {
			continue
		}
		if said++; said <= leftLines {
			fmt.Fprintln(os.Stderr, "egressd: left behind: "+plainText(oneLine(r.shortened(f.Path))+": "+oneLine(f.What)))
		}
	}
	if said > leftLines {
		fmt.Fprintf(os.Stderr, "egressd: left behind: %d more; see egressd audit list --session %s\n", said-leftLines, r.sess.id)
	}
	if len(report.Unlooked) > 0 {
		r.recordLeft(audit.Record{Argv: append([]string{"not looked at"}, report.Unlooked...)})
		fmt.Fprintln(os.Stderr, "egressd: what was left in these folders was not looked at, or not all of it: "+plainText(someOf(report.Unlooked)))
	}
}

func (r *runner) recordLeft(record audit.Record) {
	record.Kind = audit.KindLeftBehind
	if err := r.sess.log.Append(&record); err != nil {
		r.sess.logger.Warn("recording what was left behind", "err", err)
	}
}

// shortened is a path as seen from the working folder, where it lies in it.
func (r *runner) shortened(path string) string {
	if rel, err := filepath.Rel(r.cwd, path); err == nil && within(path, r.cwd) {
		return rel
	}
	return path
}
