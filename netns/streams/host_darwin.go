package streams

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Requests that read and set a terminal's modes.
const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
)

// The numbers of /dev/null.
const nullMajor, nullMinor = 3, 2

func sameDevice(st *unix.Stat_t, major, minor uint32) bool {
	dev := uint64(uint32(st.Rdev))
	return unix.Major(dev) == major && unix.Minor(dev) == minor
}

// pipe makes one that no child inherits: none is started between its two steps.
func pipe(ends *[2]int) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(ends[:]); err != nil {
		return err
	}
	unix.CloseOnExec(ends[0])
	unix.CloseOnExec(ends[1])
	return nil
}

// splice is not to be had here: pieces are copied.
func splice(int, int) (int64, error) { return 0, unix.ENOSYS }

// pending cannot be asked for here.
func pending(unix.Signal) bool { return false }
