package remains

import (
	"crypto/sha256"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Folder is one that was walked at the start, as it was before its names were
// read.
type Folder struct {
	Path      string // absolute, without links
	Dev, Ino  uint64
	Sec, Nsec int64 // ctime
}

// Config is what the start knows. Paths are absolute and without links.
type Config struct {
	Roots    []string               // what the sandbox may write, files too
	Folders  []Folder               // that were walked in them
	Named    []string               // the places of Names in them
	Git      []string               // git folders in or around them that stay, and files called .git
	Writable func(path string) bool // whether the sandbox may write there
	Settings []string               // git's settings of the user and the system, for the names in them
	Home     string                 // what ~ is in git's settings
}

// Watch is how everything was at the start.
type Watch struct {
	config  Config
	folders map[string]Folder
	sub     map[string][]string // folder → names of walked folders in it
	things  map[string]thing    // by path
	in      map[string][]string // folder → names of things in it
	gits    map[string]gitTree
	sums    map[string][sha256.Size]byte
	summed  chan struct{} // closed when sums is whole
	trees   map[string]tree
}

// thing is a name that counts.
type thing struct {
	id   identity // zero: it was not there
	by   string   // who runs it
	git  bool     // it belongs to git's settings
	note string
}

// The bounds of what is remembered.
const (
	sumsMost  = 256 // contents
	treeMost  = 512 // names of one folder that counts
	treeDepth = 5
)

// New looks at what counts. Contents are read on the side, until Look is called.
func New(c Config) *Watch {
	w := &Watch{config: c, folders: make(map[string]Folder, len(c.Folders)), sub: map[string][]string{}, things: map[string]thing{},
		in: map[string][]string{}, gits: map[string]gitTree{}, trees: map[string]tree{}, sums: map[string][sha256.Size]byte{}, summed: make(chan struct{})}
	roots := map[string]bool{}
	for _, r := range c.Roots {
		roots[r] = true
	}
	git := map[string]bool{}
	for _, path := range c.Git {
		git[path] = true
	}
	for _, f := range c.Folders {
		if below(f.Path, git) {
			continue // it is compared in its own way
		}
		w.folders[f.Path] = f
		if d := filepath.Dir(f.Path); !roots[f.Path] {
			w.sub[d] = append(w.sub[d], filepath.Base(f.Path))
		}
	}
	for _, path := range c.Named {
		w.add(path, thing{by: names[filepath.Base(path)]})
	}
	for _, path := range c.Roots { // a file that is granted by itself
		if by := names[filepath.Base(path)]; by != "" && w.folders[path].Path == "" {
			w.add(path, thing{by: by})
		}
	}
	for _, path := range c.Git {
		w.git(path)
	}
	go w.sum()
	return w
}

// below says that a path is one of the folders or lies in one.
func below(path string, folders map[string]bool) bool {
	for at := path; at != "/"; at = filepath.Dir(at) {
		if folders[at] {
			return true
		}
	}
	return false
}

// add remembers how a name is now. A folder counts with all that is in it, and
// of a link what it leads to as well.
func (w *Watch) add(path string, t thing) {
	if _, ok := w.things[path]; ok {
		return
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err == nil {
		t.id = identityOf(&st)
	}
	w.things[path] = t
	w.in[filepath.Dir(path)] = append(w.in[filepath.Dir(path)], filepath.Base(path))
	switch t.id.kind() {
	case unix.S_IFDIR:
		if w.config.Writable(path) {
			w.trees[path], _ = treeAt(path)
		}
	case unix.S_IFLNK:
		if real, err := filepath.EvalSymlinks(path); err == nil && w.config.Writable(real) {
			w.add(real, thing{by: t.by, git: t.git, note: "what " + path + " leads to"})
		}
	}
}

// git remembers a git folder, or the file that stands for one, and what its
// settings name.
func (w *Watch) git(path string) {
	d, err := openRoot(path)
	if err != nil {
		w.add(path, thing{by: byGit, git: true})
		return
	}
	defer d.close()
	w.gits[path], _ = gitAt(d)
	for _, n := range Mentioned(path, w.config.Settings, w.config.Home) {
		real := n.Path
		if r, err := filepath.EvalSymlinks(n.Path); err == nil {
			real = r
		}
		if w.config.Writable(real) && filepath.Dir(real) != path {
			w.add(real, thing{by: byGit, git: true, note: n.Key + " of " + path})
		}
	}
}

// sum reads the contents of what counts, as long as it is what was seen.
func (w *Watch) sum() {
	defer close(w.summed)
	left := sumsMost
	for path, t := range w.things {
		if t.id.kind() != unix.S_IFREG || t.id.size > hashed {
			continue
		}
		if left--; left < 0 {
			return
		}
		d, err := openRoot(filepath.Dir(path))
		if err != nil {
			continue
		}
		if sum, ok := digest(d, filepath.Base(path), t.id); ok {
			w.sums[path] = sum
		}
		d.close()
	}
}

// same says that a file which changed has the bytes and the mode of before.
func (w *Watch) same(d dir, name string, before, now identity) bool {
	if before.kind() != unix.S_IFREG || now.mode != before.mode || now.size != before.size {
		return false
	}
	<-w.summed
	old, ok := w.sums[filepath.Join(d.path, name)]
	if !ok {
		return false
	}
	sum, ok := digest(d, name, now)
	return ok && sum == old
}

// tree is what a folder that counts holds, by its path in it.
type tree map[string]identity

// treeAt looks at a folder. whole is false where it holds more than is looked at.
func treeAt(path string) (t tree, whole bool) {
	d, err := openRoot(path)
	if err != nil {
		return nil, false
	}
	t, left := tree{}, treeMost
	return t, t.fill(d, "", &left, treeDepth)
}

// fill closes d.
func (t tree) fill(d dir, rel string, left *int, depth int) (whole bool) {
	defer d.close()
	if depth == 0 {
		return false
	}
	whole = true
	all := d.list(*left, func(e fs.DirEntry) {
		*left--
		at := strings.TrimPrefix(rel+"/"+e.Name(), "/")
		id, ok := d.at(e.Name())
		if !ok {
			return
		}
		if id.kind() != unix.S_IFDIR {
			t[at] = id
			return
		}
		next, err := d.folder(e.Name())
		if err != nil || !t.fill(next, at, left, depth-1) {
			whole = false
		}
	})
	return whole && all
}
