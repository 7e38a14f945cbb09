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
	Whole  bool     // a root of its own with masks or parts, which all fall off with it: Mend refuses
}

// spot is the spot of a name of a root.
func (r *Root) spot(name string) Spot {
	at := filepath.Join(r.Source, name)
	s := Spot{Folder: filepath.Dir(at), Name: filepath.Base(at), Root: r.Path, Path: name}
	for _, folder := range between(name) {
		s.Above = append(s.Above, filepath.Join(r.Source, folder))
	}
	return s
}

// Spots are all that the host could take the cover off.
func (p *Plan) Spots() []Spot {
	var out []Spot
	for i := range p.Roots {
		r := &p.Roots[i]
		for _, k := range r.Masks {
			out = append(out, r.spot(k.Path))
		}
		for _, path := range r.Parts {
			s := r.spot(path)
			s.Part = true
			out = append(out, s)
		}
		if s, ok := p.inside(r); ok {
			out = append(out, s)
		}
	}
	for _, c := range p.Covers {
		folder := systemFolder(c.Path)
		system := Root{Source: folder, Path: folder}
		if c.Path != folder {
			out = append(out, system.spot(rel(c.Path, folder)))
		}
	}
	return out
}

// inside is the spot of a root that lies in another one, on a name of the
// host's, where that root shows more than this one when it falls off.
func (p *Plan) inside(r *Root) (Spot, bool) {
	var outer *Root
	for i := range p.Roots {
		o := &p.Roots[i]
		if o.Path != r.Path && o.Dir && !o.Empty && Below(r.Path, o.Path) && (outer == nil || depth(o.Path) > depth(outer.Path)) {
			outer = o
		}
	}
	if outer == nil {
		return Spot{}, false
	}
	name := rel(r.Path, outer.Path)
	for _, k := range outer.Masks {
		if Below("/"+name, "/"+k.Path) {
			return Spot{}, false // it lies in a hole, which is not the host's
		}
	}
	s := outer.spot(name)
	s.Part = outer.Write && !r.Write
	s.Whole = len(r.Masks)+len(r.Parts) > 0
	return s, s.Part || s.Whole
}

// Mend covers a spot again, in the mount namespace ns, from one that has the
// work folder. The calling thread must be locked and share its root with no
// other (CLONE_FS); it is in ns afterwards, for good. What is not there, or is
// still covered, is left as it is.
func Mend(ns int, s Spot) error {
	if s.Whole {
		return errors.New("a folder of a grant was replaced, and what is hidden or read-only in it is so no more")
	}
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
	if err := readOnly(clone); err != nil {
		return err
	}
	return moveOnto(clone, target)
}
