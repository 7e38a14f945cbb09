package survey

import (
	"context"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// walk is one Walk under way.
type walk struct {
	ctx     context.Context
	config  Config
	apart   map[string]bool // not looked into: other roots, and what is hidden anyway
	allowed map[string]bool
	names   map[string]bool
	found   Found

	// Of the root under way.
	at    Root
	top   *os.File
	spent int // names committed
}

func newWalk(ctx context.Context, c Config) *walk {
	w := &walk{ctx: ctx, config: c, apart: map[string]bool{}, allowed: map[string]bool{}, names: map[string]bool{}}
	for _, r := range c.Roots {
		w.apart[r.Path] = true
	}
	for _, p := range c.Skip {
		w.apart[p] = true
	}
	for _, n := range c.AllowHidden {
		w.allowed[n] = true
	}
	for _, n := range c.Names {
		w.names[n] = true
	}
	return w
}

// root walks one root, level by level.
func (w *walk) root(r Root) error {
	top, err := openTop(r.Path)
	if err != nil {
		return err
	}
	defer func() { _ = top.Close() }()
	w.at, w.top, w.spent = r, top, 0
	level := []string{"."}
	for len(level) > 0 {
		looks := w.level(level)
		if err := w.ctx.Err(); err != nil {
			return context.Cause(w.ctx)
		}
		next, rest := w.commit(level, looks)
		if rest != nil {
			w.found.Bounded = append(w.found.Bounded, r.Path)
			for _, f := range slices.Concat(rest, next) {
				w.found.Unreached = append(w.found.Unreached, w.path(f))
			}
			return nil
		}
		level = next
	}
	return nil
}

// together is how many folders are worth a second thread: a folder takes some
// microseconds, a thread that must wake up some tens.
const together = 16

// level reads the folders of one level, with as many threads as there are
// processors, in their order: what is left out when the bound is hit is a tail.
func (w *walk) level(folders []string) []look {
	looks := make([]look, len(folders))
	var next, spent atomic.Int64
	spent.Store(int64(w.spent))
	read := func() {
		r := reader{walk: w}
		for w.ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(folders) || w.over(int(spent.Load())) {
				return
			}
			looks[i] = r.folder(folders[i])
			spent.Add(int64(looks[i].entries))
		}
	}
	threads := min(runtime.GOMAXPROCS(0), len(folders)/together)
	var wait sync.WaitGroup
	for range threads - 1 {
		wait.Go(read)
	}
	read()
	wait.Wait()
	return looks
}

// over reports whether no more may be read. The top of a root is always read
// whole, since its dot names are hidden whatever the bound.
func (w *walk) over(spent int) bool {
	return w.config.MaxEntries > 0 && spent >= w.config.MaxEntries
}

// commit takes what was read in the order of the folders, and gives the next
// level. Where the bound is hit, rest is what it cut off of this one; rest is nil
// where it is not, and there is a next level only as far as the bound goes.
func (w *walk) commit(folders []string, looks []look) (next, rest []string) {
	for i, l := range looks {
		if !l.read || w.over(w.spent) {
			return next, folders[i:]
		}
		w.spent += l.entries
		w.found.Entries += l.entries
		w.take(&l)
		next = append(next, l.folders...)
		switch path := w.path(folders[i]); {
		case l.closed:
			w.found.Closed = append(w.found.Closed, path)
		case l.whole:
			l.self.Path = path
			w.found.Folders = append(w.found.Folders, l.self)
		case l.cut:
			return next, folders[i:]
		}
	}
	if len(next) > 0 && w.over(w.spent) {
		return next, []string{}
	}
	return next, nil
}

func (w *walk) take(l *look) {
	w.found.Hidden = append(w.found.Hidden, l.hidden...)
	w.found.Git = append(w.found.Git, l.git...)
	w.found.Sockets = append(w.found.Sockets, l.sockets...)
	w.found.Named = append(w.found.Named, l.named...)
}

// path is the absolute path of what is named from the root.
func (w *walk) path(rel string) string {
	if rel == "." {
		return w.at.Path
	}
	return join(w.at.Path, rel)
}

func join(folder, name string) string {
	switch folder {
	case "/":
		return "/" + name
	case ".":
		return name
	}
	return folder + "/" + name
}
