//go:build linux

package census

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one of the tree, as /proc/PID/stat has it. Times are in ticks.
type process struct {
	pid   string
	own   uint64 // time of its threads, those that ended too
	dead  uint64 // time of its children that it has waited for
	start uint64 // since the boot
	tasks uint64
}

// parseStat reads proc_pid_stat(5). The name may hold anything, so fields count
// from its last parenthesis.
func parseStat(pid string, text []byte) (process, error) {
	at := bytes.LastIndexByte(text, ')')
	f := strings.Fields(string(text[at+1:]))
	if at < 0 || len(f) < 20 {
		return process{}, errors.New("reading a process: its stat is cut short")
	}
	var n [20]uint64
	for _, i := range []int{11, 12, 13, 14, 17, 19} {
		v, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			return process{}, fmt.Errorf("reading a process: %w", err)
		}
		n[i] = uint64(max(v, 0)) // the kernel has shown negative times of children
	}
	return process{pid: pid, own: n[11] + n[12], dead: n[13] + n[14], tasks: n[17], start: n[19]}, nil
}

// memory is what a process has mapped, in bytes.
type memory struct {
	anonymous uint64
	shared    uint64 // of files in memory and of shared mappings
}

// parseKB adds up the fields of proc_pid_status(5) or of smaps_rollup.
func parseKB(text []byte, anonymous, shared string) memory {
	var m memory
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if name != anonymous && name != shared {
			continue
		}
		kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 54)
		if err != nil {
			continue
		}
		if name == anonymous {
			m.anonymous = kb << 10
		} else {
			m.shared = kb << 10
		}
	}
	return m
}

// parseSegments adds up what the System V segments of a namespace take.
// proc_sysvipc(5): the column rss, in bytes.
func parseSegments(text []byte) uint64 {
	var sum uint64
	column := -1
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if column < 0 {
			for i, name := range f {
				if name == "rss" {
					column = i
				}
			}
			if column < 0 {
				return 0
			}
			continue
		}
		if column < len(f) {
			if n, err := strconv.ParseUint(f[column], 10, 64); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// read reads a file of the tree's /proc, short ones in one go.
func (c *Census) read(name string) ([]byte, error) {
	fd, err := unix.Openat(int(c.proc.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Read(fd, c.buffer)
	if err != nil {
		return nil, err
	}
	return c.buffer[:n], nil
}

// each calls f with every number in /proc, in their order, until it says no.
func (c *Census) each(f func(pid string) bool) error {
	fd, err := unix.Openat(int(c.proc.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("listing the processes: %w", err)
	}
	dir := os.NewFile(uintptr(fd), "proc")
	defer func() { _ = dir.Close() }()
	for {
		// Few at a time: what is forked meanwhile is listed later.
		names, err := dir.Readdirnames(32)
		for _, name := range names {
			if name[0] >= '1' && name[0] <= '9' && !f(name) {
				return nil
			}
		}
		if len(names) == 0 {
			return nil // EOF, or the namespace is gone
		}
		if err != nil {
			return fmt.Errorf("listing the processes: %w", err)
		}
	}
}
