package remains

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Rank says how bad a finding is.
type Rank int

// From what runs by itself to what somebody must start.
const (
	Entered  Rank = iota // a repository that git status of another one goes into, or at the top of a grant
	Settings             // settings or hooks of git, a repository
	Named                // a file that some program runs by its name
)

// Finding is one thing that could run on the host.
type Finding struct {
	Path string
	Rank Rank
	What string // what is the matter with it, in words
	top  string // the outermost new folder that holds it
}

// Report is what Look found.
type Report struct {
	Findings []Finding // the worst first
	Unlooked []string  // folders that were not looked into, or not to their end
}

// Limits bound a look.
type Limits struct {
	Entries  int             // names read in folders that changed, for each root; 0 is none
	Unlooked map[string]bool // folders that were not walked at the start: left alone
}

const (
	lookDepth    = 200     // folders below each other
	folderMost   = 1 << 20 // names of one folder
	unlookedMost = 64
	findingsMost = 4096
	eachFolder   = 4 // findings that are named one by one in a folder that is new
)

// Look says what is new or changed since New. It ends early when ctx does, and
// says what was left out.
func (w *Watch) Look(ctx context.Context, limits Limits) Report {
	l := &look{Watch: w, ctx: ctx, limits: limits, done: map[string]bool{}, indexes: map[string]*index{}}
	for path := range w.gits {
		l.gitFolder(path)
	}
	for _, root := range w.config.Roots {
		l.root(root)
	}
	for path := range w.things { // in folders that were not walked
		if l.done[path] {
			continue
		}
		if d, err := openRoot(filepath.Dir(path)); err == nil {
			l.thing(d, filepath.Base(path))
			d.close()
		}
	}
	return Report{Findings: collapse(l.found), Unlooked: l.unlooked}
}

type look struct {
	*Watch
	ctx      context.Context
	limits   Limits
	found    []Finding
	unlooked []string
	done     map[string]bool // things
	indexes  map[string]*index

	// Of the root under way.
	base string
	left int
	next []fresh
}

// fresh is a folder that was not there at the start.
type fresh struct{ rel, top string }

func (l *look) tell(path string, rank Rank, what, top string) {
	if len(l.found) < findingsMost {
		l.found = append(l.found, Finding{path, rank, what, top})
	}
}

func (l *look) miss(path string) {
	if len(l.unlooked) < unlookedMost {
		l.unlooked = append(l.unlooked, path)
	}
}

// root goes through the folders that were there first, then through new ones,
// the shallow before the deep.
func (l *look) root(path string) {
	d, err := openRoot(path)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) {
		return // a file, or gone
	}
	if err != nil {
		l.miss(path)
		return
	}
	l.base, l.left, l.next = path, cmp.Or(l.limits.Entries, 1<<40), nil
	l.known(d, 0)
	for len(l.next) > 0 {
		f := l.next[0]
		l.next = l.next[1:]
		at := filepath.Join(path, f.rel)
		if l.left <= 0 || l.ctx.Err() != nil || strings.Count(f.rel, "/") > lookDepth {
			l.miss(at)
			continue
		}
		top, err := openRoot(path)
		if err == nil {
			d, err = openBelow(top, f.rel)
		}
		if err != nil {
			if !errors.Is(err, unix.ENOENT) {
				l.miss(at)
			}
			continue
		}
		l.names(d, f.top, 0)
		d.close()
	}
}

// known looks at a folder that was there, and closes it.
func (l *look) known(d dir, depth int) {
	defer d.close()
	path := d.path
	was := l.folders[path]
	if l.ctx.Err() != nil || depth > lookDepth {
		l.miss(path)
		return
	}
	now, err := d.identity()
	if err == nil && now.dev == was.Dev && now.ino == was.Ino && now.sec == was.Sec && now.nsec == was.Nsec {
		for _, name := range l.in[path] {
			l.thing(d, name)
		}
		for _, name := range l.sub[path] {
			l.child(d, name, depth)
		}
		return
	}
	l.names(d, "", depth)
}

func (l *look) child(d dir, name string, depth int) {
	next, err := d.folder(name)
	switch {
	case err == nil:
		l.known(next, depth+1)
	case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP):
		l.miss(filepath.Join(d.path, name))
	}
}

// names reads a folder that changed, or is new.
func (l *look) names(d dir, top string, depth int) {
	path := d.path
	rel := strings.TrimPrefix(strings.TrimPrefix(path, l.base), "/")
	var marks gitMarks
	var folders []string
	whole := d.list(min(l.left, folderMost), func(e fs.DirEntry) {
		l.left--
		marks.see(e.Name())
		if l.name(d, rel, e.Name(), top) && e.IsDir() {
			folders = append(folders, e.Name())
		}
	})
	if !whole {
		l.miss(path)
	}
	if _, ok := l.gits[path]; marks.repository() && !ok && !l.things[path].git {
		rank := Settings
		if slices.Contains(l.config.Roots, path) {
			rank = Entered
		}
		l.tell(path, rank, "a git repository under a name of its own: git run in it takes its settings", "")
		return
	}
	slices.Sort(folders)
	for _, name := range folders {
		at := filepath.Join(path, name)
		switch _, known := l.folders[at]; {
		case slices.Contains(l.config.Roots, at), l.limits.Unlooked[at]:
		case known:
			l.child(d, name, depth)
		case l.config.Writable(at):
			l.next = append(l.next, fresh{filepath.Join(rel, name), cmp.Or(top, at)})
		}
	}
}

