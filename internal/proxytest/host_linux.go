package proxytest

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Mount mounts a file system of a kind, or binds source where kind is empty, in
// the namespaces of a test.
func Mount(source, target, kind, options string) error {
	flags := uintptr(0)
	if kind == "" {
		flags = unix.MS_BIND
	}
	return unix.Mount(source, target, kind, flags, options)
}

// UserNamespace starts a program in a user namespace of its own, in which so
// many ids from these on are what they are outside.
func UserNamespace(uid, gid, size int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: size}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: size}}}
}

// Unread is the request that asks a terminal how much nobody has read.
const Unread = unix.TIOCINQ
