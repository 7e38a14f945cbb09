package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// spots fills in the masks, read-only parts and pins of every root.
func (m *maker) spots(roots []Root) error {
	for i := range roots {
		r := &roots[i]
		if !r.Dir {
			continue
		}
		if keptHome := m.HomeSource != "" && r.Path == m.Home; !keptHome {
			if err := m.hideDots(r, roots); err != nil {
				return err
			}
		}
		if err := m.hideFolders(r, roots); err != nil {
			return err
		}
		if r.Write {
			m.holdParts(r, roots)
			pin(r, roots)
		}
		slices.SortFunc(r.Masks, func(a, b Mask) int { return byDepth("/"+a.Path, "/"+b.Path) })
		slices.SortFunc(r.Pins, func(a, b string) int { return byDepth("/"+a, "/"+b) })
		slices.SortFunc(r.Parts, func(a, b string) int { return byDepth("/"+a, "/"+b) })
	}
	return nil
}

// hideDots masks the dot names at the top of a root, but for those that may be
// seen and those that are granted themselves.
func (m *maker) hideDots(r *Root, roots []Root) error {
	entries, err := os.ReadDir(r.Source)
	if err != nil {
		return fmt.Errorf("looking for hidden names: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(r.Path, e.Name())
		if e.Name()[0] != '.' || slices.Contains(m.AllowHidden, e.Name()) || isRoot(path, roots) {
			continue
		}
		r.Masks = append(r.Masks, m.mask(r, e.Name(), e.Type(), roots))
	}
	return nil
}

func isRoot(path string, roots []Root) bool {
	return slices.ContainsFunc(roots, func(r Root) bool { return r.Path == path })
}

// mask is a mask over one name, with a hole for each root below it.
func (m *maker) mask(r *Root, name string, kind fs.FileMode, roots []Root) Mask {
	mask := Mask{Path: name, Dir: kind.IsDir(), Link: kind&fs.ModeSymlink != 0}
	path := filepath.Join(r.Path, name)
	for _, other := range roots {
		if other.Path != path && Below(other.Path, path) {
			mask.Holes = append(mask.Holes, Hole{rel(other.Path, path), other.Dir})
		}
	}
	return mask
}

// hideFolders masks egressd's own folders and their kin. One that is missing
// below a writable grant is made first, since the sandbox could make it.
func (m *maker) hideFolders(r *Root, roots []Root) error {
	for _, h := range m.Hidden {
		name := rel(h, r.Source)
		if !Below(h, r.Source) || inner(name, r, roots) || covered(r, name) {
			continue
		}
		info, err := os.Lstat(h)
		if errors.Is(err, fs.ErrNotExist) && r.Write {
			if err = m.makeFolder(r.Source, name); err == nil {
				info, err = os.Lstat(h)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("hiding %s: %w", h, err)
		}
		r.Masks = append(r.Masks, m.mask(r, name, info.Mode().Type(), roots))
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

// inner reports whether a deeper root than r shows name.
func inner(name string, r *Root, roots []Root) bool {
	path := filepath.Join(r.Path, name)
	return slices.ContainsFunc(roots, func(o Root) bool {
		return o.Path != r.Path && Below(o.Path, r.Path) && Below(path, o.Path)
	})
}

// covered reports whether a mask of the root already lies over name.
func covered(r *Root, name string) bool {
	return slices.ContainsFunc(r.Masks, func(m Mask) bool {
		return name == m.Path || strings.HasPrefix(name, m.Path+"/")
	})
}

// holdParts makes what the operator keeps read-only so in a writable root.
func (m *maker) holdParts(r *Root, roots []Root) {
	for _, path := range m.ReadOnly {
		name := rel(path, r.Source)
		if name == "" || !Below(path, r.Source) || inner(name, r, roots) || covered(r, name) {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			r.Parts = addOnce(r.Parts, name)
		}
	}
}

// pin binds every folder between the root and what must stay where it is on
// itself: a mount point cannot be renamed, and neither can what it lies in be
// made anew under its old name.
func pin(r *Root, roots []Root) {
	hold := func(name string) {
		for _, folder := range between(name) {
			if !covered(r, folder) {
				r.Pins = addOnce(r.Pins, folder)
			}
		}
	}
	for _, p := range r.Parts {
		hold(p)
	}
	for _, k := range r.Masks {
		hold(k.Path)
	}
	for _, o := range roots {
		if o.Path != r.Path && Below(o.Path, r.Path) {
			hold(rel(o.Path, r.Path))
		}
	}
}
