//go:build linux

package netns

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// chainProcesses is what the launcher's threads and bwrap's processes take of
// RLIMIT_NPROC, which counts every task of the user namespace.
const chainProcesses = 16

// set sets the limits of the calling process. The number of processes comes
// last, by a raw call: a Go process that is refused a thread dies, so nothing
// that may need one follows.
func (l Limits) set() error {
	for _, r := range []struct {
		resource int
		value    uint64
	}{{syscall.RLIMIT_NOFILE, l.OpenFiles}, {syscall.RLIMIT_CPU, l.CPUSeconds}, {syscall.RLIMIT_DATA, l.Data}} {
		if r.value == 0 {
			continue
		}
		if err := lower(r.resource, r.value); err != nil {
			return fmt.Errorf("setting a limit: %w", err)
		}
	}
	if l.Processes == 0 {
		return nil
	}
	limit := unix.Rlimit{Cur: l.Processes + chainProcesses, Max: l.Processes + chainProcesses}
	return unix.Prlimit(0, unix.RLIMIT_NPROC, &limit, nil)
}

// lower sets a limit, or leaves a stricter hard one. syscall.Setrlimit, not
// unix's: it makes the runtime forget the value it would give back at exec.
func lower(resource int, value uint64) error {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(resource, &old); err != nil {
		return err
	}
	value = min(value, old.Max)
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
}
