//go:build linux

package netns

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A stage is a process that becomes a command of a standing session. It is
// started before there is a command for it: to start egressd's own binary takes
// longer than most commands do.
type stage struct {
	pid int
	c   *control
}

// stageControl is a stage's one descriptor beside the standard ones.
const stageControl = 3

// newStage starts one. It has a session of its own, so that there is no group
// that its command could move to.
func newStage() (*stage, error) {
	c, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	defer func() { _ = null.Close() }()
	pid, err := syscall.ForkExec(ownImage, []string{launcherPath, stageWord}, &syscall.ProcAttr{
		Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true},
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd()},
	})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return &stage{pid, c}, nil
}

// play hands a command over: its spec, the streams that m says are carried, and
// where an execError goes. The stage has no further use for its control.
func (s *stage) play(m message, files ...*os.File) error {
	return errors.Join(s.c.send(message{Kind: kindExec, Carried: m.Carried}, files...), s.c.close())
}

// awaitCommand is what a stage does: it waits, and becomes the command.
func awaitCommand() {
	if unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return
	}
	c, err := openControl(stageControl)
	if err != nil {
		return
	}
	m, files, err := c.receive()
	if err != nil || len(files) != 2+len(m.Carried) {
		return // it is not needed any more
	}
	errs := files[len(files)-1]
	if err := redirect(m.Carried, files[1:len(files)-1]); err != nil {
		fail(errs, err)
		return
	}
	becomeProgram(files[0], errs)
}

// redirect puts the streams that are carried in the place of /dev/null.
func redirect(carried []int, files []*os.File) error {
	for i, n := range carried {
		if n < 0 || n > 2 {
			return errors.New("there are three streams")
		}
		if err := unix.Dup3(int(files[i].Fd()), n, 0); err != nil {
			return fmt.Errorf("taking a stream: %w", err)
		}
	}
	return nil
}
