package netns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// macOS ends nothing with its parent, and has no group that a process cannot
// leave. So each process of a sandbox has a mark in its environment, which those
// that it starts inherit, and at the end everything with the mark is killed, and
// what that has started. A process that has changed its environment and lost its
// parent is not found: it goes on under the profile, with no proxy to speak to.

// sweepRounds bounds the search for processes that others start meanwhile.
const sweepRounds = 20

// sweep kills everything with a mark that begins so.
func sweep(mark string) {
	for range sweepRounds {
		found := marked(mark)
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL) // it has ended already
		}
	}
}

// marked lists the processes with a mark, and their descendants.
func marked(mark string) []int {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	wanted, parent := map[int]bool{}, map[int]int{}
	for _, p := range all {
		pid := int(p.Proc.P_pid)
		const zombie = 5
		if p.Proc.P_stat == zombie || pid == os.Getpid() || pid <= 1 {
			continue
		}
		parent[pid] = int(p.Eproc.Ppid)
		if args, err := unix.SysctlRaw("kern.procargs2", pid); err == nil && bytes.Contains(args, []byte("\x00"+mark)) {
			wanted[pid] = true
		}
	}
	var out []int
	for pid := range parent {
		for at, left := pid, len(parent); at > 1 && left > 0; at, left = parent[at], left-1 {
			if wanted[at] {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}

// removeAll removes a folder although a program has taken rights from what lies
// in it.
func removeAll(folder string) error {
	if os.RemoveAll(folder) == nil {
		return nil
	}
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink == 0 {
			_ = unix.Chflags(path, 0) // "unchangeable" is a flag that its owner may set
			if d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
		}
		return nil
	})
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the sandbox's folder: %w", err)
	}
	return nil
}

// keeper is a process that outlives egressd, to do what Close could not.
type keeper struct {
	life *os.File // its end tells the keeper that egressd is gone
	cmd  *exec.Cmd
}

// keeperLife is the descriptor of the keeper's end of the pipe.
const keeperLife = 3

// startKeeper starts one. It is not under the profile, and it is nobody's group,
// so that no Ctrl-C ends it.
func (s *Session) startKeeper() (*keeper, error) {
	theirs, life, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the keeper: %w", err)
	}
	defer func() { _ = theirs.Close() }()
	cmd := &exec.Cmd{Path: s.self, Args: []string{s.self, keeperWord, s.base}, Env: []string{}, Dir: "/",
		ExtraFiles: []*os.File{theirs}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the keeper: %w", err), life.Close())
	}
	return &keeper{life, cmd}, nil
}

func (k *keeper) close() error {
	if err := errors.Join(k.life.Close(), k.cmd.Wait()); err != nil {
		return fmt.Errorf("ending the keeper: %w", err)
	}
	return nil
}

// keep is what the keeper does: it waits for egressd's end, and clears away.
func keep(life *os.File, base string) {
	_, _ = io.ReadAll(life)
	if filepath.IsAbs(base) && len(filepath.Base(base)) > len("egressd-") {
		sweep("EGRESSD_RUN=" + base + "#")
		_ = removeAll(base)
	}
}
