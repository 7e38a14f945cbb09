//go:build linux

package fork

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Clear removes the copies in dir whose process is gone. It goes on when the
// context ends no further; the next one does the rest. A dir that is not there
// holds none.
func Clear(ctx context.Context, dir string) error {
	home, err := openFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	names, err := home.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("looking for copies: %w", err)
	}
	var errs []error
	for _, name := range names {
		one, err := openAt(home, name, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			continue // gone, or none of ours
		}
		if lock(one, unix.LOCK_EX|unix.LOCK_NB) == nil {
			errs = append(errs, remove(ctx, home, name, one))
		}
		_ = one.Close()
	}
	return errors.Join(errs...)
}

// batch is how many names are read at a time.
const batch = 1024

// remove empties the folder dir and takes it out of home, where it is called
// name. What a program left in it may be as deep as it liked, so folders are not
// gone down into: what folders a folder holds is moved up into dir.
func remove(ctx context.Context, home *os.File, name string, dir *os.File) error {
	moved := 0
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("removing a copy: %w", err)
		}
		names, err := dir.Readdirnames(batch)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("removing a copy: %w", err)
		}
		if len(names) == 0 {
			break
		}
		for _, n := range names {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("removing a copy: %w", err)
			}
			if err := removeOne(ctx, dir, n, &moved); err != nil {
				return fmt.Errorf("removing a copy: %w", err)
			}
		}
	}
	if err := unix.Unlinkat(int(home.Fd()), name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing a copy: %w", err)
	}
	return nil
}

// removeOne removes a name of dir, a folder only once it is empty: what folders
// it holds are moved into dir before.
func removeOne(ctx context.Context, dir *os.File, name string, moved *int) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) {
		return err
	}
	sub, err := openOwn(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Close() }()
	for {
		names, err := sub.Readdirnames(batch)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(names) == 0 {
			break
		}
		for _, n := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := unix.Unlinkat(int(sub.Fd()), n, 0); err == nil || errors.Is(err, unix.ENOENT) {
				continue
			} else if !errors.Is(err, unix.EISDIR) {
				return err
			}
			if err := moveUp(sub, n, dir, moved); err != nil {
				return err
			}
		}
		if _, err := sub.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
}

// moveUp moves a folder into dir under a name that nothing has yet.
func moveUp(from *os.File, name string, dir *os.File, moved *int) error {
	made := false
	for {
		*moved++
		err := unix.Renameat2(int(from.Fd()), name, int(dir.Fd()), "."+strconv.Itoa(*moved), unix.RENAME_NOREPLACE)
		switch {
		case errors.Is(err, unix.EEXIST):
		case errors.Is(err, unix.EACCES) && !made:
			if err := makeOwn(from, name); err != nil {
				return err
			}
			made = true
		default:
			return err
		}
	}
}

// openOwn opens a folder of the caller's, whatever its mode.
func openOwn(dir *os.File, name string) (*os.File, error) {
	sub, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil && unix.Faccessat(int(sub.Fd()), "", unix.W_OK|unix.X_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS) == nil {
		return sub, nil
	}
	if err != nil && !errors.Is(err, unix.EACCES) {
		return nil, err
	}
	if sub != nil {
		_ = sub.Close()
	}
	if err := makeOwn(dir, name); err != nil {
		return nil, err
	}
	return openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// makeOwn gives the caller every right on a folder of theirs.
func makeOwn(dir *os.File, name string) error {
	at, err := openAt(dir, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }()
	// A descriptor that is only a path has no fchmod.
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(int(at.Fd())), 0o700)
}
