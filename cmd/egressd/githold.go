package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	gitWalk = 4096    // folders below modules and worktrees that are looked at
	gitText = 1 << 20 // bytes of a config, at most
)

// Settings that git does not read any more once there is a commondir.
var (
	setsWorktree = regexp.MustCompile(`(?im)^[^#;\n]*\bworktree\s*=`)
	setsBare     = regexp.MustCompile(`(?im)^[^#;\n]*\bbare\s*(=\s*["']?(true|yes|on|[1-9])|[#;]|$)`)
)

// gitHold collects what must stay as it is of one repository's folder. No link
// is followed on the way: each folder is opened from the one that holds it.
type gitHold struct {
	writable func(path string) bool
	left     int      // folders that may still be looked at
	list     []string // paths that are to be read-only
	links    []string // links that are to be hidden: a link cannot be read-only
	made     []string // what was made, as seen from the repository's folder
	linked   []string // files that have another name: a mount over one does not hold the other
	top      string
}

// main holds a repository's folder and those of its submodules and worktrees.
// After an error nothing of it may be writable.
func (h *gitHold) main(path string) error {
	h.top = path
	dir, err := openFolder(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return h.folder(dir)
}

// folder holds one folder that has a config of its own.
func (h *gitHold) folder(dir *os.File) error {
	config, err := readAt(dir, "config")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("it has no config")
		}
		return err
	}
	writable := h.writable(dir.Name())
	switch kindAt(dir, "commondir") {
	case 0:
		// With a commondir git takes core.worktree and core.bare for a worktree's
		// business. A submodule's folder is found by its .git file all the same.
		if submodule := dir.Name() != h.top; writable && !submodule && setsWorktree.MatchString(config) {
			return errors.New("its config sets core.worktree")
		} else if writable && filepath.Base(dir.Name()) == ".git" && setsBare.MatchString(config) {
			return errors.New("its config sets core.bare")
		}
	case unix.S_IFREG:
		if text, err := readAt(dir, "commondir"); err != nil || filepath.Clean(strings.TrimSpace(text)) != "." {
			return errors.New("its commondir leads elsewhere")
		}
	default:
		return errors.New("its commondir is no file")
	}
	perTree := strings.Contains(strings.ToLower(config), "worktreeconfig")
	if writable {
		if err := h.make(dir, perTree); err != nil {
			return err
		}
	}
	h.hold(dir, "config", "config.worktree", "hooks", "info/attributes", "commondir", "objects/info/alternates")
	if err := h.below(dir, "worktrees", func(tree *os.File) error { return h.worktree(tree, perTree) }); err != nil {
		return err
	}
	return h.below(dir, "modules", h.module)
}

// make makes what the sandbox would otherwise make: git on the host would take
// its hooks, its settings, or the settings of the repository that an alternate
// or a commondir names.
func (h *gitHold) make(dir *os.File, perTree bool) error {
	files := []struct {
		folder []string
		name   string
		text   string
		skip   bool
	}{
		{name: "commondir", text: "./\n"}, // libgit2 cannot open "."
		{name: "config.worktree", skip: !perTree},
		{folder: []string{"info"}, name: "attributes"},
		{folder: []string{"objects", "info"}, name: "alternates"},
	}
	if err := h.makeFolder(dir, "hooks"); err != nil {
		return err
	}
	if kindAt(dir, "objects") == 0 {
		return errors.New("it has no objects")
	}
	for _, f := range files {
		if f.skip {
			continue
		}
		if err := h.makeFile(dir, f.folder, f.name, f.text); err != nil {
			return err
		}
	}
	return nil
}

func (h *gitHold) makeFile(dir *os.File, folders []string, name, text string) error {
	at := dir
	for _, folder := range folders {
		if err := h.makeFolder(at, folder); err != nil {
			return err
		}
		next, err := folderAt(at, folder)
		if err != nil {
			return err
		}
		defer next.Close()
		at = next
	}
	if kindAt(at, name) != 0 {
		return nil
	}
	// Whole or not at all: git takes half a commondir for a broken repository.
	part := fmt.Sprintf("%s.egressd-%d", name, os.Getpid())
	fd, err := unix.Openat(int(at.Fd()), part, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("making %s: %w", filepath.Join(at.Name(), name), err)
	}
	f := os.NewFile(uintptr(fd), part)
	_, err = f.WriteString(text)
	err = errors.Join(err, handOver(f, at), f.Close())
	if err == nil {
		err = renameNew(int(at.Fd()), part, name)
	}
	if err != nil {
		_ = unix.Unlinkat(int(at.Fd()), part, 0)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // another session has made it
	}
	if err != nil {
		return fmt.Errorf("making %s: %w", filepath.Join(at.Name(), name), err)
	}
	h.tell(at, name)
	return nil
}

