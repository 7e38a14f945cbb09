package netns

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// terminalPair is a terminal of the host's that is the program's alone.
type terminalPair struct {
	name   string // of the slave, such as /dev/ttys003
	master *os.File
	own    *os.File // another descriptor of the master: master is given away
	slave  *os.File
}

// openTerminal makes one that belongs to a user.
func openTerminal(uid int) (t *terminalPair, err error) {
	t = &terminalPair{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("making a terminal: %w", err), t.close())
			t = nil
		}
	}()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return t, err
	}
	t.master = os.NewFile(uintptr(fd), "terminal")
	var name [128]byte // as TIOCPTYGNAME has it
	for _, request := range []struct {
		number uintptr
		arg    unsafe.Pointer
	}{{unix.TIOCPTYGRANT, nil}, {unix.TIOCPTYUNLK, nil}, {unix.TIOCPTYGNAME, unsafe.Pointer(&name)}} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request.number, uintptr(request.arg)); errno != 0 {
			return t, errno
		}
	}
	t.name = string(name[:max(bytes.IndexByte(name[:], 0), 0)])
	if t.slave, err = os.OpenFile(t.name, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return t, err
	}
	if os.Geteuid() == 0 {
		if err = t.slave.Chown(uid, -1); err != nil {
			return t, err
		}
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 10)
	if err == nil {
		t.own = os.NewFile(uintptr(own), "terminal")
	}
	return t, err
}

// foreground is the process group in the foreground, or 0.
func (t *terminalPair) foreground() int {
	group, err := unix.IoctlGetInt(int(t.own.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// close lets go of all but the master, which is somebody else's by then or was
// never given away.
func (t *terminalPair) close() error {
	var errs []error
	for _, f := range []*os.File{t.own, t.slave} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
