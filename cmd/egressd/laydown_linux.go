package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// layDown makes the calling thread one of the user's as far as files go.
func layDown(uid, gid int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leaving root's groups: %w", errno)
	}
	for _, err := range []error{unix.Setfsgid(gid), unix.Setfsuid(uid)} {
		if err != nil {
			return fmt.Errorf("becoming the sandbox's user: %w", err)
		}
	}
	if now, err := unix.SetfsuidRetUid(-1); err != nil || now != uid {
		return fmt.Errorf("becoming the sandbox's user: still %d (%v)", now, err)
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("laying down root's rights: %w", err)
	}
	return nil
}
