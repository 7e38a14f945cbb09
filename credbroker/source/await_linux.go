package source

import "golang.org/x/sys/unix"

// attributes are those of a program that is started for a secret: it ends with
// the thread that started it.
func attributes() *unix.SysProcAttr {
	return &unix.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
}

// awaitExit waits until a child has ended and leaves it to be reaped, so that
// its number, and its group's, is not given to another process.
func awaitExit(pid int) {
	var info unix.Siginfo
	for unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
