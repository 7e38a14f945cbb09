//go:build linux

package netns

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// What the chain itself takes beside the program.
const (
	// chainProcesses is what the launcher's threads and bwrap's processes take of
	// RLIMIT_NPROC, which counts every task of the user namespace.
	chainProcesses = 16
	// chainTasks is what the keeper's take too.
	chainTasks = 2 * chainProcesses
	// spareTasks are threads that the Go programs of the chain may come to need
	// beside those that they have when the program is about to start: one that is
	// refused a thread dies, and the sandbox with it.
	spareTasks = 6
	// chainMemory is what they and their files in memory take, in bytes.
	chainMemory = 24 << 20
)

// shared says that something is limited for the whole tree, not for each
// process alone.
func (l Limits) shared() bool { return l.Memory > 0 || l.Processes > 0 || l.CPUSeconds > 0 }

// ofEach are the limits of each process. In a cgroup the tree's are the
// group's. The kernel counts processes by user and user namespace: firejail,
// which makes none, would have those of the host counted.
func (s *Session) ofEach() Limits {
	l := s.cfg.Limits
	if s.group != nil {
		return Limits{OpenFiles: l.OpenFiles}
	}
	if s.cfg.Firejail != "" {
		l.Processes = 0
	}
	return l
}

// set sets the limits of the calling process. The number of processes comes
// last, by a raw call: a Go process that is refused a thread dies, so nothing
// that may need one follows.
func (l Limits) set() error {
	for _, r := range []struct {
		resource   int
		soft, hard uint64
	}{
		{syscall.RLIMIT_NOFILE, l.OpenFiles, l.OpenFiles},
		// SIGXCPU at the first, which a program may take as a warning, and SIGKILL
		// at the second.
		{syscall.RLIMIT_CPU, l.CPUSeconds, l.CPUSeconds + 1},
		{syscall.RLIMIT_DATA, l.Memory, l.Memory},
	} {
		if r.soft == 0 {
			continue
		}
		if err := lower(r.resource, r.soft, r.hard); err != nil {
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
func lower(resource int, soft, hard uint64) error {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(resource, &old); err != nil {
		return err
	}
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: min(soft, old.Max), Max: min(hard, old.Max)})
}
