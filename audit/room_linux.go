package audit

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE: the blocks are there, the file's length
// stays, so that a reader never sees a byte that was not written.
const keepSize = 1

// allocate makes the disk hold blocks for n bytes of f from offset on.
func allocate(f *os.File, offset, n int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), keepSize, offset, n)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
			return hasRoom(f, n)
		default:
			return err
		}
	}
}
