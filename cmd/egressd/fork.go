package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// forked says whether what the sandbox does at a path is done to a copy.
func (r *runner) forked(path string) bool { return r.policy.Fork && within(path, r.cwd) }

// inFork is a list of paths and, for those in the working folder, where their
// copies are.
func (r *runner) inFork(paths []string) []string {
	if r.fork == "" {
		return paths
	}
	out := slices.Clone(paths)
	for _, p := range paths {
		if rel, err := filepath.Rel(r.cwd, p); err == nil && within(p, r.cwd) {
			out = append(out, filepath.Join(r.fork, rel))
		}
	}
	return out
}

// notCopied says which names of the working folder are left out of a copy: those
// that the program would not see there.
func (r *runner) notCopied() (func(rel string) bool, error) {
	s, home := r.policy.Sandbox, r.src.dirs.home
	hide, err := r.hidden()
	if err != nil {
		return nil, err
	}
	below := func(path string) string {
		if rel, err := filepath.Rel(r.cwd, path); err == nil && rel != "." && within(path, r.cwd) {
			return rel
		}
		return ""
	}
	n := hiddenNames{recursive: s.ScanRecursive, allowed: s.AllowHidden, masks: map[string]bool{}}
	for _, g := range r.grants {
		if rel := below(g.Path); rel != "" {
			n.grants = append(n.grants, rel)
		}
	}
	masks := slices.Concat(hidden(r.src.dirs, home), secretFiles(r.policy, home), hide.masks)
	for _, path := range masks {
		if rel := below(path); rel != "" {
			n.masks[rel] = true
		}
	}
	return n.hides, nil
}

// hiddenNames tell what is not seen in a working folder. Paths are below it.
type hiddenNames struct {
	recursive bool
	allowed   []string
	grants    []string
	masks     map[string]bool
}

// hides says whether a path is not seen, whose folders are or lead to a grant.
func (n *hiddenNames) hides(rel string) bool {
	if n.masks[rel] {
		return true
	}
	// The deepest grant that holds it decides: a dot name is hidden at its top,
	// with recursion at every depth.
	root := ""
	for _, g := range n.grants {
		if within(rel, g) && len(g) > len(root) {
			root = g
		}
	}
	if rel == root {
		return false
	}
	names := strings.Split(strings.TrimPrefix(strings.TrimPrefix(rel, root), "/"), "/")
	if !n.recursive {
		names = names[:1]
	}
	hidden := slices.ContainsFunc(names, func(name string) bool { return name[0] == '.' && !slices.Contains(n.allowed, name) })
	return hidden && !slices.ContainsFunc(n.grants, func(g string) bool { return within(g, rel) })
}
