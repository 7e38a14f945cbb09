package remains

import (
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	gitFolders = 4096    // folders of one git folder that are looked at
	gitText    = 1 << 20 // bytes of a file of settings, at most
)

// gitTree is what of a git folder runs or says what runs, by its path in it.
type gitTree map[string]identity

// gitBound is what of the bound is left, and whether it was hit.
type gitBound struct {
	left int
	hit  bool
}

// gitAt looks at a git folder. whole is false where it holds more than is looked
// at.
func gitAt(d dir) (t gitTree, whole bool) {
	t = gitTree{}
	b := gitBound{left: gitFolders}
	t.folder(d, "", &b)
	return t, !b.hit
}

// folder looks at one folder that has settings of its own: a repository's, a
// worktree's or a submodule's.
func (t gitTree) folder(d dir, rel string, b *gitBound) {
	for _, name := range []string{"config", "config.worktree", "commondir"} {
		t.file(d, rel, name)
	}
	t.in(d, rel, "info", "attributes")
	if objects, err := d.folder("objects"); err == nil {
		t.in(objects, rel+"objects/", "info", "alternates")
		objects.close()
	}
	// A rebase goes on with commands from its list.
	for _, name := range []string{"rebase-merge", "rebase-apply", "sequencer"} {
		if id, ok := d.at(name); ok {
			t[rel+name] = identity{mode: id.mode} // it is git's to change
		}
	}
	t.hooks(d, rel, b)
	t.below(d, rel, "worktrees", b, func(d dir, at string) { t.folder(d, at, b) })
	t.below(d, rel, "modules", b, func(d dir, at string) { t.module(d, at, b) })
}

func (t gitTree) file(d dir, rel, name string) {
	if id, ok := d.at(name); ok {
		t[rel+name] = id
	}
}

func (t gitTree) in(d dir, rel, folder, name string) {
	id, ok := d.at(folder)
	if !ok {
		return
	}
	if id.kind() != unix.S_IFDIR {
		t[rel+folder] = id
		return
	}
	if d, err := d.folder(folder); err == nil {
		t.file(d, rel+folder+"/", name)
		d.close()
	}
}

// hooks looks at the hooks but for the samples, which git does not run.
func (t gitTree) hooks(d dir, rel string, b *gitBound) {
	id, ok := d.at("hooks")
	if !ok {
		return
	}
	if id.kind() != unix.S_IFDIR {
		t[rel+"hooks"] = id
		return
	}
	hooks, err := d.folder("hooks")
	if err != nil {
		b.hit = true
		return
	}
	defer hooks.close()
	whole := hooks.list(treeMost, func(e fs.DirEntry) {
		if !strings.HasSuffix(e.Name(), ".sample") {
			t.file(hooks, rel+"hooks/", e.Name())
		}
	})
	b.hit = b.hit || !whole
}

// module looks at a submodule's folder, or further down where its name has more
// than one part.
func (t gitTree) module(d dir, rel string, b *gitBound) {
	for _, name := range []string{"config", "HEAD", "commondir"} {
		if _, ok := d.at(name); ok {
			t.folder(d, rel, b)
			return
		}
	}
	t.entries(d, rel, b, func(d dir, at string) { t.module(d, at, b) })
}

func (t gitTree) below(d dir, rel, name string, b *gitBound, do func(dir, string)) {
	id, ok := d.at(name)
	if !ok {
		return
	}
	in, err := d.folder(name)
	if err != nil { // a link, or closed: whatever it is, it is named if that changes
		t[rel+name] = id
		return
	}
	defer in.close()
	t.entries(in, rel+name+"/", b, do)
}

func (t gitTree) entries(d dir, rel string, b *gitBound, do func(dir, string)) {
	whole := d.list(gitFolders, func(e fs.DirEntry) {
		if !e.IsDir() {
			return
		}
		if b.left--; b.left < 0 {
			b.hit = true
			return
		}
		if in, err := d.folder(e.Name()); err == nil {
			t[rel+e.Name()] = identity{mode: unix.S_IFDIR}
			do(in, rel+e.Name()+"/")
			in.close()
		}
	})
	b.hit = b.hit || !whole
}
