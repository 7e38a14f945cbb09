package remains

import (
	"os"
	"path/filepath"
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

// A Mention is a path that git's settings name.
type Mention struct {
	Path string // absolute; it need not exist
	Key  string // the setting: core.hookspath, include.path and so on
}

// Include says that git takes settings from there.
func (m Mention) Include() bool { return m.Key == "include.path" || m.Key == "includeif.path" }

const (
	mentions = 128 // of one repository
	included = 16  // files of settings that are read for one
)

// Mentioned are the files and folders that the settings of a git folder name:
// what they include, the folder of its hooks, and files beside the repository
// that a command in them begins with. More settings are those of the user and of
// the system, which count for every repository.
func Mentioned(git string, more []string, home string) []Mention {
	tree := git
	if filepath.Base(git) == ".git" {
		tree = filepath.Dir(git)
	}
	m := &mentioning{tree: tree, home: home}
	for _, file := range more {
		m.file(file, filepath.Dir(file))
	}
	for _, name := range []string{"config", "config.worktree"} {
		m.file(filepath.Join(git, name), git)
	}
	return m.found
}

type mentioning struct {
	tree, home string
	read       int
	found      []Mention
}

func (m *mentioning) file(path, folder string) {
	if m.read++; m.read > included {
		return
	}
	// Not os.Open, which waits for ever where a pipe lies.
	dir, err := os.OpenFile(folder, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	text, _, err := read(dir, filepath.Base(path), gitText)
	if err != nil {
		return
	}
	for _, s := range settings(string(text)) {
		key := s.section + "." + s.key
		switch {
		case key == "include.path" || key == "includeif.path":
			if at := m.path(s.value, folder); m.add(at, key) {
				m.file(at, filepath.Dir(at))
			}
		case key == "core.hookspath" || key == "core.attributesfile":
			m.add(m.path(s.value, m.tree), key)
		case s.section != "remote" && s.section != "branch" && s.section != "url" && s.section != "user":
			for word := range strings.FieldsSeq(strings.TrimPrefix(s.value, "!")) {
				at := m.path(strings.Trim(word, `"'`), m.tree)
				if st, err := os.Lstat(at); err == nil && !st.IsDir() {
					m.add(at, key)
				}
			}
		}
	}
}

func (m *mentioning) path(value, folder string) string {
	switch {
	case value == "~" || strings.HasPrefix(value, "~/"):
		return filepath.Join(m.home, value[1:])
	case filepath.IsAbs(value):
		return filepath.Clean(value)
	}
	return filepath.Join(folder, value)
}

func (m *mentioning) add(path, key string) bool {
	if len(m.found) >= mentions {
		return false
	}
	m.found = append(m.found, Mention{path, key})
	return true
}
