//go:build linux

package cgroup

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of a group. Zero is none.
type Limits struct {
	Memory uint64 // bytes, with what its processes keep in file systems in memory
	Tasks  uint64 // processes and threads
}

func (l Limits) controllers() []string {
	var out []string
	if l.Memory > 0 {
		out = append(out, "memory")
	}
	if l.Tasks > 0 {
		out = append(out, "pids")
	}
	return out
}

// A Group is a cgroup that this process has made.
type Group struct {
	place  place
	path   string
	folder *os.File // locked; what processes are started into
}

// A Place is where a group can be made.
type Place struct {
	at     place
	limits Limits
}

// Find looks for a place for a group with these limits. Its error says why this
// process has none.
func Find(l Limits) (*Place, error) {
	list, err := find()
	if err != nil {
		return nil, err
	}
	var why []error
	for _, h := range list {
		p, err := h.place(l.controllers())
		if err == nil {
			return &Place{p, l}, nil
		}
		why = append(why, err)
	}
	return nil, why[0]
}

// Make makes the group.
func (at *Place) Make() (*Group, error) {
	p, l := at.at, at.limits
	unlock, err := lock(p.folder)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p.sweep()
	if p.leave {
		if err := p.toLeaf(l.controllers()); err != nil {
			return nil, err
		}
	}
	g, err := p.create()
	if err == nil {
		if err = g.set(l); err != nil {
			err = errors.Join(err, g.remove())
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.back())
	}
	return g, nil
}

// create makes the folder and takes its lock.
func (p place) create() (*Group, error) {
	name := make([]byte, 6)
	_, _ = rand.Read(name) // never fails
	g := &Group{place: p, path: filepath.Join(p.folder, prefix+hex.EncodeToString(name))}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		return nil, fmt.Errorf("making a cgroup: %w", err)
	}
	var err error
	if g.folder, err = os.Open(g.path); err == nil {
		err = unix.Flock(int(g.folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a cgroup: %w", err), g.remove())
	}
	return g, nil
}

// set writes the limits. One that the kernel met ends the whole group, so that
// nothing of a run goes on in part.
func (g *Group) set(l Limits) error {
	if l.Memory > 0 {
		if err := write(g.path, "memory.max", strconv.FormatUint(l.Memory, 10)); err != nil {
			return err
		}
		if err := write(g.path, "memory.oom.group", "1"); err != nil {
			return err
		}
		// Not there without swap accounting.
		if err := write(g.path, "memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if l.Tasks > 0 {
		return write(g.path, "pids.max", strconv.FormatUint(l.Tasks, 10))
	}
	return nil
}

// Allow lets the group have so many more tasks than it has now.
func (g *Group) Allow(tasks uint64) error {
	text, err := os.ReadFile(filepath.Join(g.path, "pids.current"))
	if err != nil {
		return fmt.Errorf("reading a cgroup: %w", err)
	}
	now, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return fmt.Errorf("reading a cgroup: %w", err)
	}
	return write(g.path, "pids.max", strconv.FormatUint(now+tasks, 10))
}

// Path is the group's folder.
func (g *Group) Path() string { return g.path }

// Into has a process started in the group: no moment of it is outside.
func (g *Group) Into(attr *syscall.SysProcAttr) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(g.folder.Fd())
}

// Usage is what the group's processes have used so far, those that have ended
// too.
type Usage struct {
	CPU     time.Duration
	Starved bool // memory ran out, and the kernel has ended the group or is about to
}

// Usage asks the kernel.
func (g *Group) Usage() (Usage, error) {
	var u Usage
	stat, err := read(g.path, "cpu.stat")
	if err != nil {
		return u, err
	}
	u.CPU = time.Duration(stat["usage_usec"]) * time.Microsecond
	events, err := read(g.path, "memory.events")
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil // no limit of memory was asked for
	}
	u.Starved = events["oom"]+events["oom_kill"]+events["oom_group_kill"] > 0
	return u, err
}

// removeTime is how long the last of the group's processes may take to be gone.
const removeTime = 2 * time.Second

// Close ends what is left in the group and removes it.
func (g *Group) Close() error {
	unlock, err := lock(g.place.folder)
	if err == nil {
		defer unlock()
	}
	return errors.Join(err, g.remove(), g.place.back())
}

func (g *Group) remove() error {
	err := os.Remove(g.path)
	if errors.Is(err, unix.EBUSY) {
		_ = write(g.path, "cgroup.kill", "1") // from Linux 5.14
	}
	for end := time.Now().Add(removeTime); errors.Is(err, unix.EBUSY) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		err = os.Remove(g.path)
	}
	if g.folder != nil {
		err = errors.Join(err, g.folder.Close())
	}
	if err != nil {
		return fmt.Errorf("removing a cgroup: %w", err)
	}
	return nil
}

func write(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("setting up a cgroup: %w", err)
	}
	return nil
}

// read reads a file of lines of a word and a number.
func read(dir, file string) (map[string]uint64, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, fmt.Errorf("reading a cgroup: %w", err)
	}
	out := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			out[name] = n
		}
	}
	return out, nil
}
