package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/netns/remains"
)

// gitParts are the files and folders of git that stay as they are where the
// sandbox could write them: a config or a hook that a program leaves there would
// run on the host.
type gitParts struct {
	list  []string // read-only
	links []string // hidden: a link cannot be read-only
	held  []string // git folders that were looked at, for the end of the run
}

// gitFolders are those of every git folder in a writable grant, at whatever
// depth, as far as the walk went. What is missing and could be made inside is
// made first. A git folder that cannot be held so is read-only as a whole.
func (r *runner) gitFolders(found []string) gitParts {
	g := gitHolding{runner: r, looked: map[string]bool{}, allowed: slices.Contains(r.policy.Sandbox.AllowHidden, ".git")}
	g.global = gitSettings(r.src.dirs.home)
	for _, grant := range r.grants { // the walk looks at folders that can be written
		if git := filepath.Join(grant.Path, ".git"); !grant.Write || r.forked(grant.Path) {
			g.see(git)
		}
	}
	for _, grant := range r.reach() {
		if r.forked(grant.Path) {
			continue // nothing of a copy comes back
		}
		if above := gitAbove(grant.Path); grant.Write && above != "" {
			g.hold(above)
		} else if grant.Write && looksLikeGit(grant.Path) {
			g.hold(grant.Path)
		}
	}
	for _, path := range found { // what lies in a folder comes after it
		g.see(path)
	}
	g.tell()
	return g.gitParts
}

// gitHolding is gitFolders under way.
type gitHolding struct {
	*runner
	gitParts
	allowed bool // .git is among the dot names that stay
	global  []string
	looked  map[string]bool
	hidden  []string // .git folders that the policy hides
	made    []string // git folders in which something was made
	what    []string // the names of that
	linked  []string // files that have another name
	failed  int
	files   int // called .git
}

// see judges a name that git may take for a repository's folder.
func (g *gitHolding) see(path string) {
	st, err := os.Lstat(path)
	if err != nil || g.inHeld(path) {
		return
	}
	folder := filepath.Dir(path)
	if filepath.Base(path) != ".git" {
		if st.IsDir() && !g.forked(path) && isRepository(path) {
			g.hold(path)
		}
		return
	}
	top := slices.ContainsFunc(g.grants, func(grant mount.Grant) bool { return grant.Path == folder })
	hidden := !g.allowed && !g.granted(path) && (top || g.policy.Sandbox.ScanRecursive)
	switch {
	case hidden:
		g.hidden, g.held = append(g.hidden, path), append(g.held, path)
	case st.Mode().IsRegular():
		if g.files++; !g.looked[path] && g.files <= 5 {
			g.gitFile(folder)
		}
		g.looked[path], g.list, g.held = true, append(g.list, path), append(g.held, path)
	case !st.IsDir():
		g.say(oneLine(path) + " is a link and hidden: git finds no repository here")
		g.links, g.held = append(g.links, path), append(g.held, path)
	case g.canWrite(path) && !g.granted(path):
		g.hold(path)
	}
}

// inHeld says that a path lies in a git folder, which holds all that is in it.
func (g *gitHolding) inHeld(path string) bool {
	if gitAbove(path) != path && gitAbove(path) != "" {
		return true
	}
	for at := filepath.Dir(path); at != "/"; at = filepath.Dir(at) {
		if g.looked[at] {
			return true
		}
	}
	return false
}

func (g *gitHolding) hold(git string) {
	if g.looked[git] {
		return
	}
	g.looked[git], g.held = true, append(g.held, git)
	h := gitHold{writable: g.canWrite, left: gitWalk}
	if err := h.main(git); err != nil {
		if g.failed++; g.failed <= 5 {
			g.say(fmt.Sprintf("%s is shown read-only, commits are made outside: %v", oneLine(git), err))
		}
		g.list = append(g.list, git)
		return
	}
	if len(h.made) > 0 {
		g.made = append(g.made, git)
		for _, name := range h.made {
			if !slices.Contains(g.what, name) {
				g.what = append(g.what, name)
			}
		}
	}
	g.linked = append(g.linked, h.linked...)
	g.list, g.links = append(g.list, h.list...), append(g.links, h.links...)
	g.includes(git)
}

// includes holds the files that the settings of a git folder include.
func (g *gitHolding) includes(git string) {
	for _, m := range remains.Mentioned(git, g.global, g.src.dirs.home) {
		st, err := os.Lstat(m.Path)
		if !m.Include() || err != nil {
			continue
		}
		real := realPath(m.Path)
		if st.Mode().IsRegular() && real != "" && g.canWrite(real) {
			g.list = append(g.list, real)
		} else if st.Mode()&os.ModeSymlink != 0 && g.canWrite(m.Path) {
			g.links = append(g.links, m.Path)
		}
	}
}

