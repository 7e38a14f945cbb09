//go:build !linux

package survey

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// reader reads folders, one at a time.
type reader struct{ walk *walk }

func openTop(path string) (*os.File, error) { return os.Open(path) }

// folder reads one folder, named from the root. Where the kernel cannot keep a
// path below a folder, os.Root does.
func (r *reader) folder(rel string) look {
	s := sorter{walk: r.walk, rel: rel, inGit: filepath.Base(rel) == ".git"}
	s.read = true
	root, err := os.OpenRoot(r.walk.at.Path)
	if err != nil {
		s.closed = true
		return s.look
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Lstat(rel); err != nil || !info.IsDir() {
		return s.look
	}
	f, err := root.Open(rel)
	if err != nil {
		s.closed = !errors.Is(err, fs.ErrNotExist)
		return s.look
	}
	defer func() { _ = f.Close() }()
	s.stamp(int(f.Fd()))
	room := -1
	if w := r.walk; w.config.MaxEntries > 0 && rel != "." {
		room = max(w.config.MaxEntries-w.spent, 1)
	}
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			if s.entries == room {
				s.cut = true
				break
			}
			s.see([]byte(e.Name()), kindOf(e.Type()))
		}
		if s.cut {
			break
		}
		if err != nil {
			s.whole, s.closed = errors.Is(err, io.EOF), !errors.Is(err, io.EOF)
			break
		}
	}
	s.end()
	return s.look
}

func kindOf(mode fs.FileMode) kind {
	switch {
	case mode.IsDir():
		return folder
	case mode&fs.ModeSocket != 0:
		return socket
	case mode&fs.ModeSymlink != 0:
		return link
	}
	return file
}
