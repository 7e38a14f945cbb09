package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/netns/remains"
	"github.com/egressd/egressd/netns/survey"
	"github.com/egressd/egressd/policy"
)

// hiding is what the sandbox must not see, and what was found on the way.
type hiding struct {
	masks []string     // whatever is granted: mask_paths, and sockets of the host
	dots  []string     // dot names below the top of a grant, but where they are granted
	found survey.Found // of the walk through the grants
}

// hide looks through the grants while the rest of the start goes on: the
// returned function waits for the end of it. What the user must know goes to w.
func hide(ctx context.Context, p *policy.Policy, cwd, home string, grants []mount.Grant, always []string, w io.Writer) func() (hiding, error) {
	look := sync.OnceValues(func() (hiding, error) {
		h := hiding{masks: maskPaths(p.Sandbox.MaskPaths, cwd, home, w)}
		if slices.Contains(h.masks, "/") {
			return h, fmt.Errorf("hiding mask_paths: / would hide the system itself")
		}
		c := survey.Config{
			Recursive: p.Sandbox.ScanRecursive, AllowHidden: p.Sandbox.AllowHidden,
			Skip:  slices.Concat(h.masks, always),
			Names: remains.Names(), MaxEntries: max(p.Sandbox.ScanMaxEntries, 1),
		}
		if p.Sandbox.ScanOverflow == "unlimited" {
			c.MaxEntries = 0
		}
		var folders []string
		for _, g := range grants {
			masked := slices.ContainsFunc(h.masks, func(m string) bool { return within(g.Path, m) })
			if info, err := os.Lstat(g.Path); err == nil && info.IsDir() && !masked && !ownFolder(g.Path) {
				folders = append(folders, g.Path)
				c.Roots = append(c.Roots, survey.Root{Path: g.Path, Write: g.Write && !(p.Fork && within(g.Path, cwd))})
			}
		}
		sockets, elsewhere, err := survey.Sockets(folders)
		if err != nil {
			return h, err
		}
		c.Sockets = elsewhere
		if h.found, err = survey.Walk(ctx, c); err != nil {
			return h, err
		}
		h.masks = slices.Concat(h.masks, sockets, h.found.Sockets)
		h.dots = h.found.Hidden
		return h, unseen(&h.found, &p.Sandbox, w)
	})
	go func() { _, _ = look() }() // its error is told to who waits
	return look
}

// maskPaths are the real places of mask_paths: of every link that a name is,
// and of what it leads to. What does not exist is named on w and left out:
// nothing is made on the host to hang a mask on.
func maskPaths(written []string, cwd, home string, w io.Writer) []string {
	var list []string
	for i, name := range written {
		path := policy.Expand(name, cwd, home)
		info, err := os.Lstat(path)
		if err != nil {
			fmt.Fprintf(w, "egressd: mask_paths[%d]: %s does not exist\n", i, plainText(name))
			continue
		}
		list = append(list, placesOf(path)...)
		if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
			fmt.Fprintf(w, "egressd: mask_paths[%d]: the file of %s has %d names (hard links), and only this one is hidden\n", i, plainText(name), st.Nlink)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// unseen tells of what the walk did not see: an error where the policy wants
// one, else a line.
func unseen(f *survey.Found, s *policy.Sandbox, w io.Writer) error {
	for _, folder := range f.Closed {
		fmt.Fprintf(w, "egressd: %s cannot be read by egressd but the program may come to reach it: nothing is hidden or pinned below it\n", plainText(folder))
	}
	if len(f.Bounded) == 0 {
		return nil
	}
	text := fmt.Sprintf("cwd_hidden_scan_max_entries (%d) is too low for %s: below %s nothing is hidden or pinned. Raise it, or set cwd_hidden_scan_overflow to warn, error or unlimited",
		s.ScanMaxEntries, someOf(f.Bounded), someOf(f.Unreached))
	if s.ScanOverflow == "error" {
		return fmt.Errorf("looking for what to hide: %s", text)
	}
	fmt.Fprintf(w, "egressd: %s\n", plainText(text))
	return nil
}

// checkWriteFile refuses what is no single file: write_files opens no folder.
func checkWriteFile(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("looking at it: %w", err)
	}
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a folder: write_paths is for those", path)
	case info.Mode()&fs.ModeType != 0:
		return fmt.Errorf("%s is no regular file", path)
	}
	return nil
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