// tell says what the user would otherwise wonder about, in a few lines.
func (g *gitHolding) tell() {
	if len(g.hidden) > 0 {
		where := ".git"
		if g.hidden[0] != filepath.Join(g.cwd, ".git") {
			where = oneLine(g.hidden[0])
		}
		g.say(where + " is hidden; cwd_allow_hidden: [.git] shows it")
	}
	if g.failed > 5 {
		g.say(fmt.Sprintf("%d more git folders are shown read-only", g.failed-5))
	}
	if len(g.made) > 0 {
		g.say(fmt.Sprintf("made in %s, so that the sandbox cannot make its own: %s", someOf(g.made), someOf(g.what)))
	}
	if len(g.linked) > 0 {
		fmt.Fprintln(os.Stderr, "egressd: "+plainText("these have another name (a hard link), by which the sandbox may be able to write to what git on this host heeds: "+someOf(g.linked)))
	}
}

// gitSettings are the settings of git that count for every repository.
func gitSettings(home string) []string {
	list := []string{"/etc/gitconfig"}
	if xdg := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		list = append(list, filepath.Join(xdg, "git", "config"))
	}
	return append(list, filepath.Join(home, ".config", "git", "config"), filepath.Join(home, ".gitconfig"))
}

// granted says whether a path is a grant of its own.
func (r *runner) granted(path string) bool {
	for _, g := range r.grants {
		if g.Path == path {
			return true
		}
	}
	return false
}

// sees says whether a grant shows a path.
func (r *runner) sees(path string) bool {
	return path != "" && slices.ContainsFunc(r.grants, func(g mount.Grant) bool {
		rel, err := filepath.Rel(g.Path, path)
		if err != nil || !within(path, g.Path) {
			return false
		}
		top, _, _ := strings.Cut(rel, "/")
		return rel == "." || top[0] != '.' || slices.Contains(r.policy.Sandbox.AllowHidden, top)
	})
}

// canWrite says whether the sandbox may write below a path of the host: the most
// specific grant decides, and what it does to a copy does not count.
func (r *runner) canWrite(path string) bool {
	if r.forked(path) {
		return false
	}
	best, write := "", false
	for _, g := range r.reach() {
		if within(path, g.Path) && len(g.Path) > len(best) {
			best, write = g.Path, g.Write
		}
	}
	return write
}

// gitAbove is the outermost .git that a path is or lies in, or "".
func gitAbove(path string) string {
	at := "/"
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if at = filepath.Join(at, name); name == ".git" {
			return at
		}
	}
	return ""
}

// looksLikeGit says that a folder of another name is git's, as those that a
// worktree's .git names: by its config first, which no sandbox can take away.
func looksLikeGit(path string) bool {
	dir, err := openFolder(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	return saysGit(dir) || kindAt(dir, "HEAD") == unix.S_IFREG && (kindAt(dir, "objects") != 0 || kindAt(dir, "commondir") != 0)
}

// isRepository says that git, run in a folder of another name, takes it for a
// repository, or that its config says so.
func isRepository(path string) bool {
	dir, err := openFolder(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	return saysGit(dir) || kindAt(dir, "HEAD") != 0 && (kindAt(dir, "commondir") != 0 || kindAt(dir, "objects") != 0 && kindAt(dir, "refs") != 0)
}

func saysGit(dir *os.File) bool {
	text, err := readAt(dir, "config")
	return err == nil && strings.Contains(strings.ToLower(text), "repositoryformatversion")
}

// gitFile tells what must be granted where .git is a file, as in a worktree and
// a submodule. It is never followed: a sandbox could have written it.
func (r *runner) gitFile(folder string) {
	dir, err := openFolder(folder)
	if err != nil {
		return
	}
	defer dir.Close()
	text, err := readAt(dir, ".git")
	target, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir:")
	if err != nil || !ok {
		return
	}
	if target = strings.TrimSpace(target); !filepath.IsAbs(target) {
		target = filepath.Join(folder, target)
	}
	target = filepath.Clean(target)
	// A worktree's folder lies in that of the repository, which git needs too.
	if up := filepath.Dir(target); filepath.Base(up) == "worktrees" {
		target = filepath.Dir(up)
	}
	key := "read_paths"
	if r.canWrite(folder) {
		key = "write_paths"
	}
	real := realPath(target)
	if r.sees(real) && (key == "read_paths" || r.canWrite(real)) {
		return
	}
	if above := gitAbove(real); above != "" && r.granted(filepath.Dir(above)) {
		return // it is hidden with the folder around it, which is said
	}
	r.say(fmt.Sprintf("%s is a file that leads to %s: grant that folder for git, with %s: [%q]", oneLine(filepath.Join(folder, ".git")), oneLine(target), key, target))
}
