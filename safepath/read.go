package safepath

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// File is a regular file that was opened for reading. Its Name is not to be
// used: it is not the path of the file.
type File struct {
	*os.File
	// Real is the path of the file, without links.
	Real string
	// Info is what the file was when it was opened.
	Info fs.FileInfo
}

// Open opens a regular file for reading.
func (f *FS) Open(path string) (*File, error) {
	var file *File
	err := f.at(path, options{}, func(p place) error {
		if err := f.readable(p); err != nil {
			return err
		}
		opened, info, err := p.open(os.O_RDONLY)
		if err == nil {
			file = &File{opened, p.real, info}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %w", err)
	}
	return file, nil
}

// ReadFile reads a whole regular file of at most limit bytes. A longer one is
// *[TooLarge].
func (f *FS) ReadFile(path string, limit int64) ([]byte, error) {
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := readAll(path, file.File, file.Info, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %w", err)
	}
	return data, nil
}

func readAll(path string, r io.Reader, info fs.FileInfo, limit int64) ([]byte, error) {
	if info.Size() > limit {
		return nil, &TooLarge{path, info.Size(), limit}
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, named(path, err)
	case int64(len(data)) > limit: // it grows, or tells no size
		return nil, &TooLarge{path, int64(len(data)), limit}
	}
	return data, nil
}

// Stat tells what a path leads to, a folder or whatever else, links followed.
// Its Name is the last name of the real path.
func (f *FS) Stat(path string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := f.at(path, options{}, func(p place) error {
		if p.info == nil {
			return f.absent(p)
		}
		info = p.info
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking at %w", err)
	}
	return info, nil
}

// Real is the path that a path leads to, without links; what is missing at its
// end may be missing.
func (f *FS) Real(path string) (string, error) {
	real := ""
	err := f.at(path, options{}, func(p place) error { real = p.real; return nil })
	if err != nil {
		return "", fmt.Errorf("following %w", err)
	}
	return real, nil
}

func (f *FS) readable(p place) error {
	switch {
	case p.info == nil:
		return f.absent(p)
	case p.info.IsDir():
		return notRegular(p.path, p.info.Mode())
	case p.access < Read:
		return f.refuse(p.path, p.access, Read)
	}
	return nil
}

// absent is a file that is not there, or a name that only leads to a grant: of
// that nothing is told.
func (f *FS) absent(p place) error {
	return fmt.Errorf("%s: %w", shown(p.path), syscall.ENOENT)
}
