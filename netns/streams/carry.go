package streams

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// carry copies from one descriptor to another until the first ends, by splice
// where the kernel can (one of the two is always a pipe of ours), so that the
// bytes never enter this process. Not into a regular file: splice takes and sets
// the file's position without its lock, so that whoever else writes to the same
// open file, as with 2>&1, would be overwritten. A reader that is gone is no error: the
// caller closes the other end and the writer learns it the usual way.
func carry(to, from int) error {
	for spliceable := !positioned(to); ; {
		var n int64
		var err error
		if spliceable {
			n, err = splice(to, from)
			if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
				spliceable = false // a device, or a file opened for appending
				continue
			}
		} else {
			n, err = copyPiece(to, from)
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN): // whoever opened it made it non-blocking
			if err := wait(to, from); err != nil {
				return err
			}
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
			return nil
		case err != nil:
			return err
		case n == 0:
			return nil
		}
	}
}

// positioned reports whether a descriptor has a place in a file. splice keeps
// that to itself while it waits and then puts back what it found, although
// somebody else (the other stream of `>file 2>&1`, the shell that called us)
// may have written behind it: theirs would be written over.
func positioned(fd int) bool {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return err != nil || st.Mode&unix.S_IFMT == unix.S_IFREG || st.Mode&unix.S_IFMT == unix.S_IFBLK
}

// copyPiece moves one piece through this process.
func copyPiece(to, from int) (int64, error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Read(from, buf)
	if err != nil || n == 0 {
		return 0, err
	}
	for done := 0; done < n; {
		m, err := unix.Write(to, buf[done:n])
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(to), Events: unix.POLLOUT}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return int64(done), err
			}
		case err != nil:
			return int64(done), err
		default:
			done += m
		}
	}
	return int64(n), nil
}

// wait returns when from can be read, and then when to can be written.
func wait(to, from int) error {
	for _, fd := range []unix.PollFd{{Fd: int32(from), Events: unix.POLLIN}, {Fd: int32(to), Events: unix.POLLOUT}} {
		for {
			if _, err := unix.Poll([]unix.PollFd{fd}, -1); err == nil {
				break
			} else if !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	}
	return nil
}

// apart gives a descriptor of its own number: the runtime ends the process
// when a write to 1 or 2 fails with EPIPE.
func apart(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return nil, fmt.Errorf("copying a descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
