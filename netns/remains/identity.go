package remains

import (
	"crypto/sha256"
	"fmt"
	"io"
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

// identityAt is the identity of a name in a folder; a link is itself.
func identityAt(dir *os.File, name string) (identity, bool) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return identity{}, false
	}
	return identityOf(&st), true
}

func identityOfFile(f *os.File) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return identity{}, fmt.Errorf("looking at %s: %w", f.Name(), err)
	}
	return identityOf(&st), nil
}

// openRoot opens a folder by an absolute path without links.
func openRoot(path string) (*os.File, error) {
	at, err := os.Open("/")
	if err != nil {
		return nil, fmt.Errorf("opening the root: %w", err)
	}
	return openBelow(at, strings.Trim(path, "/"))
}

// openBelow opens a folder below one that it closes, each from the one before:
// no link leads away.
func openBelow(at *os.File, rel string) (*os.File, error) {
	for name := range strings.SplitSeq(rel, "/") {
		if name == "" || name == "." {
			continue
		}
		next, err := openFolder(at, name)
		_ = at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func openFolder(dir *os.File, name string) (*os.File, error) {
	return open(dir, name, unix.O_DIRECTORY)
}

func open(dir *os.File, name string, how int) (*os.File, error) {
	path := filepath.Join(dir.Name(), name)
	// Not blocking: it may be a pipe by now.
	fd, err := unix.Openat(int(dir.Fd()), name, how|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// read reads a regular file of at most most bytes.
func read(dir *os.File, name string, most int64) ([]byte, identity, error) {
	f, err := open(dir, name, 0)
	if err != nil {
		return nil, identity{}, err
	}
	defer func() { _ = f.Close() }()
	id, err := identityOfFile(f)
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
func digest(dir *os.File, name string, seen identity) (sum [sha256.Size]byte, ok bool) {
	text, id, err := read(dir, name, hashed)
	if err != nil || id != seen {
		return sum, false
	}
	return sha256.Sum256(text), true
}
