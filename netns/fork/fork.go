//go:build linux

// Package fork makes throw-away copies of a folder, for a program that may do
// with it what it likes while the folder itself stays as it is.
//
// [Make] copies a tree: blocks are shared where the file system can (reflinks),
// holes stay holes, hard links stay hard links, links are copied as links. Nothing
// is opened by a path: each name is opened in the folder that holds it and not
// followed, so whoever turns a name into a link while it is copied leads nowhere.
// Sockets, pipes and devices are left out.
//
// A copy is held by a lock for as long as its process lives. [Clear] removes those
// that nobody holds, such as of a process that was killed.
package fork

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Config says what is copied, and where to.
type Config struct {
	Source string // absolute, clean and without links
	// Dir holds copies, each in a folder of a random name. It must exist and be
	// the caller's alone. What of it lies in Source is not copied.
	Dir string
	// Skip leaves a name out, and all below it. It is asked with the path below
	// Source, from several goroutines at a time. nil leaves nothing out.
	Skip func(rel string) bool
}

// Fork is a copy.
type Fork struct {
	Path   string // of the copy: what Source is
	Files  int64  // regular files in it
	Bytes  int64  // in those files
	Shared bool   // some of them share their blocks with the original
	// Notes say what is not in it, a line for each kind.
	Notes []string

	dir  *os.File // the folder of a random name; the lock is on it
	name string
	home *os.File // Config.Dir
}

// treeName is what a copy is called in its folder.
const treeName = "tree"

// Error is a tree that could not be copied.
type Error struct {
	Path string // of the original
	Dir  string // where the copy was to lie
	Err  error
}

func (e *Error) Error() string { return "copying " + e.Path + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Hint says what to do about it, or nothing.
func (e *Error) Hint() string {
	if errors.Is(e.Err, unix.ENOSPC) || errors.Is(e.Err, unix.EDQUOT) {
		return "the copy would lie in " + e.Dir + ": make room there, or leave out what is not needed"
	}
	return ""
}

// Make copies. With an error nothing is left behind. When the context ends, so
// does the copying.
func Make(ctx context.Context, c Config) (*Fork, error) {
	home, err := openFolder(c.Dir)
	if err != nil {
		return nil, err
	}
	f := &Fork{home: home}
	if err := f.begin(); err != nil {
		return nil, errors.Join(err, home.Close())
	}
	f.Path = filepath.Join(c.Dir, f.name, treeName)
	if err := f.copy(ctx, c); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// begin makes the folder and takes its lock. A Clear that came in between has
// removed it: then another one is made.
func (f *Fork) begin() error {
	for range 100 {
		f.name = rand.Text()
		if err := unix.Mkdirat(int(f.home.Fd()), f.name, 0o700); err != nil {
			return fmt.Errorf("making a folder for the copy: %w", err)
		}
		dir, err := openAt(f.home, f.name, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err = lock(dir, unix.LOCK_EX); err == nil {
			err = unix.Fstat(int(dir.Fd()), &st)
		}
		if err == nil && st.Nlink > 0 {
			f.dir = dir
			return nil
		}
		if err = errors.Join(err, dir.Close()); err != nil {
			return fmt.Errorf("locking the copy: %w", err)
		}
	}
	return errors.New("making a folder for the copy: it is removed again and again")
}

func lock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Close removes the copy. Nothing may use it any more.
func (f *Fork) Close() error {
	err := remove(context.Background(), f.home, f.name, f.dir)
	return errors.Join(err, f.dir.Close(), f.home.Close())
}

// openFolder opens a folder by an absolute path that has no link in it.
func openFolder(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openAt opens a name in a folder, and is not led on by a link.
func openAt(dir *os.File, name string, how int) (*os.File, error) {
	path := filepath.Join(dir.Name(), name)
	fd, err := unix.Openat(int(dir.Fd()), name, how|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
