package safepath

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Config says what an FS opens. The zero Access refuses everything.
type Config struct {
	// Cwd is the folder where relative paths start, an absolute path. It may be
	// missing: the first write makes it.
	Cwd string
	// Access is that of Cwd: Read or Write.
	Access Access
	// Grants are what is open, or shut, besides, in any order.
	Grants []Grant
	// Unconfined switches containment off (cwd: null): every path is open that
	// the user of this process can open. Cwd is still where relative paths
	// start; Access and Grants must be empty.
	Unconfined bool
	// Warn is told of Unconfined, once, and must be set with it.
	Warn func(text string)
}

// FS is the files that are granted. It is safe for concurrent use.
type FS struct {
	cwd        string // real
	unconfined bool
	table      table
	bases      map[string]*base // by real path: the outermost folders of all grants
	writing    sync.Mutex       // so that two Updates of one FS do not lose one another's change
}

// Open settles the grants and opens the folders that are there. It holds each
// of them until Close: a folder that later takes the place of one is not seen.
func Open(cfg Config) (*FS, error) {
	f := &FS{unconfined: cfg.Unconfined, bases: map[string]*base{},
		table: table{rules: map[string]Access{}, ways: map[string]bool{}}}
	if err := f.open(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("opening files: %w", err), f.Close())
	}
	return f, nil
}

func (f *FS) open(cfg Config) (err error) {
	if !filepath.IsAbs(cfg.Cwd) {
		return fmt.Errorf("cwd %s is not an absolute path", shown(cfg.Cwd))
	}
	if f.cwd, err = settle(cfg.Cwd, true); err != nil {
		return err
	}
	if cfg.Unconfined {
		if cfg.Access != Hidden || len(cfg.Grants) > 0 || cfg.Warn == nil {
			return errors.New("without containment there are no grants, and somebody has to be told")
		}
		cfg.Warn("file tools are NOT contained (cwd: null): they reach every file of this user")
		return nil
	}
	grants := slices.Clone(cfg.Grants)
	if cfg.Access != Hidden {
		grants = append(grants, Grant{Path: cfg.Cwd, Access: cfg.Access})
	}
	for _, p := range strange {
		f.table.rules[p] = Hidden
	}
	var roots []string
	for _, g := range grants {
		real, err := f.table.add(g)
		if err != nil {
			return fmt.Errorf("granting %s: %w", shown(g.Path), err)
		}
		if g.Access != Hidden && g.Access != Masked {
			roots = append(roots, holder(real, g.Access))
		}
	}
	slices.SortFunc(f.table.names, func(a, b alias) int { return cmp.Compare(len(b.name), len(a.name)) })
	slices.SortFunc(roots, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for _, r := range roots {
		if !f.based(r) {
			b := &base{real: r}
			f.bases[r] = b
			if _, err := b.open(false); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// holder is the folder to hold open for a grant: itself, or that of a file.
func holder(real string, a Access) string {
	info, err := os.Lstat(real)
	if real != "/" && (err == nil && !info.IsDir() || err != nil && a == InPlace) {
		return filepath.Dir(real)
	}
	return real
}

func (f *FS) based(path string) bool {
	for b := range f.bases {
		if _, ok := within(path, b); ok {
			return true
		}
	}
	return false
}

// Close lets the folders go. Operations fail afterwards.
func (f *FS) Close() error {
	var errs []error
	for _, b := range f.bases {
		errs = append(errs, b.close())
	}
	return errors.Join(errs...)
}

// Cwd is the real path of the folder where relative paths start.
func (f *FS) Cwd() string { return f.cwd }

// Contained is false where cwd: null switched containment off.
func (f *FS) Contained() bool { return !f.unconfined }

// Rel is how path, a real one, is shown: relative to Cwd where it lies there,
// else as it is.
func (f *FS) Rel(path string) string {
	rest, ok := within(path, f.cwd)
	switch {
	case !ok:
		return path
	case rest == "":
		return "."
	}
	return rest
}

// base is an outermost folder of the grants, opened once.
type base struct {
	real   string
	mu     sync.Mutex
	root   *os.Root
	closed bool
}

// open is the folder; make makes it where it is missing. What lies above a base
// is granted to nobody, so its path is the operator's.
func (b *base) open(make bool) (*os.Root, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root != nil || b.closed {
		if b.closed {
			return nil, fs.ErrClosed
		}
		return b.root, nil
	}
	if make {
		if err := os.MkdirAll(b.real, 0o777); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(strings.TrimSuffix(b.real, "/") + "/.") // the dot: a FIFO fails and does not block
	b.root = root
	return root, err
}

func (b *base) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.root == nil {
		return nil
	}
	return b.root.Close()
}
