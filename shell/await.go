package shell

import (
	"syscall"
	"unsafe"
)

// awaitExit waits until a child has ended and leaves it to be reaped, so that
// its number, and its group's, is not given to another process.
func awaitExit(pid int) {
	const pPid, wExited = 1, 4
	var info [16]uint64 // siginfo_t, 128 bytes
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPid, uintptr(pid), uintptr(unsafe.Pointer(&info)), wExited|wNoWait, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
