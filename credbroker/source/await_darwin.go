package source

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributes are those of a program that is started for a secret. macOS has
// nothing that would end it with egressd; its time is bounded.
func attributes() *unix.SysProcAttr {
	return &unix.SysProcAttr{Setsid: true}
}

// awaitExit waits until a child has ended and leaves it to be reaped, so that
// its number, and its group's, is not given to another process. x/sys has no
// waitid for this system; the numbers are those of <sys/wait.h>.
func awaitExit(pid int) {
	const pPid, wExited, wNoWait = 1, 4, 0x20
	var info [16]uint64 // siginfo_t, 104 bytes
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPid, uintptr(pid), uintptr(unsafe.Pointer(&info)), wExited|wNoWait, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
