//go:build linux

package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix begins the names of our groups; self is the leaf that egressd moves to.
const (
	prefix = "egressd-"
	self   = "egressd.self"
)

// hierarchy is the part of the tree of groups that this process sees.
type hierarchy struct {
	mount string // where it is mounted
	own   string // the folder of this process's group
	// reserved says that what is not marked as delegated belongs to systemd,
	// though we could write it.
	reserved bool
}

// place is where a group can be made.
type place struct {
	folder string
	leave  bool // egressd must leave folder for a leaf first
	left   bool // egressd is in a leaf of its own making, which the last session undoes
}

// find looks at the host.
func find() ([]hierarchy, error) {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("finding the cgroups: %w", err)
	}
	defer func() { _ = mounts.Close() }()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("finding the cgroups: %w", err)
	}
	list, err := locate(bufio.NewScanner(mounts), string(own))
	if os.Geteuid() == 0 {
		_, err := os.Stat("/run/systemd/system")
		for i := range list {
			list[i].reserved = err == nil
		}
	}
	return list, err
}

// locate reads cgroups(7) "/proc/PID/cgroup" and proc(5) mountinfo: the tree may
// be mounted more than once, read-only or under another mount.
func locate(mounts *bufio.Scanner, own string) (list []hierarchy, err error) {
	path := ""
	for line := range strings.Lines(own) {
		if p, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "0::"); ok {
			path = p
		}
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, errors.New("this host has no cgroup v2 for this process")
	}
	for mounts.Scan() {
		before, after, ok := strings.Cut(mounts.Text(), " - ")
		f := strings.Fields(before)
		if !ok || len(f) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, at := f[3], f[4] // escaped where a name is odd, and then not found
		if root == "/" {
			list = append(list, hierarchy{mount: at, own: filepath.Join(at, path)})
		} else if rest, ok := strings.CutPrefix(path, root); ok && (rest == "" || rest[0] == '/') {
			list = append(list, hierarchy{mount: at, own: filepath.Join(at, rest)})
		}
	}
	if err := mounts.Err(); err != nil {
		return nil, fmt.Errorf("finding the cgroups: %w", err)
	}
	if len(list) == 0 {
		return nil, errors.New("no cgroup v2 of this process is mounted")
	}
	return list, nil
}

// place finds where a group with these controllers can be made.
func (h hierarchy) place(controllers []string) (place, error) {
	var missing []string
	writable := false
	for dir := h.own; ; dir = filepath.Dir(dir) {
		if h.ours(dir) {
			writable = true
			if missing = lacks(dir, "cgroup.subtree_control", controllers); missing == nil {
				return place{folder: dir, left: h.own == filepath.Join(dir, self)}, nil
			}
		}
		if dir == h.mount || len(dir) <= len(h.mount) {
			break
		}
	}
	if !writable {
		return place{}, fmt.Errorf("no cgroup above this process (%s) is delegated to it", h.own)
	}
	// The root has no type. It is the whole machine's: what its children get is
	// not ours to say.
	if _, err := os.Stat(filepath.Join(h.own, "cgroup.type")); err == nil && h.ours(h.own) {
		if missing = lacks(h.own, "cgroup.controllers", controllers); missing == nil {
			return place{folder: h.own, leave: true, left: true}, nil
		}
	}
	return place{}, fmt.Errorf("the cgroups above this process (%s) do not hand down %s", h.own, strings.Join(missing, " and "))
}

// ours says whether a group can be made in a folder and entered from ours.
func (h hierarchy) ours(dir string) bool {
	for _, path := range []string{dir, filepath.Join(dir, "cgroup.procs")} {
		if unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) != nil {
			return false
		}
	}
	return !h.reserved || h.marked(dir)
}

// marked says whether systemd has marked a folder, or one above it, as delegated.
func (h hierarchy) marked(dir string) bool {
	for ; len(dir) >= len(h.mount); dir = filepath.Dir(dir) {
		for _, name := range []string{"user.delegate", "trusted.delegate"} {
			value := make([]byte, 8)
			if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
				return true
			}
		}
		if dir == h.mount {
			break
		}
	}
	return false
}

// lacks are the controllers that a file of a folder does not list, nil if all
// are there.
func lacks(dir, file string, controllers []string) []string {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return append([]string{}, controllers...)
	}
	there := strings.Fields(string(text))
	var out []string
	for _, c := range controllers {
		if !slices.Contains(there, c) {
			out = append(out, c)
		}
	}
	return out
}
