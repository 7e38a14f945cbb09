package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// keepHome puts the home that is kept in its place.
func (m *maker) keepHome(roots []Root) ([]Root, error) {
	if m.Cwd == m.Home {
		m.note("the home %s is not shown: %s is the working folder", m.HomeSource, m.Home)
		return roots, nil
	}
	if why := m.shown(m.HomeSource); why != "" {
		return nil, &RefusedError{m.HomeSource, "as home: " + why}
	}
	if slices.ContainsFunc(m.ReadOnly, func(k string) bool { return Below(m.HomeSource, k) }) {
		return nil, &RefusedError{m.HomeSource, "as home: it must stay as it is"}
	}
	info, err := os.Lstat(m.HomeSource)
	if err != nil {
		return nil, fmt.Errorf("looking at the home: %w", err)
	}
	if !info.IsDir() {
		return nil, &RefusedError{m.HomeSource, "as home: it is no folder"}
	}
	if slices.ContainsFunc(roots, func(r Root) bool { return r.Path == m.Home }) {
		m.note("%s is granted, and shows the home %s", m.Home, m.HomeSource)
		roots = slices.DeleteFunc(roots, func(r Root) bool { return r.Path == m.Home })
	}
	return append(roots, Root{Source: m.HomeSource, Path: m.Home, Write: true, Dir: true}), nil
}

// homePlaces makes, in a home that is kept, the names that deeper roots are
// mounted on. Whoever mounts would make them by path, and be led on by a link
// that an earlier sandbox has left in its home.
func (m *maker) homePlaces(roots []Root) error {
	i := slices.IndexFunc(roots, func(r Root) bool { return r.Path == m.Home && r.Source == m.HomeSource && !r.Empty })
	if m.HomeSource == "" || i < 0 {
		return nil
	}
	home, err := os.OpenRoot(m.HomeSource)
	if err != nil {
		return fmt.Errorf("opening the home: %w", err)
	}
	defer func() { _ = home.Close() }()
	for _, r := range roots {
		deeper := func(o Root) bool {
			return o.Path != m.Home && o.Path != r.Path && Below(o.Path, m.Home) && Below(r.Path, o.Path)
		}
		if r.Path == m.Home || !Below(r.Path, m.Home) || slices.ContainsFunc(roots, deeper) {
			continue
		}
		name := rel(r.Path, m.Home)
		for _, part := range append(between(name), name) {
			if err := homePlace(home, part, part != name || r.Dir); err != nil {
				return &RefusedError{r.Path, fmt.Sprintf("in the home %s, %v", m.HomeSource, err)}
			}
		}
	}
	return nil
}

var errOtherKind = errors.New("there is something else of that name: remove it")

// homePlace makes one name, whose folder is there and is no link.
func homePlace(home *os.Root, name string, dir bool) error {
	info, err := home.Lstat(name)
	switch {
	case err == nil && (info.IsDir() != dir || info.Mode()&fs.ModeSymlink != 0):
		return errOtherKind
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if dir {
		err = home.Mkdir(name, 0o700)
	} else {
		var f *os.File
		if f, err = home.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			err = f.Close()
		}
	}
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	// What root makes is the home's owner's.
	if info, err = home.Stat("."); err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return home.Lchown(name, int(st.Uid), int(st.Gid))
	}
	return nil
}
