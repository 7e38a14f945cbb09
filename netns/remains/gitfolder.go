package remains

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	gitFolders = 4096    // folders of one git folder that are looked at
	gitText    = 1 << 20 // bytes of a file of settings, at most
)

// gitTree is what of a git folder runs or says what runs, by its path in it.
type gitTree map[string]identity

// gitAt looks at a git folder.
func gitAt(dir *os.File) gitTree {
	t, left := gitTree{}, gitFolders
	t.folder(dir, "", &left)
	return t
}

// folder looks at one folder that has settings of its own: a repository's, a
// worktree's or a submodule's.
func (t gitTree) folder(dir *os.File, rel string, left *int) {
	for _, name := range []string{"config", "config.worktree", "commondir"} {
		t.file(dir, rel, name)
	}
	t.in(dir, rel, "info", "attributes")
	if objects, err := openFolder(dir, "objects"); err == nil {
		t.in(objects, rel+"objects/", "info", "alternates")
		_ = objects.Close()
	}
	// A rebase goes on with commands from its list.
	for _, name := range []string{"rebase-merge", "rebase-apply", "sequencer"} {
		if id, ok := identityAt(dir, name); ok {
			t[rel+name] = identity{mode: id.mode} // it is git's to change
		}
	}
	t.hooks(dir, rel)
	t.below(dir, rel, "worktrees", left, func(d *os.File, at string) { t.folder(d, at, left) })
	t.below(dir, rel, "modules", left, func(d *os.File, at string) { t.module(d, at, left) })
}

func (t gitTree) file(dir *os.File, rel, name string) {
	if id, ok := identityAt(dir, name); ok {
		t[rel+name] = id
	}
}

func (t gitTree) in(dir *os.File, rel, folder, name string) {
	id, ok := identityAt(dir, folder)
	if !ok {
		return
	}
	if id.kind() != unix.S_IFDIR {
		t[rel+folder] = id
		return
	}
	if d, err := openFolder(dir, folder); err == nil {
		t.file(d, rel+folder+"/", name)
		_ = d.Close()
	}
}

// hooks looks at the hooks but for the samples, which git does not run.
func (t gitTree) hooks(dir *os.File, rel string) {
	id, ok := identityAt(dir, "hooks")
	if !ok {
		return
	}
	if id.kind() != unix.S_IFDIR {
		t[rel+"hooks"] = id
		return
	}
	d, err := openFolder(dir, "hooks")
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }()
	entries, _ := d.ReadDir(treeMost)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".sample") {
			t.file(d, rel+"hooks/", e.Name())
		}
	}
}

// module looks at a submodule's folder, or further down where its name has more
// than one part.
func (t gitTree) module(dir *os.File, rel string, left *int) {
	for _, name := range []string{"config", "HEAD", "commondir"} {
		if _, ok := identityAt(dir, name); ok {
			t.folder(dir, rel, left)
			return
		}
	}
	t.entries(dir, rel, left, func(d *os.File, at string) { t.module(d, at, left) })
}

func (t gitTree) below(dir *os.File, rel, name string, left *int, do func(*os.File, string)) {
	id, ok := identityAt(dir, name)
	if !ok {
		return
	}
	d, err := openFolder(dir, name)
	if err != nil { // a link, or closed: whatever it is, it is named if that changes
		t[rel+name] = id
		return
	}
	defer func() { _ = d.Close() }()
	t.entries(d, rel+name+"/", left, do)
}

func (t gitTree) entries(dir *os.File, rel string, left *int, do func(*os.File, string)) {
	entries, _ := dir.ReadDir(max(*left, 1))
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if *left--; *left < 0 {
			return
		}
		if d, err := openFolder(dir, e.Name()); err == nil {
			t[rel+e.Name()] = identity{mode: unix.S_IFDIR}
			do(d, rel+e.Name()+"/")
			_ = d.Close()
		}
	}
}
