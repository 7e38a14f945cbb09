//go:build linux

package mount

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Late makes the masks and pins that the plan leaves for when bwrap has built
// the view, and before anything of the program's runs: in the mount namespace
// ns, from one that has the work folder. The calling thread must be locked and
// share its root with no other (CLONE_FS); it is in ns afterwards, for good.
func Late(ns int, p *Plan) error {
	var c covers
	defer c.close()
	if err := c.take(); err != nil {
		return err
	}
	if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering the sandbox's mounts: %w", err)
	}
	for i := range p.Roots {
		if err := p.Roots[i].layLate(&c); err != nil {
			return fmt.Errorf("showing %s: %w", p.Roots[i].Source, err)
		}
	}
	return nil
}

func (r *Root) layLate(c *covers) error {
	if !r.Dir || r.Empty {
		return nil
	}
	how := noLinks
	root, err := unix.Openat2(unix.AT_FDCWD, r.Path, &how)
	if err != nil {
		return fmt.Errorf("opening a root: %w", err)
	}
	defer func() { _ = unix.Close(root) }()
	for _, pin := range r.LatePins {
		if err := bindOnItself(root, pin, false); err != nil {
			return fmt.Errorf("pinning %s: %w", pin, err)
		}
	}
	for _, k := range r.Masks {
		if !k.Late {
			continue
		}
		target, dir, err := k.open(root)
		if err == nil && target >= 0 {
			err = c.onto(target, dir)
			_ = unix.Close(target)
		}
		if err != nil {
			return fmt.Errorf("hiding %s: %w", k.Path, err)
		}
	}
	return nil
}

// covers are read-only mounts of the work folder's empty file and folder. A
// mount of another namespace cannot be cloned, so the first that is mounted
// here is the model of the others; the spares are for one that the host takes
// off meanwhile.
type covers struct {
	file, dir model
}

type model struct {
	spares  []int
	mounted bool // the first of the spares is
}

const spares = 4

func (c *covers) take() error {
	for _, m := range []struct {
		model  *model
		source string
	}{{&c.file, workEmpty}, {&c.dir, workEmpty + ".d"}} {
		for range spares {
			fd, err := unix.OpenTree(unix.AT_FDCWD, m.source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err == nil {
				m.model.spares = append(m.model.spares, fd)
				err = readOnly(fd)
			}
			if err != nil {
				return fmt.Errorf("taking a cover: %w", err)
			}
		}
	}
	return nil
}

func (c *covers) close() {
	for _, m := range []*model{&c.file, &c.dir} {
		for _, fd := range m.spares {
			_ = unix.Close(fd)
		}
	}
}

// onto covers an open file or folder.
func (c *covers) onto(target int, dir bool) error {
	m := &c.file
	if dir {
		m = &c.dir
	}
	for len(m.spares) > 0 {
		if !m.mounted {
			m.mounted = true
			return moveOnto(m.spares[0], target)
		}
		clone, err := unix.OpenTree(m.spares[0], "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
		if err == nil {
			err = moveOnto(clone, target)
			_ = unix.Close(clone)
			return err
		}
		if !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("taking a cover: %w", err)
		}
		_ = unix.Close(m.spares[0])
		m.spares, m.mounted = m.spares[1:], false
	}
	return errors.New("taking a cover: the host takes every one off")
}
