//go:build linux

package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// dumpable guards the few moments in which the process may be looked at by
// others of its uid: the flag is the whole process's, so two starts must not
// interleave.
var dumpable sync.Mutex

// conceal keeps other processes of our uid from reading our memory and
// descriptors: egressd holds secrets. What its own parent left open goes to no
// child.
func conceal() error {
	dumpable.Lock()
	defer dumpable.Unlock()
	return concealLocked()
}

func concealLocked() error {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping descriptors from children: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hiding the process's memory: %w", err)
	}
	return nil
}

// A child is a process of the chain. The thread that started it is kept until
// it ends: its death signal is bound to that thread, not to egressd.
type child struct {
	process *os.Process
	ended   chan struct{} // closed at its end
	state   *os.ProcessState
}

// startChild starts cmd so that it dies with egressd. The kernel lets nobody
// but a dumpable process write the child's id maps, so egressd is dumpable for
// the length of the fork, about a millisecond.
func startChild(cmd *exec.Cmd) (*child, error) {
	c := &child{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		if err := forkDumpable(cmd); err != nil {
			started <- err
			return
		}
		c.process = cmd.Process
		started <- nil
		_ = cmd.Wait() // the launcher reports the program's status
		c.state = cmd.ProcessState
		close(c.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

func forkDumpable(cmd *exec.Cmd) error {
	dumpable.Lock()
	defer dumpable.Unlock()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("allowing the id maps: %w", err)
	}
	err := cmd.Start()
	return errors.Join(err, concealLocked())
}

// kill ends the child and everything below it, and waits.
func (c *child) kill() {
	_ = c.process.Kill() // it has ended already
	<-c.ended
}

// namespaces are the attributes of the helper: what it is to own, who it is in
// it, and that it ends with us.
func namespaces(id identity, network bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: id.uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: id.gid, Size: 1}},
		Setsid:      true,
		Pdeathsig:   syscall.SIGKILL,
	}
	if network {
		attr.Cloneflags |= syscall.CLONE_NEWNET
	}
	if id.root {
		attr.GidMappingsEnableSetgroups = true
		attr.Credential = &syscall.Credential{Uid: 0, Gid: 0, Groups: []uint32{}}
	}
	return attr
}
