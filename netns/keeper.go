//go:build linux

package netns

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// keepBwrap starts bwrap below the helper, which stays as the keeper where
// something is hidden or read-only in a grant. Nothing but the keeper's control
// stays open in it.
func keepBwrap(task *helperTask, bwrap *os.File, talk *control) error {
	files, err := bwrapInput(task)
	if err != nil {
		return err
	}
	keeper, err := openControl(helperKeeper)
	if err != nil {
		return err
	}
	image, err := aside(bwrap, files)
	if err != nil {
		return err
	}
	argv := bwrapCommand(task.BwrapArgv0, 3, 4, 5)
	pid, err := syscall.ForkExec("/proc/self/fd/"+strconv.Itoa(int(image.Fd())), argv, &syscall.ProcAttr{
		Env: []string{}, Files: []uintptr{0, 1, 2, helperLauncher, files[0].Fd(), files[1].Fd()},
	})
	if err != nil {
		return fmt.Errorf("executing bwrap: %w", err)
	}
	go func() {
		// bwrap has the last word, and with the first process of the namespace all
		// others end.
		for {
			var status unix.WaitStatus
			if _, err := unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
				syscall.Exit(status.ExitStatus())
			}
		}
	}()
	closeFiles(append(files, image, bwrap))
	_ = unix.Close(helperLauncher) // else its end would never be seen
	if task.Image {
		_ = unix.Close(helperImage)
	}
	_ = talk.close() // says that bwrap runs
	keep(keeper, &task.Plan)
	select {} // egressd is gone, and so will this be
}

// keep makes the late mounts when it is asked to, and puts masks and read-only
// parts back where the host's own doings have taken them off. Only a process of
// the helper's namespaces can: it has the right to the sandbox's mounts, which
// lie below them, and egressd has not. It ends with the control.
func keep(c *control, p *mount.Plan) {
	for {
		m, files, err := c.receive()
		closeFiles(files)
		if err != nil {
			return
		}
		answer := message{Kind: m.Kind, ID: m.ID}
		switch {
		case m.Kind == kindLate:
			err = inSandbox(func(ns int) error { return mount.Late(ns, p) })
		case m.Spot != nil:
			err = inSandbox(func(ns int) error { return mount.Mend(ns, *m.Spot) })
		default:
			err = errors.New("mending: nothing is named")
		}
		if err != nil {
			answer.Error = err.Error()
		}
		if c.send(answer) != nil {
			return
		}
	}
}

// inSandbox does it on a thread of its own, which is in the sandbox's mount
// namespace then and ends there.
func inSandbox(do func(ns int) error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			ns, err := sandboxMounts()
			if err != nil {
				return err
			}
			defer func() { _ = ns.Close() }()
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return fmt.Errorf("leaving the others' root: %w", err)
			}
			return do(int(ns.Fd()))
		}()
	}()
	return <-done
}

// sandboxMounts is the mount namespace of the launcher, and so of everything
// in the sandbox: nobody there can make another.
func sandboxMounts() (*os.File, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, fmt.Errorf("finding the launcher: %w", err)
	}
	start := []byte(launcherPath + "\x00" + launcherWord + "\x00")
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && bytes.HasPrefix(line, start) {
			ns, err := os.Open(filepath.Join(filepath.Dir(path), "ns", "mnt"))
			if err != nil {
				return nil, fmt.Errorf("finding the launcher: %w", err)
			}
			return ns, nil
		}
	}
	return nil, errors.New("finding the launcher: it is not there")
}
