package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// folderName is the folder of the record in the state folder.
const folderName = "audit"

// ErrInUse says that another session writes this file.
var ErrInUse = errors.New("in use by another session")

// place is where the files of one chain lie: NAME.jsonl, NAME.2.jsonl, …
type place struct {
	root  *os.Root
	owner *Owner // of new files; nil for ourselves
	dir   string
	stem  string
	ext   string
}

// name returns the name of the n-th file, from 1.
func (p *place) name(n int) string {
	if n == 1 {
		return p.stem + p.ext
	}
	return p.stem + "." + strconv.Itoa(n) + p.ext
}

// last returns the number of the last file that is there, 0 if none is.
func (p *place) last() (int, error) {
	for n := 1; ; n++ {
		if _, err := p.root.Lstat(p.name(n)); errors.Is(err, fs.ErrNotExist) {
			return n - 1, nil
		} else if err != nil {
			return 0, err
		}
	}
}

// placeOf finds, and for a state folder makes, the folder of the record.
func placeOf(c *Config) (*place, error) {
	if c.File != "" {
		dir, base := filepath.Split(c.File)
		if dir == "" {
			dir = "."
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		ext := filepath.Ext(base)
		return &place{root: root, dir: dir, stem: strings.TrimSuffix(base, ext), ext: ext}, nil
	}
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, err
	}
	state, err := os.OpenRoot(c.State)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	if err := state.Mkdir(folderName, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := privateFolder(state, folderName, c.Owner)
	if err != nil {
		return nil, err
	}
	return &place{root: root, owner: c.Owner, dir: filepath.Join(c.State, folderName), stem: c.Session, ext: ".jsonl"}, nil
}

// privateFolder opens a folder that must be one, no link, and its owner's, and
// takes from others what they may do in it.
func privateFolder(parent *os.Root, name string, owner *Owner) (*os.Root, error) {
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	seen, err := parent.Lstat(name)
	if err == nil {
		var opened fs.FileInfo
		if opened, err = root.Stat("."); err == nil {
			err = checkFolder(seen, opened, owner)
		}
	}
	if err == nil && seen.Mode().Perm() != 0o700 {
		err = root.Chmod(".", 0o700)
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("folder %s: %w", name, err)
	}
	return root, nil
}

func checkFolder(seen, opened fs.FileInfo, owner *Owner) error {
	if !seen.IsDir() || !os.SameFile(seen, opened) {
		return errors.New("is not a folder of its own")
	}
	uid := os.Geteuid()
	if owner != nil {
		uid = owner.UID
	}
	if st, ok := opened.Sys().(*syscall.Stat_t); ok && int(st.Uid) != uid {
		return fmt.Errorf("belongs to uid %d, not to %d", st.Uid, uid)
	}
	return nil
}

// openFile opens a file in root that must be a regular one and no link.
func openFile(root *os.Root, name string, flag int) (*os.File, error) {
	f, err := root.OpenFile(name, flag|syscall.O_NONBLOCK, 0o600) // a FIFO must not hang us
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil {
		var seen fs.FileInfo
		if seen, err = root.Lstat(name); err == nil && !(seen.Mode().IsRegular() && os.SameFile(seen, opened)) {
			err = fmt.Errorf("%s is not a regular file", name)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// make makes a file that was not there, as its owner's. One that is there is
// never given away: under sudo the owner could have put a link to it.
func (p *place) make(name string) (*os.File, error) {
	f, err := openFile(p.root, name, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if err != nil || p.owner == nil {
		return f, err
	}
	if err := f.Chown(p.owner.UID, p.owner.GID); err != nil {
		f.Close()
		return nil, fmt.Errorf("handing %s to its user: %w", name, err)
	}
	return f, nil
}

// lockWait is how long a lock is tried for: a reader that asks whether a
// session runs holds it for an instant.
const lockWait = 300 * time.Millisecond

// lock takes the chain's lock, which is on its first file. The file is made
// where it is missing.
func (p *place) lock() (*os.File, error) {
	for end := time.Now().Add(lockWait); ; time.Sleep(10 * time.Millisecond) {
		f, err := p.make(p.name(1))
		if errors.Is(err, fs.ErrExist) {
			f, err = openFile(p.root, p.name(1), os.O_RDWR|os.O_CREATE|os.O_APPEND)
		}
		if err == nil {
			if err = tryLock(f, syscall.LOCK_EX); err == nil {
				// keep may have removed it between the open and the lock.
				if err = sameName(p.root, p.name(1), f); err == nil {
					return f, nil
				}
			}
			f.Close()
		}
		if retry := errors.Is(err, ErrInUse) || errors.Is(err, errReplaced); !retry || time.Now().After(end) {
			return nil, err
		}
	}
}

var errReplaced = errors.New("was replaced while it was opened")

func sameName(root *os.Root, name string, f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	seen, err := root.Lstat(name)
	if err != nil || !os.SameFile(seen, opened) {
		return errReplaced
	}
	return nil
}

// tryLock takes a flock(2) of the given kind, or fails with ErrInUse.
func tryLock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrInUse
		default:
			return err
		}
	}
}
