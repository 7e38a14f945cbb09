//go:build linux

package fork

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// file copies a regular file. One of several names is copied once and linked
// after that.
func (k *copier) file(f *folder, name, rel string) error {
	// Without O_NONBLOCK a pipe put in its place would be waited for.
	src, err := openAt(f.src, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return k.gone(rel, err)
	}
	defer func() { _ = src.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(int(src.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		k.leave(outChanged, rel)
		return nil
	}
	dst, err := k.create(f, name, rel, &st)
	if err != nil || dst == nil {
		return err
	}
	defer func() { _ = dst.Close() }()
	if err := k.data(src, dst, &st); err != nil {
		return err
	}
	if err := k.likeOriginal(src, dst, &st); err != nil {
		return err
	}
	k.files.Add(1)
	k.bytes.Add(st.Size)
	return nil
}

// create makes the file that is to be filled; nil where it is there under
// another name, which is linked.
func (k *copier) create(f *folder, name, rel string, st *unix.Stat_t) (*os.File, error) {
	const how = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if st.Nlink > 1 {
		k.mu.Lock()
		defer k.mu.Unlock()
		if first, ok := k.linked[inodeOf(st)]; ok {
			err := unix.Linkat(int(k.root.Fd()), first, int(f.dst.Fd()), name, 0)
			// A name that is too long, or one link too many: then a file of its own.
			if !errors.Is(err, unix.ENAMETOOLONG) && !errors.Is(err, unix.EMLINK) {
				return nil, err
			}
		}
		k.linked[inodeOf(st)] = rel
	}
	fd, err := unix.Openat(int(f.dst.Fd()), name, how, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// chunk is how much is copied before it is seen whether to go on.
const chunk = 64 << 20

// data fills a file: with the original's blocks, else with what they hold.
func (k *copier) data(src, dst *os.File, st *unix.Stat_t) error {
	if st.Size == 0 {
		return nil
	}
	if _, no := k.noClone.Load(st.Dev); !no {
		err := unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
		switch {
		case err == nil:
			k.shared.Store(true)
			return nil
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EIO):
			return err
		}
		k.noClone.Store(st.Dev, true)
	}
	if st.Blocks*512 >= st.Size {
		_, err := k.span(src, dst, 0, st.Size)
		return err
	}
	in := int(src.Fd())
	for at := int64(0); at < st.Size; {
		begin, err := unix.Seek(in, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole is left
		}
		end := st.Size
		if err == nil {
			end, err = unix.Seek(in, begin, unix.SEEK_HOLE)
		}
		if err != nil { // a file system that knows no holes
			begin, end = at, st.Size
		}
		whole, err := k.span(src, dst, begin, min(end, st.Size))
		if err != nil {
			return err
		}
		if !whole {
			break
		}
		at = end
	}
	return unix.Ftruncate(int(dst.Fd()), st.Size)
}

// span copies the bytes from begin to end. whole is false where the file ends
// before that.
func (k *copier) span(src, dst *os.File, begin, end int64) (whole bool, err error) {
	in, out := int(src.Fd()), int(dst.Fd())
	var buf []byte
	for at := begin; at < end; {
		if err := k.ctx.Err(); err != nil {
			return false, err
		}
		var n int
		if buf == nil {
			from, to := at, at
			n, err = unix.CopyFileRange(in, &from, out, &to, int(min(end-at, chunk)), 0)
			if err != nil && !full(err) {
				buf = make([]byte, 256<<10) // not between these file systems
				continue
			}
		} else if n, err = unix.Pread(in, buf[:min(end-at, int64(len(buf)))], at); err == nil && n > 0 {
			n, err = unix.Pwrite(out, buf[:n], at)
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, err
		case n == 0:
			return false, nil
		default:
			at += int64(n)
		}
	}
	return true, nil
}

func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// likeOriginal gives a copy the owner, where that can be, the attributes, the
// mode and the times of the original. A file is no set-uid program in it.
func (k *copier) likeOriginal(src, dst *os.File, st *unix.Stat_t) error {
	out := int(dst.Fd())
	switch {
	case k.super:
		if err := unix.Fchown(out, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	case int(st.Gid) != k.gid:
		_ = unix.Fchown(out, -1, int(st.Gid)) // only if it is one of the caller's groups
	}
	attributes := listAttributes(src)
	copyAttributes(src, dst, attributes, "user.") // while it may be written
	mode := st.Mode & 0o1777
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		mode |= st.Mode & unix.S_ISGID
	}
	if err := unix.Fchmod(out, mode); err != nil {
		return err
	}
	copyAttributes(src, dst, attributes, "system.posix_acl_")
	return unix.UtimesNanoAt(out, "", []unix.Timespec{st.Atim, st.Mtim}, unix.AT_EMPTY_PATH)
}

func listAttributes(src *os.File) []string {
	n, err := unix.Flistxattr(int(src.Fd()), nil)
	if err != nil || n == 0 {
		return nil
	}
	buf := make([]byte, n)
	if n, err = unix.Flistxattr(int(src.Fd()), buf); err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
}

// copyAttributes copies those of a kind, as far as they can be had: no program
// depends on every file system having them.
func copyAttributes(src, dst *os.File, names []string, kind string) {
	for _, name := range names {
		if !strings.HasPrefix(name, kind) {
			continue
		}
		n, err := unix.Fgetxattr(int(src.Fd()), name, nil)
		if err != nil {
			continue
		}
		value := make([]byte, n)
		if n, err = unix.Fgetxattr(int(src.Fd()), name, value); err == nil {
			_ = unix.Fsetxattr(int(dst.Fd()), name, value[:n], 0)
		}
	}
}
