//go:build linux

package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// layMasks puts the masks of a root on it, but for those that come late. i
// tells its holes from those of others.
func (r *Root) layMasks(root, i int) error {
	for n, k := range r.Masks {
		if k.Late {
			continue
		}
		if err := k.lay(root, workHoles+strconv.Itoa(i)+"."+strconv.Itoa(n)); err != nil {
			return fmt.Errorf("hiding %s: %w", k.Path, err)
		}
	}
	return nil
}

// open opens what a mask is to cover, through no link: -1 where nothing is
// there any more. dir says whether it is a folder now.
func (k *Mask) open(root int) (target int, dir bool, err error) {
	target, err = beneath(root, k.Path)
	if errors.Is(err, unix.ENOENT) && len(k.Holes) == 0 {
		// Removed since it was found, as short-lived files are: nothing is there to
		// hide. But if its folder went too, what was in it may be under another name.
		fd, err := beneath(root, filepath.Dir(k.Path))
		if err != nil {
			return -1, false, err
		}
		return -1, false, unix.Close(fd)
	}
	if err != nil {
		return -1, false, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(target, &st); err != nil {
		_ = unix.Close(target)
		return -1, false, fmt.Errorf("looking at it: %w", err)
	}
	return target, st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// lay puts an empty file or folder over one name. With holes the folder is one
// of its own that has a place for each.
func (k *Mask) lay(root int, own string) error {
	target, dir, err := k.open(root)
	if err != nil || target < 0 {
		return err
	}
	defer func() { _ = unix.Close(target) }()
	source := workEmpty
	if dir {
		source = workEmpty + ".d"
	}
	if len(k.Holes) > 0 {
		source = own
		if err := layHoles(own, k.Holes); err != nil {
			return err
		}
	}
	clone, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("taking a cover: %w", err)
	}
	return attachReadOnly(clone, target)
}

// layHoles makes an empty folder that has a place for each hole.
func layHoles(own string, holes []Hole) error {
	for _, h := range holes {
		at := filepath.Join(own, h.Path)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case h.Dir:
			err = os.MkdirAll(at, 0o755)
		default:
			if err = writeFile(at, nil, 0o444); errors.Is(err, os.ErrExist) {
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("making a place in it: %w", err)
		}
	}
	return nil
}
