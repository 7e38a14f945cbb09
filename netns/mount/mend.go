//go:build linux

package mount

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A Spot is a mask or a read-only part of one root, as it can be mended: the
// kernel takes a mount off when the host removes what it lies on, or renames
// another file over it, as editors do.
type Spot struct {
	Folder string   // on the host, that holds the name
	Name   string   // in it
	Above  []string // on the host: the folders from below the root down to Folder
	Root   string   // inside
	Path   string   // below Root
	Part   bool     // read-only, else hidden
}

// Spots are all that the host could take the cover off.
func (p *Plan) Spots() []Spot {
	var out []Spot
	for _, r := range p.Roots {
		add := func(path string, part bool) {
			at := filepath.Join(r.Source, path)
			s := Spot{Folder: filepath.Dir(at), Name: filepath.Base(at), Root: r.Path, Path: path, Part: part}
			for _, folder := range between(path) {
				s.Above = append(s.Above, filepath.Join(r.Source, folder))
			}
			out = append(out, s)
		}
		for _, k := range r.Masks {
			add(k.Path, false)
		}
		for _, path := range r.Parts {
			add(path, true)
		}
	}
	return out
}

// Mend covers a spot again, in the mount namespace ns, from one that has the
// work folder. The calling thread must be locked and share its root with no
// other (CLONE_FS); it is in ns afterwards, for good. What is not there, or is
// still covered, is left as it is.
func Mend(ns int, s Spot) error {
	var empty [2]int // a file and a folder, cloned while they can be named
	for i, source := range []string{workEmpty, workEmpty + ".d"} {
		fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fmt.Errorf("taking a cover: %w", err)
		}
		defer func() { _ = unix.Close(fd) }()
		empty[i] = fd
	}
	if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering the sandbox's mounts: %w", err)
	}
	how := noLinks
	root, err := unix.Openat2(unix.AT_FDCWD, s.Root, &how)
	if err != nil {
		return fmt.Errorf("opening %s: %w", s.Root, err)
	}
	defer func() { _ = unix.Close(root) }()
	target, err := beneath(root, s.Path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(target) }()
	dir, covered, err := lies(root, target, s.Path)
	if err != nil || covered {
		return err
	}
	switch {
	case s.Part:
		return bindOnItself(root, s.Path, true)
	case dir:
		return coverReadOnly(empty[1], target)
	default:
		return coverReadOnly(empty[0], target)
	}
}

// lies says whether a target is a folder, and whether a mount lies on it: it is
// then on another one than the folder that holds it.
func lies(root, target int, path string) (dir, covered bool, err error) {
	var self, above unix.Statx_t
	const mask = unix.STATX_TYPE | unix.STATX_MNT_ID
	err = unix.Statx(target, "", unix.AT_EMPTY_PATH, mask, &self)
	if err == nil {
		err = unix.Statx(root, filepath.Dir(path), unix.AT_SYMLINK_NOFOLLOW, mask, &above)
	}
	if err != nil {
		return false, false, fmt.Errorf("looking at %s: %w", path, err)
	}
	return self.Mode&unix.S_IFMT == unix.S_IFDIR, self.Mnt_id != above.Mnt_id, nil
}

func coverReadOnly(clone, target int) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(clone, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("making a mount read-only: %w", err)
	}
	return moveOnto(clone, target)
}
