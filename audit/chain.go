package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Chain is the files that one chain of records lies in: Path, and what
// rotation put next to it.
type Chain struct {
	Path string
}

// FileChain returns the chain that begins with a file, such as --audit named.
func FileChain(path string) (Chain, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Chain{}, fmt.Errorf("reading the record: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Chain{}, fmt.Errorf("reading the record: %s is not a regular file", path)
	}
	return Chain{Path: path}, nil
}

// file returns the path of the n-th file, from 1.
func (c Chain) file(n int) string {
	if n == 1 {
		return c.Path
	}
	ext := filepath.Ext(c.Path)
	return strings.TrimSuffix(c.Path, ext) + "." + strconv.Itoa(n) + ext
}

// Files returns the paths of the files that are there, in order.
func (c Chain) Files() []string {
	var files []string
	for n := 1; ; n++ {
		if _, err := os.Lstat(c.file(n)); err != nil {
			return files
		}
		files = append(files, c.file(n))
	}
}

// Running says whether a session holds the chain's lock.
func (c Chain) Running() (bool, error) {
	f, err := os.Open(c.Path)
	if err != nil {
		return false, fmt.Errorf("asking whether a session runs: %w", err)
	}
	defer f.Close()
	err = tryLock(f, syscall.LOCK_SH)
	if errors.Is(err, ErrInUse) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether a session runs: %w", err)
	}
	return false, nil
}

// State says whether a session is over.
type State string

// The states of a session.
const (
	StateOpen  State = "open"  // it runs
	StateEnded State = "ended" // session_end was written
	StateCut   State = "cut"   // it does not run, and has no end
)

// Session is a session in a state folder.
type Session struct {
	ID string
	Chain
	State State
	Start time.Time // of its first record, zero where none can be read
	Last  time.Time // of its last
	Bytes int64     // of all its files
}

// ErrNoSession says that no session has this id, or a prefix of it.
var ErrNoSession = errors.New("no such session")

// Sessions returns the sessions of a state folder by id, that is, oldest first
// with ids of NewSession. A folder without records has none.
func Sessions(state string) ([]Session, error) {
	ids, dir, err := sessionIDs(state)
	if err != nil {
		return nil, err
	}
	sessions := make([]Session, 0, len(ids))
	for _, id := range ids {
		s, err := readSession(dir, id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, s)
	}
	return sessions, nil
}

// Find returns the one session whose id begins with prefix, in any letter
// case. None is ErrNoSession; several are an error that names them.
func Find(state, prefix string) (Session, error) {
	ids, dir, err := sessionIDs(state)
	if err != nil {
		return Session{}, err
	}
	var found []string
	for _, id := range ids {
		if strings.EqualFold(id, prefix) {
			return readSession(dir, id)
		}
		if hasPrefixFold(id, prefix) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return Session{}, fmt.Errorf("finding session %q: %w", prefix, ErrNoSession)
	case 1:
		return readSession(dir, found[0])
	}
	return Session{}, fmt.Errorf("finding session %q: it may be %s", prefix, strings.Join(found, ", "))
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func sessionIDs(state string) ([]string, string, error) {
	dir := filepath.Join(state, folderName)
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, dir, nil
	}
	if err != nil {
		return nil, dir, fmt.Errorf("reading the records: %w", err)
	}
	defer root.Close()
	files, err := folderFiles(root)
	if err != nil {
		return nil, dir, fmt.Errorf("reading the records: %w", err)
	}
	return sortedKeys(files), dir, nil
}

// readSession looks at the first and the last line of a session.
func readSession(dir, id string) (Session, error) {
	s := Session{ID: id, Chain: Chain{Path: filepath.Join(dir, id+".jsonl")}}
	running, err := s.Running()
	if err != nil {
		return Session{}, err
	}
	files := s.Files()
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			s.Bytes += info.Size()
		}
	}
	if first, err := newCursor(s.Chain).next(); err == nil {
		if r, err := Parse(first); err == nil {
			s.Start = r.Time
		}
	}
	s.State = StateCut
	if running {
		s.State = StateOpen
	}
	for n := len(files); n > 0; n-- {
		line, err := lastLine(files[n-1])
		if err != nil {
			return Session{}, err
		}
		if line == nil {
			continue
		}
		if r, err := Parse(line); err == nil {
			s.Last = r.Time
			if r.Kind == KindSessionEnd && !running {
				s.State = StateEnded
			}
		}
		break
	}
	return s, nil
}

// lastLine returns the last whole line of a file, nil if it has none.
func lastLine(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the record: %w", err)
	}
	defer f.Close()
	e, start, err := findEnding(f)
	if err != nil || e == 0 {
		return nil, err
	}
	line, err := io.ReadAll(io.NewSectionReader(f, start, e-start))
	return bytes.TrimSuffix(line, []byte("\n")), err
}
