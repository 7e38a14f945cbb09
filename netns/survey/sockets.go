package survey

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Sockets lists the unix sockets that programs of this network namespace have
// bound below the folders, by each name that they can be reached by there: also
// where they were bound by another name of the folder, by a link or a bind
// mount. The folders are absolute and without links.
//
// elsewhere says that there is a socket whose place only a walk can tell: bound
// by a relative name, or with a hard link to it.
func Sockets(folders []string) (found []string, elsewhere bool, err error) {
	text, err := os.ReadFile("/proc/net/unix")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil // no unix sockets, or no such kernel
	}
	if err != nil {
		return nil, false, fmt.Errorf("looking for sockets: %w", err)
	}
	p := places{real: map[string]string{}, folders: folders}
	for _, name := range parseSockets(text) {
		if name[0] != '/' {
			elsewhere = true
			continue
		}
		names, linked := p.of(name)
		found = append(found, names...)
		elsewhere = elsewhere || linked
	}
	slices.Sort(found)
	return slices.Compact(found), elsewhere, p.err
}

// parseSockets are the names in the text of /proc/net/unix, but for abstract
// ones. A line is
//
//	Num       RefCount Protocol Flags    Type St Inode Path
//
// and the name ends it, with the bytes that it was bound with. One that holds
// line breaks looks like several lines, each of which could look like one of the
// kernel's, so every line that could be the rest of a name also counts as that:
// a name is at most 108 bytes long.
func parseSockets(text []byte) []string {
	lines := bytes.Split(text, []byte("\n"))
	var out []string
	for i, line := range lines {
		name := socketName(line)
		if name == nil || len(name) > 0 && name[0] == '@' {
			continue
		}
		if len(name) > 0 {
			out = append(out, string(name))
		}
		for _, more := range lines[i+1:] {
			name = slices.Concat(name, []byte("\n"), more)
			if len(name) > maxSocketName {
				break
			}
			out = append(out, string(name))
		}
	}
	return out
}

// maxSocketName is the size of sun_path.
const maxSocketName = 108

// socketName is the name at the end of a line; nil where there is none.
func socketName(line []byte) []byte {
	for range 7 {
		line = bytes.TrimLeft(line, " ")
		end := bytes.IndexByte(line, ' ')
		if end <= 0 {
			return nil
		}
		if word := bytes.TrimSuffix(line[:end], []byte(":")); len(bytes.Trim(word, "0123456789abcdefABCDEF")) > 0 {
			return nil // the line of titles, or no line of the kernel's
		}
		line = line[end+1:]
	}
	return line
}

// places finds where sockets lie.
type places struct {
	folders []string
	real    map[string]string // folders, without links
	views   []view            // what the folders show of file systems
	mounts  map[string]mounted
	err     error
}

// of are the names below the folders by which a socket can be reached. linked
// says that its file has a name that is not known.
func (p *places) of(name string) (names []string, linked bool) {
	folder := filepath.Dir(name)
	real, ok := p.real[folder]
	if !ok {
		real, _ = filepath.EvalSymlinks(folder)
		p.real[folder] = real
	}
	if real == "" {
		return nil, false // removed, or of another root
	}
	path := filepath.Join(real, filepath.Base(name))
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSocket == 0 {
		return nil, false // removed or renamed since
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		linked = true
	}
	candidates := []string{path}
	if p.mounts == nil {
		p.err = p.readMounts()
	}
	at := p.mountOf(path)
	for _, v := range p.views {
		if rest, ok := beneath(at.inside(path), v.root); ok && v.device == at.device {
			candidates = append(candidates, filepath.Join(v.path, rest))
		}
	}
	for _, c := range candidates {
		inside := slices.ContainsFunc(p.folders, func(f string) bool { _, ok := beneath(c, f); return ok })
		if there, err := os.Lstat(c); inside && err == nil && os.SameFile(there, info) && !slices.Contains(names, c) {
			names = append(names, c)
		}
	}
	return names, linked
}

// beneath is a path as seen from a folder that holds it. Both are clean.
func beneath(path, folder string) (rest string, ok bool) {
	switch {
	case path == folder:
		return "", true
	case folder == "/":
		return path[1:], true
	case len(path) > len(folder) && path[:len(folder)] == folder && path[len(folder)] == '/':
		return path[len(folder)+1:], true
	}
	return "", false
}
