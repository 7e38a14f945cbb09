package survey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// reader reads folders, one at a time, with one buffer.
type reader struct {
	walk *walk
	buf  []byte
}

// bufSize holds some thousand names.
const bufSize = 64 << 10

// stays is how every folder is opened: from the root, through no link and not
// out of it.
const stays = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

func openTop(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "openat2", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// attempts is how often a folder is opened while others rename beside it, which
// makes the kernel doubt that the path stays below the root.
const attempts = 100

func (r *reader) open(rel string) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NONBLOCK, Resolve: stays}
	for range attempts {
		fd, err = unix.Openat2(int(r.walk.top.Fd()), rel, &how)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return fd, err
}

// folder reads one folder, named from the root.
func (r *reader) folder(rel string) look {
	s := sorter{walk: r.walk, rel: rel, inGit: filepath.Base(rel) == ".git"}
	s.read = true
	fd, err := r.open(rel)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return s.look // it went away
	case err != nil:
		s.closed = !errors.Is(err, unix.EACCES) || r.couldOpen(rel)
		return s.look
	}
	defer func() { _ = unix.Close(fd) }()
	s.stamp(fd)
	if r.buf == nil {
		r.buf = make([]byte, bufSize)
	}
	room := -1
	if w := r.walk; w.config.MaxEntries > 0 && rel != "." {
		room = max(w.config.MaxEntries-w.spent, 1)
	}
	for {
		n, err := unix.Getdents(fd, r.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			s.closed = true
			break
		}
		if n == 0 {
			s.whole = true
			break
		}
		if s.cut = !s.all(fd, r.buf[:n], room); s.cut {
			break
		}
	}
	s.end()
	return s.look
}

// all takes the names of one answer of the kernel. It reports whether there
// was room for all.
func (s *sorter) all(fd int, buf []byte, room int) bool {
	for len(buf) >= direntName {
		size := int(binary.NativeEndian.Uint16(buf[direntSize:]))
		if size < direntName || size > len(buf) {
			return true
		}
		name := buf[direntName:size]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		of := buf[direntType]
		buf = buf[size:]
		if len(name) == 0 || name[0] == '.' && (len(name) == 1 || len(name) == 2 && name[1] == '.') {
			continue
		}
		if s.entries == room {
			return false
		}
		s.see(name, kindOf(fd, name, of))
	}
	return true
}

// Where the parts of a struct linux_dirent64 begin.
const (
	direntSize = 16
	direntType = 18
	direntName = 19
)

// kindOf asks for the file itself only where the file system does not tell its
// type with the name.
func kindOf(fd int, name []byte, of byte) kind {
	switch of {
	case unix.DT_DIR:
		return folder
	case unix.DT_SOCK:
		return socket
	case unix.DT_LNK:
		return link
	case unix.DT_UNKNOWN:
		var st unix.Stat_t
		if unix.Fstatat(fd, string(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return file
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			return folder
		case unix.S_IFSOCK:
			return socket
		case unix.S_IFLNK:
			return link
		}
	}
	return file
}

// couldOpen reports whether what lies in a folder that we may not read could
// still be reached by the sandbox, which has our uid: it may go through the
// folder to a name it knows, or give itself the right to read it.
func (r *reader) couldOpen(rel string) bool {
	fd, err := unix.Openat2(int(r.walk.top.Fd()), rel, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: stays})
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return true
	}
	return int(st.Uid) == os.Geteuid() || unix.Faccessat(fd, "", unix.X_OK, unix.AT_EACCESS|unix.AT_EMPTY_PATH) == nil
}
