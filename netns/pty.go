//go:build linux

package netns

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openPty makes a terminal in the caller's own devpts, a session for the
// caller, and the terminal its controlling one.
func openPty() (master, slave *os.File, err error) {
	if _, err := unix.Setsid(); err != nil {
		return nil, nil, fmt.Errorf("making a session: %w", err)
	}
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a terminal: %w", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("unlocking the terminal: %w", err), master.Close())
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("numbering the terminal: %w", err), master.Close())
	}
	name := fmt.Sprintf("/dev/pts/%d", n)
	sfd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("opening the terminal: %w", err), master.Close())
	}
	slave = os.NewFile(uintptr(sfd), name)
	if err := unix.IoctlSetInt(sfd, unix.TIOCSCTTY, 0); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("taking the terminal: %w", err), master.Close(), slave.Close())
	}
	return master, slave, nil
}

// checkMaster makes sure that a terminal's master is one: device 5:2.
func checkMaster(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("checking the terminal: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || unix.Major(st.Rdev) != 5 || unix.Minor(st.Rdev) != 2 {
		return errors.New("checking the terminal: what came from inside is none")
	}
	return nil
}
