//go:build linux

package mount

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// noLinks is how every path of the host is opened: a link anywhere in it is an
// error, since what a plan names has none.
var noLinks = unix.OpenHow{
	Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
	Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
}

// cloneHost is a detached copy of the mount tree at an absolute path.
func cloneHost(path string) (int, error) {
	how := noLinks
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return -1, fmt.Errorf("opening: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	return cloneOf(fd)
}

func cloneOf(fd int) (int, error) {
	clone, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, fmt.Errorf("cloning a mount: %w", err)
	}
	return clone, nil
}

// beneath opens name below the folder root, through no link and not out of it;
// a link at its end is opened itself.
func beneath(root int, name string) (int, error) {
	how := noLinks
	how.Resolve |= unix.RESOLVE_BENEATH
	fd, err := unix.Openat2(root, name, &how)
	if err != nil {
		return -1, fmt.Errorf("opening: %w", err)
	}
	return fd, nil
}

// attach moves a detached mount to a path of the work folder and closes it.
func attach(clone int, path string) error {
	err := unix.MoveMount(clone, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	_ = unix.Close(clone)
	if err != nil {
		return fmt.Errorf("attaching a mount: %w", err)
	}
	return nil
}

// attachReadOnly moves a detached mount, made read-only, onto an open place
// and closes the mount.
func attachReadOnly(clone, target int) error {
	defer func() { _ = unix.Close(clone) }()
	if err := readOnly(clone); err != nil {
		return err
	}
	return moveOnto(clone, target)
}

// readOnly makes a detached mount so, with all below it.
func readOnly(clone int) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(clone, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("making a mount read-only: %w", err)
	}
	return nil
}

func moveOnto(clone, target int) error {
	err := unix.MoveMount(clone, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("attaching a mount: %w", err)
	}
	return nil
}

// bindOnItself makes name a mount point that shows itself.
func bindOnItself(root int, name string, readOnly bool) error {
	target, err := beneath(root, name)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(target) }()
	clone, err := cloneOf(target)
	if err != nil {
		return err
	}
	if readOnly {
		return attachReadOnly(clone, target)
	}
	defer func() { _ = unix.Close(clone) }()
	return moveOnto(clone, target)
}
