package proxytest

import (
	"errors"
	"syscall"
)

// Mount needs Linux.
func Mount(_, target, _, _ string) error {
	return errors.New("mounting " + target + " for a test: macOS has no mount namespaces")
}

// UserNamespace is nothing on macOS: the program starts as any other.
func UserNamespace(int, int, int) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// Unread is the request that asks a terminal how much nobody has read.
const Unread = 0x4004667f // FIONREAD
