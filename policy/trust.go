package policy

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Store is the list of policies that the user accepted, with the SHA-256 of
// every file of each, in the state folder. It is opened without following
// links, and what another user could have written is an error: who can write
// the list can run commands on the host.
type Store struct {
	// Dir is egressd's state folder. It need not exist to read from.
	Dir string
	// UID and GID own the list; root may too. Under sudo they are the caller's.
	UID, GID int
}

// trustFile is the list's name in the state folder.
const trustFile = "trust.json"

// trustList is its form: for each policy's absolute path, the files that
// belonged to it when it was accepted, with their sums in hex.
type trustList struct {
	Version  int                          `json:"version"`
	Policies map[string]map[string]string `json:"policies"`
}

// Trust states of a policy.
const (
	Trusted = "trusted"
	New     = "new"
	Changed = "changed"
)

// trustSize bounds the list.
const trustSize = 4 << 20

// ErrRelative is the error of a policy whose path is not absolute: it would be
// another file from another folder.
var ErrRelative = errors.New("the path of a policy that is to be trusted is absolute")

// State says whether the policy, as it was loaded, is Trusted, New or Changed:
// its own bytes and those of every file that it includes or names as an agent.
func (s *Store) State(p *Policy) (string, error) {
	sums, err := sumsOf(p)
	if err != nil {
		return New, err
	}
	list, err := s.read()
	if err != nil {
		return New, err
	}
	known, ok := list.Policies[filepath.Clean(p.Path)]
	switch {
	case !ok:
		return New, nil
	case !maps.Equal(known, sums):
		return Changed, nil
	}
	return Trusted, nil
}

// Knows says whether a policy at this path was ever trusted, as it is now or
// not.
func (s *Store) Knows(path string) (bool, error) {
	list, err := s.read()
	if err != nil {
		return false, err
	}
	_, ok := list.Policies[filepath.Clean(path)]
	return ok, nil
}

// Trust accepts the policy as it was loaded. The state folder must exist.
func (s *Store) Trust(p *Policy) error {
	sums, err := sumsOf(p)
	if err != nil {
		return err
	}
	dir, err := s.open()
	if err != nil {
		return fmt.Errorf("opening the state folder: %w", err)
	}
	defer dir.Close()
	// Two that trust at once must not lose each other's entry.
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking the list of trusted policies: %w", err)
	}
	list, err := s.readIn(dir)
	if err != nil {
		return err
	}
	list.Policies[filepath.Clean(p.Path)] = sums
	return s.write(dir, list)
}

// sumsOf are the sums of a policy's files by path.
func sumsOf(p *Policy) (map[string]string, error) {
	if !filepath.IsAbs(p.Path) {
		return nil, ErrRelative
	}
	sums := map[string]string{}
	for _, f := range p.Files {
		sums[f.Path] = hex.EncodeToString(f.Sum[:])
	}
	return sums, nil
}

// open opens the state folder itself, not what a link of its name leads to.
func (s *Store) open() (*os.File, error) {
	fd, err := unix.Open(s.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: s.Dir, Err: err}
	}
	dir := os.NewFile(uintptr(fd), s.Dir)
	if err := s.private(dir); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// private insists that nobody else can write the file or folder.
func (s *Store) private(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("looking at %s: %w", f.Name(), err)
	}
	if !ownedBy(info, s.UID) || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others than uid %d: chmod go-w it, or move it away", f.Name(), s.UID)
	}
	return nil
}

func (s *Store) read() (*trustList, error) {
	dir, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return &trustList{Version: 1, Policies: map[string]map[string]string{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the state folder: %w", err)
	}
	defer dir.Close()
	return s.readIn(dir)
}

func (s *Store) readIn(dir *os.File) (*trustList, error) {
	list := &trustList{Version: 1, Policies: map[string]map[string]string{}}
	path := filepath.Join(s.Dir, trustFile)
	fd, err := unix.Openat(int(dir.Fd()), trustFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return list, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if err := s.private(f); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, trustSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the list of trusted policies: %w", err)
	}
	if len(data) > trustSize {
		return nil, fmt.Errorf("reading %s: it is over %d bytes", path, trustSize)
	}
	if err := json.Unmarshal(data, list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if list.Version != 1 {
		return nil, fmt.Errorf("reading %s: version %d, which this egressd does not know", path, list.Version)
	}
	if list.Policies == nil {
		list.Policies = map[string]map[string]string{}
	}
	return list, nil
}

// write puts the list in place whole: a new file, then a rename.
func (s *Store) write(dir *os.File, list *trustList) (err error) {
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the list of trusted policies: %w", err)
	}
	const temporary = trustFile + ".new"
	if err := unix.Unlinkat(int(dir.Fd()), temporary, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing an old %s: %w", temporary, err)
	}
	fd, err := unix.Openat(int(dir.Fd()), temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("making %s: %w", temporary, err)
	}
	f := os.NewFile(uintptr(fd), filepath.Join(s.Dir, temporary))
	defer f.Close()
	if os.Getuid() != s.UID {
		if err := f.Chown(s.UID, s.GID); err != nil {
			return fmt.Errorf("handing the list of trusted policies to its user: %w", err)
		}
	}
	if _, err := f.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("writing the list of trusted policies: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("writing the list of trusted policies: %w", err)
	}
	if err := unix.Renameat(int(dir.Fd()), temporary, int(dir.Fd()), trustFile); err != nil {
		return fmt.Errorf("putting the list of trusted policies in place: %w", err)
	}
	return nil
}

// ReadFile reads a policy's file: a regular one of at most 16 MiB, never a
// pipe or device that would not end. It fits Options.ReadFile.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("over 16 MiB")}
	}
	return data, nil
}
