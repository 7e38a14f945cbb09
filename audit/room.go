package audit

import (
	"os"
	"syscall"
)

// hasRoom is the weaker promise where a file system cannot allocate ahead
// (NFS before 4.2, ZFS): the room is there now, and nobody holds it for us.
func hasRoom(f *os.File, n int64) error {
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &st); err != nil {
		return err
	}
	if free := uint64(st.Bavail) * uint64(st.Bsize); free < uint64(n) {
		return syscall.ENOSPC
	}
	return nil
}