// name judges one name, and says whether a folder of that name is looked into.
func (l *look) name(d dir, rel, name, top string) bool {
	path := filepath.Join(d.path, name)
	if _, known := l.gits[path]; known {
		return false
	}
	if _, known := l.things[path]; known {
		l.thing(d, name)
		return true
	}
	if isGit(name) {
		l.repository(d.path, path)
		return false
	}
	if by := names[name]; by != "" && !inStore(rel) && l.config.Writable(path) {
		rank := Named
		if by == byGit {
			rank = Settings
		}
		l.tell(path, rank, "new; "+by+" runs it, or what it names", top)
	}
	return true
}

// gitMarks are the names by which git takes a folder for a repository.
type gitMarks struct{ head, objects, refs, common bool }

func (g *gitMarks) see(name string) {
	switch name {
	case "HEAD":
		g.head = true
	case "objects":
		g.objects = true
	case "refs":
		g.refs = true
	case "commondir":
		g.common = true
	}
}

func (g *gitMarks) repository() bool { return g.head && (g.common || g.objects && g.refs) }

// thing compares a name that counts.
func (l *look) thing(d dir, name string) {
	path := filepath.Join(d.path, name)
	if l.done[path] {
		return
	}
	l.done[path] = true
	was := l.things[path]
	now, ok := d.at(name)
	rank, by := Named, was.by+" runs it, or what it names"
	if was.git || was.by == byGit {
		rank = Settings
	}
	if was.note != "" {
		by += " (" + was.note + ")"
	}
	switch {
	case !ok:
	case was.id == identity{}:
		l.tell(path, rank, "new; "+by, "")
	case now.kind() == unix.S_IFDIR && was.id.kind() == unix.S_IFDIR:
		l.tree(path, rank, by)
	case now == was.id, l.same(d, name, was.id, now):
	default:
		l.tell(path, rank, "changed; "+by, "")
	}
}

// tree compares a folder that counts with all that is in it.
func (l *look) tree(path string, rank Rank, by string) {
	before, ok := l.trees[path]
	if !ok {
		return
	}
	now, whole := treeAt(path)
	if !whole {
		l.miss(path)
	}
	for at, id := range now {
		switch was, ok := before[at]; {
		case !ok:
			l.tell(filepath.Join(path, at), rank, "new; "+by, path)
		case was != id:
			l.tell(filepath.Join(path, at), rank, "changed; "+by, path)
		}
	}
}

// gitFolder compares a git folder that was there.
func (l *look) gitFolder(path string) {
	d, err := openRoot(path)
	if err != nil {
		l.tell(path, Settings, "no folder any more: git goes elsewhere", "")
		return
	}
	defer d.close()
	before := l.gits[path]
	now, whole := gitAt(d)
	if !whole {
		l.miss(path)
	}
	fresh := map[string]bool{}
	for _, at := range sorted(now) {
		was, ok := before[at]
		if ok && was == now[at] || newAbove(fresh, at) {
			continue
		}
		what := "changed"
		if !ok {
			what, fresh[at] = "new", true
		}
		l.tell(filepath.Join(path, at), Settings, what+"; git takes its settings or what it runs from it", "")
	}
}

func sorted(t gitTree) []string {
	var list []string
	for at := range t {
		list = append(list, at)
	}
	slices.Sort(list)
	return list
}

func newAbove(fresh map[string]bool, at string) bool {
	for ; at != "."; at = filepath.Dir(at) {
		if fresh[at] {
			return true
		}
	}
	return false
}

// collapse sorts findings, the worst first and the shallow before the deep, and
// puts what lies in one new folder together where it is much.
func collapse(found []Finding) []Finding {
	slices.SortFunc(found, worse)
	found = slices.CompactFunc(found, func(a, b Finding) bool { return a.Path == b.Path })
	count := map[string]int{}
	for _, f := range found {
		if f.Rank == Named && f.top != "" {
			count[f.top]++
		}
	}
	var out []Finding
	told := map[string]bool{}
	for _, f := range found {
		n := 0
		if f.Rank == Named && f.top != "" {
			n = count[f.top]
		}
		switch {
		case n <= eachFolder:
			out = append(out, f)
		case !told[f.top]:
			told[f.top] = true
			out = append(out, Finding{Path: f.top, Rank: Named, What: "holds " + plural(n) + " that are new or changed and that a tool runs, such as " + filepath.Base(f.Path)})
		}
	}
	slices.SortStableFunc(out, worse)
	return out
}

func worse(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path), cmp.Compare(a.What, b.What))
}
