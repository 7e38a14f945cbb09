//go:build linux

package census

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// memfdDevice is the device number that the kernel gives every memfd.
func memfdDevice() (uint64, error) {
	fd, err := unix.MemfdCreate("census", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("making a file in memory: %w", err)
	}
	var st unix.Stat_t
	err = errors.Join(unix.Fstat(fd, &st), unix.Close(fd))
	return st.Dev, err
}

// privateMounts opens the file systems in memory that are the sandbox's own: a
// tmpfs of the host that was granted is not. The sandbox can mount no other.
func privateMounts(mounts io.Reader, root int) (out []*os.File, err error) {
	inside, err := io.ReadAll(mounts)
	if err != nil {
		return nil, fmt.Errorf("reading the sandbox's mounts: %w", err)
	}
	host, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mounts: %w", err)
	}
	known := map[string]bool{}
	for _, m := range tmpfsMounts(string(host)) {
		known[m.device] = true
	}
	for _, m := range tmpfsMounts(string(inside)) {
		if known[m.device] {
			continue
		}
		fd, err := unix.Openat(root, strings.TrimPrefix(m.path, "/"), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // covered by another mount, or beside a part that is not shown
		}
		f := os.NewFile(uintptr(fd), m.path)
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)) != m.device {
			_ = f.Close()
			continue // another mount covers it
		}
		known[m.device] = true
		out = append(out, f)
	}
	return out, nil
}

type tmpfsMount struct{ device, path string }

// tmpfsMounts reads mountinfo of proc(5).
func tmpfsMounts(text string) []tmpfsMount {
	var out []tmpfsMount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if ok && len(f) >= 5 && strings.HasPrefix(after, "tmpfs ") {
			out = append(out, tmpfsMount{f[2], unescape(f[4])})
		}
	}
	return out
}

// unescape undoes the \ooo of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// files is what lies in the sandbox's own file systems in memory and in its
// System V segments.
func (c *Census) files() uint64 {
	var sum uint64
	for _, f := range c.private {
		var st unix.Statfs_t
		if unix.Fstatfs(int(f.Fd()), &st) == nil && st.Blocks > st.Bfree {
			sum += (st.Blocks - st.Bfree) * uint64(st.Bsize)
		}
	}
	if _, err := c.shm.Seek(0, io.SeekStart); err == nil {
		if text, err := io.ReadAll(c.shm); err == nil {
			sum += parseSegments(text)
		}
	}
	return sum
}

// openMemfds is the memory of the memfds that the processes have open. The link
// is looked at first: to ask a file on a file system that does not answer would
// take for ever.
func (c *Census) openMemfds(pids []string, end time.Time) uint64 {
	seen := map[uint64]bool{}
	var sum uint64
	for _, pid := range pids {
		fd, err := unix.Openat(int(c.proc.Fd()), pid+"/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has ended
		}
		dir := os.NewFile(uintptr(fd), "fd")
		names, _ := dir.Readdirnames(-1) // what was read counts
		for _, name := range names {
			n, err := unix.Readlinkat(fd, name, c.buffer[:256])
			if err != nil || !strings.HasPrefix(string(c.buffer[:n]), "/memfd:") {
				continue
			}
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, 0) == nil && st.Dev == c.memfds && !seen[st.Ino] {
				seen[st.Ino] = true
				sum += uint64(st.Blocks) * 512
			}
		}
		_ = dir.Close()
		if time.Now().After(end) {
			break
		}
	}
	return sum
}
