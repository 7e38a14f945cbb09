package remains

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// identity is what the kernel says of an inode. The mtime is not in it: a
// program may set that as it likes, the ctime it cannot.
type identity struct {
	dev, ino uint64
	mode     uint32
	size     int64
	sec      int64 // ctime
	nsec     int64
}

func identityOf(st *unix.Stat_t) identity {
	return identity{dev: uint64(st.Dev), ino: st.Ino, mode: uint32(st.Mode), size: st.Size, sec: int64(st.Ctim.Sec), nsec: int64(st.Ctim.Nsec)}
}

func (i identity) kind() uint32 { return i.mode & unix.S_IFMT }

// dir is an open folder. It is no os.File, which asks the kernel three times as
// much for each.
type dir struct {
	fd   int
	path string
}

func (d dir) close() { _ = unix.Close(d.fd) }

// at is the identity of a name in a folder; a link is itself.
func (d dir) at(name string) (identity, bool) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return identity{}, false
	}
	return identityOf(&st), true
}

func (d dir) identity() (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return identity{}, fmt.Errorf("looking at %s: %w", d.path, err)
	}
	return identityOf(&st), nil
}

// list hands out at most most names, and says whether these were all.
func (d dir) list(most int, do func(fs.DirEntry)) (whole bool) {
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer func() { _ = f.Close() }()
	for most > 0 {
		entries, err := f.ReadDir(min(most, 1024))
		for _, e := range entries {
			do(e)
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		most -= len(entries)
	}
	entries, err := f.ReadDir(1)
	return len(entries) == 0 && errors.Is(err, io.EOF)
}

// openRoot opens a folder by an absolute path without links.
func openRoot(path string) (dir, error) {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return dir{}, fmt.Errorf("opening the root: %w", err)
	}
	return openBelow(dir{fd, "/"}, strings.Trim(path, "/"))
}

// openBelow opens a folder below one that it closes, each from the one before:
// no link leads away.
func openBelow(at dir, rel string) (dir, error) {
	for name := range strings.SplitSeq(rel, "/") {
		if name == "" || name == "." {
			continue
		}
		next, err := at.folder(name)
		at.close()
		if err != nil {
			return dir{}, err
		}
		at = next
	}
	return at, nil
}

func (d dir) folder(name string) (dir, error) {
	path := filepath.Join(d.path, name)
	fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return dir{}, fmt.Errorf("opening %s: %w", path, err)
	}
	return dir{fd, path}, nil
}

// read reads a regular file of at most most bytes.
func (d dir) read(name string, most int64) ([]byte, identity, error) {
	// Not blocking: it may be a pipe by now.
	fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, identity{}, fmt.Errorf("opening %s: %w", filepath.Join(d.path, name), err)
	}
	f := os.NewFile(uintptr(fd), filepath.Join(d.path, name))
	defer func() { _ = f.Close() }()
	id, err := dir{fd, f.Name()}.identity()
	if err != nil {
		return nil, id, err
	}
	if id.kind() != unix.S_IFREG || id.size > most {
		return nil, id, fmt.Errorf("reading %s: it is no file, or too long", f.Name())
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("reading %s: it is too long", f.Name())
	}
	return text, id, err
}

const hashed = 256 << 10 // bytes of a file whose content is remembered, at most

// digest is the hash of a small file's bytes, if it is still the one that was
// seen.
func digest(d dir, name string, seen identity) (sum [sha256.Size]byte, ok bool) {
	text, id, err := d.read(name, hashed)
	if err != nil || id != seen {
		return sum, false
	}
	return sha256.Sum256(text), true
}
