package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// harden keeps the process's memory to itself before it holds a secret: no
// core dump is written, and no other process of the same user may look into
// it. Starts of sandboxes, which the kernel allows only to processes that may
// be looked at, lift the second for the length of a fork (package netns).
func harden() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("setting the core limit: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hiding the process's memory: %w", err)
	}
	return nil
}
