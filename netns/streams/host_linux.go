package streams

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Requests that read and set a terminal's modes.
const (
	getModes = unix.TCGETS
	setModes = unix.TCSETS
)

// The numbers of /dev/null.
const nullMajor, nullMinor = 1, 3

func sameDevice(st *unix.Stat_t, major, minor uint32) bool {
	return unix.Major(st.Rdev) == major && unix.Minor(st.Rdev) == minor
}

// pipe makes one that no child inherits.
func pipe(ends *[2]int) error { return unix.Pipe2(ends[:], unix.O_CLOEXEC) }

// pieceSize is how many bytes one call moves at most.
const pieceSize = 1 << 20

// splice moves one piece without a copy through this process.
func splice(to, from int) (int64, error) {
	return unix.Splice(from, nil, to, nil, pieceSize, unix.SPLICE_F_MOVE)
}

// pending says whether a signal for this process was not yet taken by any of its
// threads.
func pending(s unix.Signal) bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(text, []byte("\nShdPnd:\t"))
	if !ok {
		return false
	}
	mask, _, _ := bytes.Cut(rest, []byte("\n"))
	set, err := strconv.ParseUint(string(mask), 16, 64)
	return err == nil && set&(1<<(s-1)) != 0
}
