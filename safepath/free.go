package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// onceFree walks without containment: the kernel's own walk, up to the last
// name.
func (f *FS) onceFree(path string, o options, do func(place) error) error {
	full := path
	if !strings.HasPrefix(path, "/") {
		full = f.cwd + "/" + path
	}
	for range maxLinks {
		p, next, err := f.free(path, full, o)
		switch {
		case err != nil:
			return err
		case next != "":
			full = next
		default:
			return errors.Join(do(p), p.dir.Close())
		}
	}
	return fmt.Errorf("%s: %w", shown(path), syscall.ELOOP)
}

// free finds the last name of full, or where the link leads that it is.
func (f *FS) free(path, full string, o options) (p place, next string, err error) {
	dir, name := filepath.Split(full)
	if name == "" || name == "." || name == ".." {
		dir, name = full, "."
	}
	if o.make {
		if err := os.MkdirAll(filepath.Dir(dir+"/."), 0o777); err != nil {
			return p, "", named(path, err)
		}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return p, "", named(path, err)
	}
	root, err := os.OpenRoot(strings.TrimSuffix(real, "/") + "/.")
	if err != nil {
		return p, "", named(path, err)
	}
	p = place{path: path, dir: root, name: name, real: real, access: Write}
	if name != "." {
		p.real = join(real, name)
	}
	p.info, err = root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, "", nil
	case err != nil:
		return p, "", errors.Join(named(path, err), root.Close())
	case p.info.Mode()&fs.ModeSymlink != 0 && !o.link:
		text, err := root.Readlink(name)
		if err != nil {
			return p, "", errors.Join(errChanged, root.Close())
		}
		if !strings.HasPrefix(text, "/") {
			text = real + "/" + text
		}
		return p, text, root.Close()
	}
	return p, "", nil
}
