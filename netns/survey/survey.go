// Package survey looks through granted folders, before anything is mounted,
// for what must not be left to chance below them: dot names to hide, git
// folders to hold, sockets to mask.
//
// [Walk] goes level by level, so that a bound cuts off what lies deep and not
// what comes late, and what it finds under a bound is the same each time. It
// follows no link, and no swap of a folder for a link leads it out of its root:
// every folder is opened from the root's descriptor. Links and files are never
// opened.
package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Config is what a walk looks for, and where. Paths are absolute, clean and
// without links.
type Config struct {
	Roots       []Root
	Recursive   bool     // walk every root, and list dot names at every depth
	Sockets     bool     // walk every root, whatever else is asked
	AllowHidden []string // dot names that are not hidden
	Skip        []string // paths that are hidden anyway: they are not looked into
	Names       []string // names whose places are listed in Found.Named
	MaxEntries  int      // bound of names read, for each root; 0 is none
}

// Root is one granted folder. One that lies in another is walked by itself.
type Root struct {
	Path  string
	Write bool // walked for git folders
}

// Found is what there is. All lists hold absolute paths and are sorted, but
// for Unreached.
type Found struct {
	// Hidden are the dot names that are not allowed, from the second level of a
	// root on: those at its top are always hidden. They are not looked into.
	// Empty unless Recursive.
	Hidden []string
	// Git are, in writable roots, the names .git of whatever kind, hidden or not,
	// and the folders that hold a HEAD with objects, refs, a config or a commondir
	// beside it. Whoever asked decides whether it is one.
	Git     []string
	Sockets []string // unix sockets
	Named   []string // the Names
	Folders []Folder // folders that were read to their end
	// Unreached are folders that were not read, or not to their end, because the
	// bound was hit, shallow first for each root.
	Unreached []string
	Bounded   []string // the roots in which it was hit
	// Closed are folders that we may not read, and that the sandbox, which has our
	// uid, can still get into: it may go through one to a name it knows, or give
	// itself the right to read it.
	Closed  []string
	Entries int // names read
}

// Folder is one that was read, as it was before: the kernel changes its ctime
// whenever a name in it comes, goes or is replaced.
type Folder struct {
	Path      string
	Dev, Ino  uint64
	Sec, Nsec int64 // ctime
}

// Walk looks through the roots. What vanishes while it looks is as if it had
// never been there. An error is a root that cannot be opened, or ctx's.
func Walk(ctx context.Context, c Config) (Found, error) {
	w := newWalk(ctx, c)
	for _, r := range c.Roots {
		if !r.Write && !c.Recursive && !c.Sockets {
			continue
		}
		if err := w.root(r); err != nil {
			return Found{}, fmt.Errorf("looking through %s: %w", r.Path, err)
		}
	}
	for _, list := range []*[]string{&w.found.Hidden, &w.found.Git, &w.found.Sockets, &w.found.Named} {
		slices.Sort(*list)
	}
	slices.SortFunc(w.found.Folders, func(a, b Folder) int { return strings.Compare(a.Path, b.Path) })
	return w.found, nil
}
