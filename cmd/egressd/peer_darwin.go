package main

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// parents bounds the way from a process to the first.
const parents = 1000

// foreignPeer says why the process at the other end must not be served, or ""
// when it may: it needs our uid (or root's), and must not have been started by
// us, as what runs in the sandbox has. A process of the sandbox that has left
// its parent would pass, but its profile lets it dial no such socket: that comes
// first, and this second.
func foreignPeer(c *net.UnixConn, uid int) string {
	const blind = "its socket cannot be looked at"
	raw, err := c.SyscallConn()
	if err != nil {
		return blind
	}
	reason := blind
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err != nil {
			return
		}
		if int(cred.Uid) != uid && cred.Uid != 0 {
			reason = fmt.Sprintf("its uid is %d", cred.Uid)
			return
		}
		pid, err := unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		if err != nil {
			return
		}
		reason = startedByUs(pid)
	})
	if err != nil {
		return blind
	}
	return reason
}

// startedByUs looks at the parents of a process.
func startedByUs(pid int) string {
	for range parents {
		if pid <= 1 {
			return ""
		}
		p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		if err != nil {
			return "its process is gone"
		}
		if int(p.Eproc.Ppid) == unix.Getpid() {
			return "it runs in the sandbox"
		}
		pid = int(p.Eproc.Ppid)
	}
	return "its parents have no end"
}
