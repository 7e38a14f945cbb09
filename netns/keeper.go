//go:build linux

package netns

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// keeperControl is the keeper's one descriptor.
const keeperControl = 3

// startKeeper is the helper's last act before it becomes bwrap: the keeper is
// its child, in the same namespaces, and so ends with it.
func startKeeper(control int) error {
	_, err := syscall.ForkExec("/proc/self/exe", []string{keeperName}, &syscall.ProcAttr{
		Env: []string{}, Dir: "/", Files: []uintptr{0, 1, 2, uintptr(control)},
	})
	if err != nil {
		return fmt.Errorf("starting the keeper: %w", err)
	}
	return nil
}

// keeper puts masks and read-only parts back where the host's own doings have
// taken them off. Only a process of the helper's namespaces can: it has the
// right to the sandbox's mounts, which lie below them, and egressd has not.
func keeper() {
	c, err := openControl(keeperControl)
	if err != nil {
		return
	}
	for {
		m, files, err := c.receive()
		closeFiles(files)
		if err != nil {
			return
		}
		answer := message{Kind: m.Kind, ID: m.ID}
		if m.Spot == nil {
			answer.Error = "mending: nothing is named"
		} else if err := mend(*m.Spot); err != nil {
			answer.Error = err.Error()
		}
		if c.send(answer) != nil {
			return
		}
	}
}

// mend does it on a thread of its own, which is in the sandbox's mount
// namespace then and ends there.
func mend(s mount.Spot) error {
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
				return fmt.Errorf("mending: %w", err)
			}
			return mount.Mend(int(ns.Fd()), s)
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
