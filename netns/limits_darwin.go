package netns

import (
	"errors"
	"fmt"
	"syscall"
)

// set sets the limits of the calling process, which becomes the program. The
// kernel keeps no process to an amount of memory, and counts processes by user
// and not by sandbox.
func (l Limits) set() error {
	if l.Memory > 0 || l.Processes > 0 {
		return errors.New("setting a limit: macOS bounds neither memory nor the number of processes of a sandbox")
	}
	for _, r := range []struct {
		resource int
		value    uint64
	}{{syscall.RLIMIT_NOFILE, l.OpenFiles}, {syscall.RLIMIT_CPU, l.CPUSeconds}} {
		if r.value == 0 {
			continue
		}
		var old syscall.Rlimit
		err := syscall.Getrlimit(r.resource, &old)
		if err == nil {
			value := min(r.value, old.Max)
			err = syscall.Setrlimit(r.resource, &syscall.Rlimit{Cur: value, Max: value})
		}
		if err != nil {
			return fmt.Errorf("setting a limit: %w", err)
		}
	}
	return nil
}
