//go:build linux

package netns

import (
	"fmt"
	"os"
	"os/signal"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// WakeAfter has the kernel send this process SIGCONT after a time, so that it
// goes on then even if it is stopped, as by Ctrl-Z: a time-out must not wait for
// somebody to type fg. It comes again each second, should the process be about
// to stop just then: for that the signal must be one that is not ignored, or the
// kernel (since 6.13) keeps the timer back after the first. stop takes it back.
func WakeAfter(d time.Duration) (stop func(), err error) {
	// struct sigevent of the kernel's ABI, 64 bytes.
	event := struct {
		value  uint64
		signo  int32
		notify int32
		_      [48]byte
	}{signo: int32(unix.SIGCONT), notify: 0} // SIGEV_SIGNAL
	var id int32
	if _, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&id))); errno != 0 {
		return nil, fmt.Errorf("setting an alarm: %w", errno)
	}
	heard := make(chan os.Signal, 1) // nobody listens: it only has to be caught
	signal.Notify(heard, unix.SIGCONT)
	stop = func() {
		_, _, _ = unix.Syscall(unix.SYS_TIMER_DELETE, uintptr(id), 0, 0)
		signal.Stop(heard)
	}
	when := struct{ interval, value unix.Timespec }{unix.NsecToTimespec(int64(time.Second)), unix.NsecToTimespec(int64(d))}
	if _, _, errno := unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(id), 0, uintptr(unsafe.Pointer(&when)), 0, 0, 0); errno != 0 {
		stop()
		return nil, fmt.Errorf("setting an alarm: %w", errno)
	}
	return stop, nil
}
