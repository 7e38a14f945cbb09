//go:build linux

package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// idmapFor is a user namespace for idmapped mounts in which root is the given
// invented uid and gid, and every other id itself: what root owns on the host
// belongs to the sandbox's user in such a mount, and what that user makes in
// it belongs to root.
//
// A namespace needs a process to be born with. It is held by ptrace at its
// exec, so not one instruction of it runs.
func idmapFor(uid, gid int) (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result)
	count := idsMapped()
	go func() {
		runtime.LockOSThread() // ptrace is between threads; this one ends with the function
		f, err := heldNamespace(extents(uid, count), extents(gid, count))
		done <- result{f, err}
	}()
	r := <-done
	return r.file, r.err
}

// extents maps 0 to id and every other one of count ids to itself.
func extents(id, count int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: id, Size: 1},
		{ContainerID: 1, HostID: 1, Size: id - 1},
		{ContainerID: id + 1, HostID: id + 1, Size: count - id - 1},
	}
}

func heldNamespace(uids, gids []syscall.SysProcIDMap) (*os.File, error) {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{idmapName}, &syscall.ProcAttr{
		Env: []string{},
		Sys: &syscall.SysProcAttr{Ptrace: true, Cloneflags: syscall.CLONE_NEWUSER, UidMappings: uids, GidMappings: gids,
			Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return nil, fmt.Errorf("making a user namespace for an idmap: %w", err)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
	if kill := unix.Kill(pid, unix.SIGKILL); kill != nil {
		err = errors.Join(err, kill)
	}
	for {
		var status unix.WaitStatus
		_, waitErr := unix.Wait4(pid, &status, 0, nil)
		if waitErr == nil && !status.Exited() && !status.Signaled() || errors.Is(waitErr, unix.EINTR) {
			continue // the stop at its exec
		}
		break
	}
	if err != nil {
		return nil, fmt.Errorf("making a user namespace for an idmap: %w", err)
	}
	return f, nil
}
