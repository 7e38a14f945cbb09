package safepath

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// WriteFile gives a file the text data, and makes it, the folders it lies in
// and Cwd where they are missing. The old text or the new one is there at any
// time; the mode stays. A link is followed, and the file it leads to written.
// A hard link to the old text keeps that. A grant InPlace is written where it
// lies and never made.
func (f *FS) WriteFile(path string, data []byte) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	err := endsInFolder(path)
	if err == nil {
		err = f.at(path, options{make: true}, func(p place) error {
			if err := f.writable(p); err != nil {
				return err
			}
			return p.write(data, nil)
		})
	}
	if err != nil {
		return fmt.Errorf("writing %w", err)
	}
	return nil
}

// Update gives a file of at most limit bytes the text that change makes of the
// old one. It fails, and writes nothing, when change does, or when somebody
// else wrote the file meanwhile.
func (f *FS) Update(path string, limit int64, change func(old []byte) ([]byte, error)) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	err := f.at(path, options{}, func(p place) error {
		if err := f.readable(p); err != nil {
			return err
		}
		if err := f.writable(p); err != nil {
			return err
		}
		file, info, err := p.open(os.O_RDONLY)
		if err != nil {
			return err
		}
		old, err := readAll(p.path, file, info, limit)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		data, err := change(old)
		if err != nil {
			return fmt.Errorf("%s: %w", shown(p.path), err)
		}
		return p.write(data, info)
	})
	if err != nil {
		return fmt.Errorf("changing %w", err)
	}
	return nil
}

// endsInFolder refuses a path that names a folder by its spelling, before
// anything is made on the way there.
func endsInFolder(path string) error {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if path != "" && (last == "" || last == "." || last == "..") {
		return fmt.Errorf("%s: %w", shown(path), syscall.EISDIR)
	}
	return nil
}

func (f *FS) writable(p place) error {
	switch {
	case p.access != Write && p.access != InPlace:
		return f.refuse(p.path, p.access, Write)
	case p.info == nil && p.access == InPlace:
		return f.absent(p)
	case p.info != nil && !p.info.Mode().IsRegular():
		return notRegular(p.path, p.info.Mode())
	}
	return nil
}

// write gives the file that p names the text data. Where known is set, the file
// must still be as it was then.
func (p place) write(data []byte, known fs.FileInfo) error {
	if p.info == nil {
		return p.replace(data, nil)
	}
	// A name can be replaced whatever the file's mode is, so the file is asked.
	old, _, err := p.open(os.O_WRONLY)
	switch {
	case errors.Is(err, syscall.ETXTBSY): // a program that runs keeps its old text
	case err != nil:
		return err
	case p.access == InPlace:
		return errors.Join(p.overwrite(old, data, known), old.Close())
	default:
		if err := old.Close(); err != nil {
			return named(p.path, err)
		}
	}
	return p.replace(data, known)
}

// overwrite writes before it cuts, so that a reader in between sees a mixture
// rather than nothing.
func (p place) overwrite(file *os.File, data []byte, known fs.FileInfo) error {
	if info, err := file.Stat(); err != nil || known != nil && !same(info, known) {
		return errors.Join(p.meanwhile(), err)
	}
	if _, err := file.WriteAt(data, 0); err != nil {
		return named(p.path, err)
	}
	if err := file.Truncate(int64(len(data))); err != nil {
		return named(p.path, err)
	}
	return nil
}

// replace writes a file beside the old one and gives it its name. The name is
// taken, whatever bears it by then: a link that was put there is replaced, not
// followed.
func (p place) replace(data []byte, known fs.FileInfo) (err error) {
	mode := fs.FileMode(0o666)
	if p.info != nil {
		mode = 0o600 // until it has the text, whose reader it may not be for
	}
	temp := ".egressd-" + rand.Text()
	file, err := p.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return named(p.path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.dir.Remove(temp))
		}
	}()
	if err = errors.Join(p.fill(file, data), file.Close()); err != nil {
		return named(p.path, err)
	}
	if known != nil {
		if now, err := p.dir.Lstat(p.name); err != nil || !same(now, known) {
			return p.meanwhile()
		}
	}
	if err = p.dir.Rename(temp, p.name); err != nil {
		return named(p.path, err)
	}
	return nil
}

func (p place) fill(file *os.File, data []byte) error {
	if _, err := file.Write(data); err != nil {
		return err
	}
	if p.info != nil {
		if err := keepOwner(file, p.info); err != nil {
			return err
		}
		if err := file.Chmod(p.info.Mode().Perm()); err != nil {
			return err
		}
	} else if dir, err := p.dir.Stat("."); err != nil {
		return err
	} else if err := keepOwner(file, dir); err != nil {
		return err
	}
	return file.Sync() // else a crash can leave the name with no text
}

func (p place) meanwhile() error {
	return fmt.Errorf("%s was changed by somebody else meanwhile: nothing was written", shown(p.path))
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
