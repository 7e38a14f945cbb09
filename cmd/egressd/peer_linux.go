package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// soPeerPidfd is SO_PEERPIDFD of Linux 6.5, which x/sys has no name for on
// every architecture.
const soPeerPidfd = 0x4d

// foreignPeer says why the process at the other end must not be served, or ""
// when it may: it needs our uid (or root's) and our user namespace. A process
// of the sandbox has the uid, but never the namespace. The pidfd pins the
// process, so that its number cannot have become another's while we looked.
func foreignPeer(c *net.UnixConn, uid int) string {
	raw, err := c.SyscallConn()
	if err != nil {
		return "its socket cannot be looked at"
	}
	reason := "its socket cannot be looked at"
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return
		}
		if int(cred.Uid) != uid && cred.Uid != 0 {
			reason = fmt.Sprintf("its uid is %d", cred.Uid)
			return
		}
		reason = foreignNamespace(int(fd), int(cred.Pid))
	})
	if err != nil {
		return "its socket cannot be looked at"
	}
	return reason
}

func foreignNamespace(fd, pid int) string {
	start := startTime(pid)
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soPeerPidfd)
	if err != nil {
		if pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
			return "its process is gone"
		}
		if start == "" || startTime(pid) != start {
			return "its process is gone"
		}
	}
	defer unix.Close(pidfd)
	theirs, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/user")
	if err != nil {
		return "its user namespace cannot be read"
	}
	ours, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return "our user namespace cannot be read"
	}
	// Alive still: what was read under its number was its own.
	if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err != nil && err != unix.EPERM {
		return "its process is gone"
	}
	if theirs != ours {
		return "it runs in another user namespace"
	}
	return ""
}

// startTime is field 22 of /proc/PID/stat, in clock ticks since boot, or "".
func startTime(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name, field 2, may hold blanks and brackets: fields count from its end.
	f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(f) < 20 {
		return ""
	}
	return f[19]
}
