//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockTime is how long another egressd may take with its own group.
const lockTime = time.Second

// lock keeps others of our kind from making or removing groups in a folder.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening a cgroup: %w", err)
	}
	for end := time.Now().Add(lockTime); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("locking a cgroup: %w", err), f.Close())
		}
	}
}

// sweep removes the groups of egressds that died without doing so. One with
// processes in it cannot be removed, whoever's it is.
func (p place) sweep() {
	for _, dir := range p.groups() {
		if unlock, err := lockNow(dir); err == nil {
			_ = os.Remove(dir)
			unlock()
		}
	}
}

func lockNow(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// groups are the folders of our sessions in the place.
func (p place) groups() []string {
	list, err := filepath.Glob(filepath.Join(p.folder, prefix+"*"))
	if err != nil {
		return nil
	}
	return list
}

// toLeaf moves this process out of its group, which may then hand controllers
// down. Nobody else is moved.
func (p place) toLeaf(controllers []string) error {
	pid := strconv.Itoa(os.Getpid())
	there, err := os.ReadFile(filepath.Join(p.folder, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("reading a cgroup: %w", err)
	}
	if strings.TrimSpace(string(there)) != pid {
		return fmt.Errorf("this process is not alone in its cgroup (%s), which hands nothing down", p.folder)
	}
	leaf := filepath.Join(p.folder, self)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making a cgroup: %w", err)
	}
	err = write(leaf, "cgroup.procs", pid)
	if err == nil {
		err = write(p.folder, "cgroup.subtree_control", "+"+strings.Join(controllers, " +"))
	}
	if err != nil {
		return errors.Join(err, p.back())
	}
	return nil
}

// back undoes toLeaf, unless another session still needs it.
func (p place) back() error {
	if !p.left || len(p.groups()) > 0 {
		return nil
	}
	handed, err := os.ReadFile(filepath.Join(p.folder, "cgroup.subtree_control"))
	if err != nil {
		return fmt.Errorf("reading a cgroup: %w", err)
	}
	if list := strings.Fields(string(handed)); len(list) > 0 {
		if err := write(p.folder, "cgroup.subtree_control", "-"+strings.Join(list, " -")); err != nil {
			return err
		}
	}
	if err := write(p.folder, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(p.folder, self)); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("removing a cgroup: %w", err)
	}
	return nil
}
