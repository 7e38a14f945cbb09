package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// harden keeps the process's memory to itself before it holds a secret: no
// core dump is written, and no debugger may attach. What remains is macOS's own
// guard of a process's memory, which asks for an entitlement or for root.
func harden() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("setting the core limit: %w", err)
	}
	if err := unix.PtraceDenyAttach(); err != nil {
		return fmt.Errorf("keeping debuggers away: %w", err)
	}
	return nil
}
