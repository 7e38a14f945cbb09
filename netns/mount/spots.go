package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// spotter finds the masks, read-only parts and pins of one root. A plan may
// have thousands of masks, so it asks sets and not lists.
type spotter struct {
	*maker
	*Root
	roots []Root
	shows map[string]bool // paths of roots
	masks map[string]bool // names below the root
}

// spots fills in the masks, read-only parts and pins of every root.
func (m *maker) spots(roots []Root) error {
	shows := map[string]bool{}
	for _, r := range roots {
		shows[r.Path] = true
	}
	for i := range roots {
		r := &roots[i]
		if !r.Dir || r.Empty {
			continue
		}
		s := spotter{maker: m, Root: r, roots: roots, shows: shows, masks: map[string]bool{}}
		lists := [][]string{m.Masks}
		if keptHome := m.HomeSource != "" && r.Source == m.HomeSource && r.Path == m.Home; !keptHome {
			if err := s.hideTop(); err != nil {
				return err
			}
			lists = append(lists, m.Dots)
		}
		for _, list := range lists {
			if err := s.hideNamed(list); err != nil {
				return err
			}
		}
		if err := s.hideFolders(); err != nil {
			return err
		}
		s.settleMasks()
		if r.Write {
			s.holdParts()
			s.pin()
		}
	}
	postpone(roots)
	return nil
}

// hideTop masks the dot names at the top of a root, but for those that may be
// seen and those that are granted themselves, and sockets of any name.
func (s *spotter) hideTop() error {
	entries, err := os.ReadDir(s.Source)
	if err != nil {
		return fmt.Errorf("looking for hidden names: %w", err)
	}
	for _, e := range entries {
		dot := e.Name()[0] == '.' && !slices.Contains(s.AllowHidden, e.Name())
		if dot && !s.shows[filepath.Join(s.Path, e.Name())] || e.Type()&fs.ModeSocket != 0 {
			s.hide(e.Name(), e.Type())
		}
	}
	return nil
}

// hide masks one name, unless that is done already.
func (s *spotter) hide(name string, kind fs.FileMode) {
	if !s.masks[name] {
		s.masks[name] = true
		s.Masks = append(s.Masks, Mask{Path: name, Dir: kind.IsDir(), Link: kind&fs.ModeSymlink != 0})
	}
}

// hideNamed masks what lies in this root and in none below it. The paths are
// of the host; where the root is shown elsewhere, those that the sandbox would
// know it by count as well.
func (s *spotter) hideNamed(paths []string) error {
	for _, path := range paths {
		for _, from := range []string{s.Source, s.Path} {
			name := rel(path, from)
			if name == "" || !Below(path, from) || s.inner(name) || s.covered(name) {
				continue
			}
			switch info, err := os.Lstat(filepath.Join(s.Source, name)); {
			case gone(err):
			case err != nil:
				return fmt.Errorf("hiding %s: %w", path, err)
			default:
				s.hide(name, info.Mode().Type())
			}
		}
	}
	return nil
}

// gone reports that a path leads to nothing: some name of it is missing, or is
// no folder.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder)
}

// hideFolders masks egressd's own folders and their kin. One that is missing
// below a writable grant is made first, since the sandbox could make it.
func (s *spotter) hideFolders() error {
	for _, h := range s.Hidden {
		name := rel(h, s.Source)
		if !Below(h, s.Source) || s.inner(name) || s.covered(name) {
			continue
		}
		info, err := os.Lstat(h)
		if errors.Is(err, fs.ErrNotExist) && s.Write {
			if err = s.makeFolder(s.Source, name); err == nil {
				info, err = os.Lstat(h)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("hiding %s: %w", h, err)
		}
		s.hide(name, info.Mode().Type())
	}
	return nil
}

// makeFolder makes a folder below a grant without following a link out of it.
func (m *maker) makeFolder(grant, name string) error {
	root, err := os.OpenRoot(grant)
	if err != nil {
		return fmt.Errorf("making a folder to hide: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, part := range append(between(name), name) {
		err := root.Mkdir(part, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil && m.Owner != nil {
			err = root.Lchown(part, m.Owner.UID, m.Owner.GID)
		}
		if err != nil {
			return fmt.Errorf("making a folder to hide: %w", err)
		}
	}
	return nil
}

// inner reports whether a deeper root shows name.
func (s *spotter) inner(name string) bool {
	for path := filepath.Join(s.Path, name); path != s.Path && path != "/"; path = filepath.Dir(path) {
		if s.shows[path] {
			return true
		}
	}
	return false
}

// covered reports whether a mask already lies over name or above it.
func (s *spotter) covered(name string) bool {
	for ; name != "." && name != ""; name = filepath.Dir(name) {
		if s.masks[name] {
			return true
		}
	}
	return false
}

// settleMasks sorts the masks, takes out what lies below another, and leaves a
// hole for each root that lies below one.
func (s *spotter) settleMasks() {
	s.Masks = slices.DeleteFunc(s.Masks, func(k Mask) bool { return s.covered(filepath.Dir(k.Path)) })
	slices.SortFunc(s.Masks, func(a, b Mask) int { return byDepth("/"+a.Path, "/"+b.Path) })
	for _, other := range s.roots {
		if other.Path == s.Path || !Below(other.Path, s.Path) {
			continue
		}
		for name := filepath.Dir(rel(other.Path, s.Path)); name != "."; name = filepath.Dir(name) {
			if !s.masks[name] {
				continue
			}
			if i := slices.IndexFunc(s.Masks, func(k Mask) bool { return k.Path == name }); i >= 0 {
				hole := Hole{rel(other.Path, filepath.Join(s.Path, name)), other.Dir}
				s.Masks[i].Holes = append(s.Masks[i].Holes, hole)
			}
		}
	}
}

// holdParts makes what the operator keeps read-only so in a writable root.
func (s *spotter) holdParts() {
	for _, path := range s.ReadOnly {
		name := rel(path, s.Source)
		if name == "" || !Below(path, s.Source) || s.inner(name) || s.covered(name) || slices.Contains(s.Parts, name) {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			s.Parts = append(s.Parts, name)
		}
	}
	slices.SortFunc(s.Parts, func(a, b string) int { return byDepth("/"+a, "/"+b) })
}

// pin binds every folder between the root and what must stay where it is on
// itself: a mount point cannot be renamed, and neither can what it lies in be
// made anew under its old name.
func (s *spotter) pin() {
	pinned := map[string]bool{}
	hold := func(name string) {
		for _, folder := range between(name) {
			if !pinned[folder] && !s.covered(folder) {
				pinned[folder] = true
				s.Pins = append(s.Pins, folder)
			}
		}
	}
	for _, p := range s.Parts {
		hold(p)
	}
	for _, k := range s.Masks {
		hold(k.Path)
	}
	for _, o := range s.roots {
		if o.Path != s.Path && Below(o.Path, s.Path) {
			hold(rel(o.Path, s.Path))
		}
	}
	if m := s.HomeSource; m != "" && m != s.Source && Below(m, s.Source) {
		hold(rel(m, s.Source) + "/.") // itself as well: it is no root at this path
	}
	slices.SortFunc(s.Pins, func(a, b string) int { return byDepth("/"+a, "/"+b) })
}