func (h *gitHold) makeFolder(dir *os.File, name string) error {
	err := unix.Mkdirat(int(dir.Fd()), name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		h.tell(dir, name)
		var made *os.File
		if made, err = folderAt(dir, name); err == nil {
			err = errors.Join(handOver(made, dir), made.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("making %s: %w", filepath.Join(dir.Name(), name), err)
	}
	return nil
}

// tell remembers what was made.
func (h *gitHold) tell(dir *os.File, name string) {
	if rel, err := filepath.Rel(h.top, filepath.Join(dir.Name(), name)); err == nil {
		h.made = append(h.made, rel)
	}
}

// handOver gives what root made to whoever owns the folder it lies in.
func handOver(f, folder *os.File) error {
	if os.Getuid() != 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &st); err != nil {
		return err
	}
	return unix.Fchown(int(f.Fd()), int(st.Uid), int(st.Gid))
}

// hold adds what there is of these names. A link is hidden, and the folder that
// hooks lead to is held.
func (h *gitHold) hold(dir *os.File, names ...string) {
	for _, name := range names {
		path := filepath.Join(dir.Name(), name)
		if folder := filepath.Dir(path); realPath(folder) != folder {
			continue // git's own folders are no links: make has looked
		}
		st, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			h.list = append(h.list, path)
			h.names(path, st)
			continue
		}
		h.links = append(h.links, path)
		if real := realPath(path); name == "hooks" && real != "" {
			h.list = append(h.list, real)
		}
	}
}

// names notes a file with more than one name, and those in a folder of hooks.
func (h *gitHold) names(path string, st fs.FileInfo) {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && st.Mode().IsRegular() && sys.Nlink > 1 {
		h.linked = append(h.linked, path)
	}
	if !st.IsDir() || filepath.Base(path) != "hooks" {
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return // closed to git too
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil && !st.IsDir() && !strings.HasSuffix(e.Name(), ".sample") {
			h.names(filepath.Join(path, e.Name()), st)
		}
	}
}

// worktree holds the folder of a worktree, which has its settings elsewhere.
func (h *gitHold) worktree(dir *os.File, perTree bool) error {
	if perTree && h.writable(dir.Name()) {
		if err := h.makeFile(dir, nil, "config.worktree", ""); err != nil {
			return err
		}
	}
	h.hold(dir, "config", "config.worktree", "hooks", "commondir")
	return nil
}

// module holds the folder of a submodule, or looks further where its name has
// more than one part. What was a submodule's once is known by its config, which
// no sandbox can take away.
func (h *gitHold) module(dir *os.File) error {
	for _, name := range []string{"config", "HEAD", "commondir"} {
		if kindAt(dir, name) == 0 {
			continue
		}
		list, made := len(h.list), len(h.made)
		if err := h.folder(dir); err != nil {
			if h.left < 0 {
				return err
			}
			h.list, h.made = append(h.list[:list], dir.Name()), h.made[:made] // it alone is held whole
		}
		return nil
	}
	return h.entries(dir, h.module)
}

// below does something with each folder in the folder name of dir.
func (h *gitHold) below(dir *os.File, name string, do func(*os.File) error) error {
	switch kindAt(dir, name) {
	case 0:
		return nil
	case unix.S_IFDIR:
	default:
		return fmt.Errorf("its %s is no folder", name)
	}
	folder, err := folderAt(dir, name)
	if err != nil {
		return err
	}
	defer folder.Close()
	return h.entries(folder, do)
}

func (h *gitHold) entries(folder *os.File, do func(*os.File) error) error {
	entries, err := folder.ReadDir(-1)
	if err != nil {
		return fmt.Errorf("reading %s: %w", folder.Name(), err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if h.left--; h.left < 0 {
			return fmt.Errorf("it has more than %d folders of submodules and worktrees", gitWalk)
		}
		next, err := folderAt(folder, e.Name())
		if err != nil {
			return err
		}
		err = do(next)
		next.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// openFolder opens a folder by an absolute path that has no link in it.
func openFolder(path string) (*os.File, error) {
	at, err := os.Open("/")
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.Trim(path, "/"), "/")
	for i, name := range names {
		how := throughOnly // folders above need not be readable
		if i == len(names)-1 {
			how = unix.O_RDONLY
		}
		next, err := openAt(at, name, how|unix.O_DIRECTORY)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// folderAt opens a folder in another one, and is not led on by a link.
func folderAt(dir *os.File, name string) (*os.File, error) {
	return openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

func openAt(dir *os.File, name string, how int) (*os.File, error) {
	path := filepath.Join(dir.Name(), name)
	fd, err := unix.Openat(int(dir.Fd()), name, how|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s (a link is not followed): %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// kindAt is the kind of a name in a folder, as in a mode; 0 where there is
// nothing.
func kindAt(dir *os.File, name string) uint32 {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0
	}
	return uint32(st.Mode) & unix.S_IFMT
}

// readAt reads a small file in a folder, and neither a link nor a pipe.
func readAt(dir *os.File, name string) (string, error) {
	f, err := openAt(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no file", f.Name())
	}
	data, err := io.ReadAll(io.LimitReader(f, gitText+1))
	if err == nil && len(data) > gitText {
		err = fmt.Errorf("%s is too long", f.Name())
	}
	return string(data), err
}
