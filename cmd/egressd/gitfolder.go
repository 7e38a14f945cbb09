package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// gitFolders are the files and folders of git that stay as they are where the
// policy lets the sandbox write to a git folder, and the links that are hidden: a
// config or a hook that a program leaves there would run on the host. What is
// missing and could be made inside is made first. A git folder that cannot be
// held so is read-only as a whole.
func (r *runner) gitFolders() (list, links []string) {
	var looked []string
	shown := slices.Contains(r.policy.Sandbox.AllowHidden, ".git")
	hold := func(git string) {
		if slices.Contains(looked, git) {
			return
		}
		looked = append(looked, git)
		h := gitHold{writable: r.canWrite, left: gitWalk}
		if err := h.main(git); err != nil {
			r.say(fmt.Sprintf("%s is shown read-only, commits are made outside: %v", git, err))
			list = append(list, git)
			return
		}
		if len(h.made) > 0 {
			r.say(fmt.Sprintf("made in %s, so that the sandbox cannot make its own: %s", git, strings.Join(h.made, ", ")))
		}
		list, links = append(list, h.list...), append(links, h.links...)
	}
	for _, g := range r.grants {
		git := filepath.Join(g.Path, ".git")
		visible := shown || r.granted(git)
		st, err := os.Lstat(git)
		switch {
		case err != nil:
		case !visible && g.Path == r.cwd:
			r.say(".git is hidden; cwd_allow_hidden: [.git] shows it")
		case !visible:
		case st.Mode().IsRegular():
			r.gitFile(g.Path)
			looked, list = append(looked, git), append(list, git)
		case !st.IsDir():
			r.say(git + " is a link and hidden: git finds no repository here")
			links = append(links, git)
		case g.Write && shown && !r.granted(git):
			hold(git)
		}
	}
	for _, g := range r.grants {
		if above := gitAbove(g.Path); g.Write && above != "" {
			hold(above)
		} else if g.Write && looksLikeGit(g.Path) {
			hold(g.Path)
		}
	}
	return list, links
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

// canWrite says whether the sandbox may write below a path: the most specific
// grant decides.
func (r *runner) canWrite(path string) bool {
	best, write := "", false
	for _, g := range r.grants {
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
	if text, err := readAt(dir, "config"); err == nil && strings.Contains(strings.ToLower(text), "repositoryformatversion") {
		return true
	}
	return kindAt(dir, "HEAD") == unix.S_IFREG && (kindAt(dir, "objects") != 0 || kindAt(dir, "commondir") != 0)
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
	if real := realPath(target); r.sees(real) && (key == "read_paths" || r.canWrite(real)) {
		return
	}
	r.say(fmt.Sprintf("%s is a file that leads to %s: grant that folder for git, with %s: [%q]", filepath.Join(folder, ".git"), target, key, target))
}
