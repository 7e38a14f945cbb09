//go:build linux

package mount

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Clone is a detached copy of the mount tree at path, for a run of root: whoever
// gets it needs no right on the folders above. With idmap, the descriptor of a
// user namespace, owners show as that maps them (Linux 5.12); -1 is none.
func Clone(path string, idmap int) (*os.File, error) {
	how := noLinks
	if path == "/proc/self/exe" {
		how.Flags, how.Resolve = unix.O_PATH|unix.O_CLOEXEC, 0
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	clone, err := cloneOf(fd)
	if err != nil {
		return nil, fmt.Errorf("showing %s: %w", path, err)
	}
	f := os.NewFile(uintptr(clone), path)
	if idmap < 0 {
		return f, nil
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(idmap)}
	if err := unix.MountSetattr(clone, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		_ = f.Close()
		return nil, &IdmapError{path, err}
	}
	return f, nil
}

// IdmapError is a file system, or a kernel, that cannot show files under
// another owner.
type IdmapError struct {
	Path string
	Err  error
}

func (e *IdmapError) Error() string {
	return "mapping the owners below " + e.Path + ": " + e.Err.Error()
}

func (e *IdmapError) Unwrap() error { return e.Err }
