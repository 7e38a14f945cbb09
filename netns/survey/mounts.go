package survey

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mounted is one line of /proc/self/mountinfo: which part of which file system
// shows at a path.
type mounted struct {
	device string // major:minor
	root   string // in the file system
	path   string
}

// inside is a path below the mount as the file system has it.
func (m mounted) inside(path string) string {
	rest, _ := beneath(path, m.path)
	return filepath.Join(m.root, rest)
}

// view is a folder of a file system, and where a granted folder shows it.
type view struct{ device, root, path string }

func (p *places) readMounts() error {
	p.mounts = map[string]mounted{}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for sockets: %w", err)
	}
	for line := range bytes.Lines(text) {
		if m, ok := parseMount(string(line)); ok {
			p.mounts[m.path] = m // of several at one path the last is on top
		}
	}
	for _, f := range p.folders {
		at := p.mountOf(f)
		p.views = append(p.views, view{at.device, at.inside(f), f})
		for _, m := range p.mounts {
			if _, ok := beneath(m.path, f); ok && m.path != f {
				p.views = append(p.views, view(m))
			}
		}
	}
	return nil
}

// mountOf is the mount that shows a path.
func (p *places) mountOf(path string) mounted {
	for {
		if m, ok := p.mounts[path]; ok || path == "/" {
			return m
		}
		path = filepath.Dir(path)
	}
}

// parseMount reads a line of mountinfo (proc_pid_mountinfo(5)).
func parseMount(line string) (mounted, bool) {
	f := strings.Fields(line)
	if len(f) < 6 {
		return mounted{}, false
	}
	m := mounted{f[2], unescape(f[3]), unescape(f[4])}
	return m, filepath.IsAbs(m.root) && filepath.IsAbs(m.path)
}

// unescape undoes the kernel's \040 for bytes that would end a field.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
