package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/netns/remains"
	"github.com/egressd/egressd/netns/survey"
)

// look walks the granted folders, once for all that wants to know what lies
// there: dot names to hide, git's folders to hold, and what counts at the end.
func (r *runner) look(ctx context.Context) (survey.Found, error) {
	s := r.policy.Sandbox
	c := survey.Config{
		Recursive: s.ScanRecursive, AllowHidden: s.AllowHidden, Skip: hidden(r.src.dirs, r.src.dirs.home),
		Names: remains.Names(), MaxEntries: s.ScanMaxEntries,
	}
	if s.ScanOverflow == "unlimited" {
		c.MaxEntries = 0
	}
	for _, g := range r.grants {
		if st, err := os.Lstat(g.Path); err == nil && st.IsDir() && (g.Write || s.ScanRecursive) && !ownFolder(g.Path) {
			c.Roots = append(c.Roots, survey.Root{Path: g.Path, Write: g.Write})
		}
	}
	found, err := survey.Walk(ctx, c)
	if err != nil {
		return found, err
	}
	if len(found.Unreached) == 0 {
		return found, nil
	}
	what := []string{"what git runs is not held and not looked at at the end"}
	if s.ScanRecursive {
		what = append(what, "no dot name is hidden")
	}
	text := fmt.Sprintf("not all folders were looked through (cwd_hidden_scan_max_entries: %d): below these %s: %s; "+
		"cwd_hidden_scan_overflow: unlimited looks at all", s.ScanMaxEntries, strings.Join(what, ", "), someOf(found.Unreached))
	if s.ScanOverflow == "error" && len(found.Bounded) > 0 {
		return found, fmt.Errorf("%s", text)
	}
	fmt.Fprintln(os.Stderr, "egressd: "+plainText(text))
	return found, nil
}

// someOf names a few of many paths.
func someOf(paths []string) string {
	const few = 5
	list := make([]string, 0, few)
	for _, p := range paths[:min(few, len(paths))] {
		list = append(list, oneLine(p))
	}
	if more := len(paths) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// oneLine is a path that cannot be taken for a line of its own.
func oneLine(path string) string { return strings.ReplaceAll(path, "\n", `\n`) }

// ownFolder says that a folder shows empty or made new in every sandbox, and is
// not worth a look.
func ownFolder(path string) bool {
	return slices.ContainsFunc([]string{"/dev", "/proc", "/sys", "/run"}, func(own string) bool { return mount.Below(path, own) }) &&
		!mount.Below(path, "/run/media") && !mount.Below(path, "/dev/shm")
}
