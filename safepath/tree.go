package safepath

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

const (
	// maxDepth is how deep Walk goes: each folder on the way is held open.
	maxDepth = 200
	// maxQueued is how many links Walk looks at.
	maxQueued = 10000
)

// Entry is a file or a folder that Walk came to.
type Entry struct {
	// Path is how it is shown: relative to Cwd, or absolute outside it.
	Path string
	// Below is Path from where the walk started; empty for that itself.
	Below string
	// Real is its path without links.
	Real string
	// Again says that it was come to by a link and is, or was, come to by its
	// own name too.
	Again bool
	Info  fs.FileInfo

	at place
}

// Open opens the regular file for reading. It is to be called in visit only.
func (e Entry) Open() (*File, error) {
	file, info, err := e.at.open(os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("reading %w", err)
	}
	return &File{file, e.Real, info}, nil
}

// Walk visits the folders and regular files below start, or start alone where
// it is a file: by name in each folder, links last. Each folder is walked once.
// A name that skip is true for is left out with what is below it; a link that
// leaves what is granted, or leads to nothing, is left out too. What could not
// be read, or is too deep, is counted in missed. visit ends the walk with an
// error, without one with [fs.SkipAll], and keeps it out of a folder with
// [fs.SkipDir].
func (f *FS) Walk(ctx context.Context, start string, skip func(name string) bool, visit func(Entry) error) (missed int, err error) {
	t := &tree{ctx: ctx, fs: f, skip: skip, visit: visit}
	var found place
	err = f.at(start, options{}, func(p place) error {
		switch {
		case p.info == nil:
			return f.absent(p)
		case p.info.IsDir():
			found = p
			sub, err := p.sub()
			if err != nil {
				return err
			}
			found.dir = sub
			return nil
		}
		if err := f.readable(p); err != nil {
			return err
		}
		return over(visit(Entry{Path: f.shownAs(start, p.real), Real: p.real, Info: p.info, at: p}))
	})
	if err == nil && found.dir != nil {
		t.walked, t.shown = []string{found.real}, f.shownAs(start, found.real)
		err = errors.Join(t.folder(found.dir, found.real, t.shown, found.access, 0), found.dir.Close())
		if err == nil {
			err = t.follow()
		}
	}
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	if err != nil {
		return t.missed, fmt.Errorf("searching %w", err)
	}
	return t.missed, nil
}

// shownAs is how the start of a walk is shown: as it was written where that is
// a plain relative path, so that what is found below a link bears its name.
func (f *FS) shownAs(start, real string) string {
	if strings.HasPrefix(start, "/") || slices.Contains(strings.Split(start, "/"), "..") {
		return f.Rel(real)
	}
	return path.Clean(start)
}

type tree struct {
	ctx    context.Context
	fs     *FS
	skip   func(string) bool
	visit  func(Entry) error
	shown  string // how the start is shown
	links  []Entry
	walked []string // real paths of folders that were walked from
	missed int
}

func (t *tree) folder(root *os.Root, real, shown string, access Access, depth int) error {
	names, err := list(root)
	if err != nil {
		t.missed++
		return nil
	}
	for _, name := range names {
		if err := t.ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", shown, err)
		}
		p := place{dir: root, name: name, real: join(real, name)}
		p.path = name
		if shown != "." {
			p.path = join(shown, name)
		}
		p.access = t.fs.table.below(access, p.real)
		if t.fs.unconfined {
			p.access = Write
		} else if !t.fs.table.seen(p.access, p.real) {
			continue
		}
		if t.skip(name) {
			continue
		}
		if err := t.one(p, depth); err != nil {
			return err
		}
	}
	return nil
}

// one visits what p names.
func (t *tree) one(p place, depth int) error {
	var err error
	p.info, err = p.dir.Lstat(p.name)
	if err != nil {
		return nil // gone meanwhile
	}
	e := Entry{Path: p.path, Below: t.below(p.path), Real: p.real, Info: p.info, at: p}
	switch {
	case p.info.Mode()&fs.ModeSymlink != 0:
		if p.access >= Read && len(t.links) < maxQueued {
			t.links = append(t.links, e)
		}
		return nil
	case p.info.Mode().IsRegular() && p.access >= Read:
		return over(t.visit(e))
	case !p.info.IsDir() || slices.Contains(t.walked, p.real):
		return nil
	}
	if err := t.visit(e); errors.Is(err, fs.SkipDir) {
		return nil
	} else if err != nil {
		return err
	}
	if depth == maxDepth {
		t.missed++
		return nil
	}
	sub, err := p.sub()
	if err != nil {
		t.missed++
		return nil
	}
	return errors.Join(t.folder(sub, p.real, p.path, p.access, depth+1), sub.Close())
}

// follow visits what the links lead to, those too that are met on the way.
func (t *tree) follow() error {
	for i := 0; i < len(t.links); i++ {
		link := t.links[i]
		var sub *os.Root
		var to place
		stop := error(nil)
		err := t.fs.at(link.Real, options{}, func(p place) error {
			if p.info == nil || p.access < Read || t.skipped(p.real) {
				return nil
			}
			to = p
			e := Entry{Path: link.Path, Below: link.Below, Real: p.real, Info: p.info, at: p, Again: t.covers(p.real)}
			if p.info.Mode().IsRegular() || p.info.IsDir() {
				stop = t.visit(e)
			}
			if errors.Is(stop, fs.SkipDir) {
				stop = nil
				return nil
			}
			if stop != nil || !p.info.IsDir() || e.Again {
				return nil
			}
			var err error
			sub, err = p.sub()
			return err
		})
		switch {
		case stop != nil:
			return stop
		case err == nil && sub != nil:
			t.walked = append(t.walked, to.real)
			if err := errors.Join(t.folder(sub, to.real, link.Path, to.access, 0), sub.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// over is what a visit of a file ended with.
func over(err error) error {
	if errors.Is(err, fs.SkipDir) { // it is no folder
		return nil
	}
	return err
}

func (t *tree) below(path string) string {
	if t.shown == "." {
		return path
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, t.shown), "/")
}

func (t *tree) covers(real string) bool {
	return slices.ContainsFunc(t.walked, func(w string) bool { _, ok := within(real, w); return ok })
}

// skipped says that a real path has a name in it that is left out.
func (t *tree) skipped(real string) bool {
	rest, ok := within(real, cmp.Or(t.walked[0], "/"))
	if !ok {
		rest = t.fs.Rel(real)
	}
	return slices.ContainsFunc(strings.Split(rest, "/"), t.skip)
}

// list is the names in a folder, in order.
func list(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, dir.Close())
}
