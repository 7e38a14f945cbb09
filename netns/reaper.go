//go:build linux

package netns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A reaper is the launcher's part of a standing session: it runs commands and
// lets nothing outlive them.
//
// Each command is the reaper of its own descendants (PR_SET_CHILD_SUBREAPER,
// which an exec keeps), and the launcher is that of the commands. So whatever a
// command leaves behind, in whatever session or group, comes to the launcher
// when the command is over, and not before: a child of the launcher that is no
// command belongs to nobody and is killed, and its children come in turn. A
// command that gives the flag up loses its orphans earlier, no more.
type reaper struct {
	c *control

	mu      sync.Mutex     // held while a process is started, so that none is taken for a stray
	running map[int]uint64 // the number of each command by its pid; 0 is the stage that waits
	waits   *stage         // nil: there is none
	over    []message      // commands that have ended; told when no stray is left
}

func newReaper(c *control) (*reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("becoming a reaper: %w", err)
	}
	r := &reaper{c: c, running: map[int]uint64{}}
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	go func() { // it ends with the launcher
		for range died {
			r.reap()
		}
	}()
	go r.prepare()
	return r, nil
}

// prepare has a stage wait for the next command. Where that fails the command
// will say so.
func (r *reaper) prepare() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waits == nil {
		r.waits, _ = r.newStage()
	}
}

// newStage starts one that is no stray. r.mu is held.
func (r *reaper) newStage() (*stage, error) {
	s, err := newStage()
	if err == nil {
		r.running[s.pid] = 0
	}
	return s, err
}

// start starts a command and tells when it runs, or why it cannot. What follows
// the start itself is not waited for here: other messages come.
func (r *reaper) start(m message, files []*os.File, answer func(error)) {
	defer closeFiles(files)
	if len(files) != 1+len(m.Carried) || len(m.Carried) > 3 {
		answer(errors.New("starting a command: out of turn"))
		return
	}
	read, write, err := os.Pipe()
	if err != nil {
		answer(fmt.Errorf("starting a command: %w", err))
		return
	}
	err = r.launch(m, append(files, write))
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		answer(fmt.Errorf("starting a command: %w", err))
		return
	}
	go func() {
		text, err := io.ReadAll(read)
		_ = read.Close()
		if len(text) > 0 {
			err = parseExecError(text)
		}
		answer(err)
		r.prepare()
	}()
}

// launch has the stage that waits become the command. A program may have killed
// that one, so a new one is tried then.
func (r *reaper) launch(m message, files []*os.File) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.waits
	r.waits = nil
	if s == nil || s.play(m, files...) != nil {
		if s, err = r.newStage(); err != nil {
			return err
		}
		if err = s.play(m, files...); err != nil {
			return err
		}
	}
	r.running[s.pid] = m.Command
	return nil
}

// kill ends a command and its group. Its number is still its own, since only
// reap lets go of it.
func (r *reaper) kill(command uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid, n := range r.running {
		if n == command && n > 0 {
			_ = unix.Kill(-pid, unix.SIGKILL)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// reap takes leave of every child that has ended, kills what they have left,
// and tells of the commands when nothing of that is left.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid := endedChild(); pid > 0; pid = endedChild() {
		command, ok := r.running[pid]
		if ok {
			_ = unix.Kill(-pid, unix.SIGKILL) // while the number is the group's
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
			continue
		}
		delete(r.running, pid)
		if r.waits != nil && r.waits.pid == pid {
			_ = r.waits.c.close()
			r.waits = nil // a program has killed it
		}
		if command > 0 {
			r.over = append(r.over, message{Kind: kindEnded, Command: command, Status: int(status)})
		}
	}
	if r.killStrays() {
		return // their end calls reap again
	}
	for _, m := range r.over {
		_ = r.c.send(m) // nobody is there: the launcher ends
	}
	r.over = nil
}

// endedChild is a child that has ended and is not taken leave of, or 0.
func endedChild() int {
	var info [16]uint64 // siginfo_t, 128 bytes: si_pid stands behind three ints
	for {
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)),
			unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, 0, 0)
		if errno != unix.EINTR {
			return int(int32(info[2]))
		}
	}
}

// killStrays kills the children that are no commands and reports whether there
// are any.
func (r *reaper) killStrays() bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return false
	}
	found := false
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || parent(path) != os.Getpid() {
			continue
		}
		if _, ok := r.running[pid]; !ok {
			found = true
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return found
}

// parent is the parent of the process whose stat file this is, 0 if it is gone.
// The name before it is the program's to choose, so the last parenthesis counts.
func parent(stat string) int {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return pid
}
