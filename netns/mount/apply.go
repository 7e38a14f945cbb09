//go:build linux

package mount

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// The work folder is a tmpfs that the helper mounts over /tmp in its own mount
// namespace, after everything of the host that is shown has been cloned: so a
// root below /tmp works too. bwrap binds from here, nothing of it is a file of
// the host.
const (
	work         = "/tmp"
	workRoots    = work + "/root/"
	workFiles    = work + "/file/"
	workEtc      = work + "/etc"
	workLauncher = work + "/launcher"
	workEmpty    = work + "/empty"
	workHoles    = work + "/holes/"
)

// Mounts are the descriptors that came with the plan.
type Mounts struct {
	Launcher int   // detached mount of egressd's binary, or -1: found by its path
	Roots    []int // detached mounts, by Root.Clone - 1
}

// Apply carries the plan out in the calling process's mount namespace, which
// must be its own. It leaves everything in the work folder for bwrap to bind.
func Apply(p *Plan, m Mounts) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting a fresh /proc: %w", err)
	}
	clones := make([]int, len(p.Roots))
	for i, r := range p.Roots {
		if r.Clone > 0 {
			clones[i] = m.Roots[r.Clone-1]
			continue
		}
		if r.Empty {
			continue
		}
		fd, err := cloneHost(r.Source)
		if err != nil {
			return fmt.Errorf("showing %s: %w", r.Source, err)
		}
		clones[i] = fd
	}
	launcher, err := launcherClone(p.Launcher, m.Launcher)
	if err != nil {
		return err
	}
	if err := layWork(); err != nil {
		return err
	}
	if err := placeLauncher(launcher); err != nil {
		return err
	}
	for i := range p.Roots {
		if p.Roots[i].Empty {
			continue
		}
		if err := p.Roots[i].lay(i, clones[i]); err != nil {
			return fmt.Errorf("showing %s: %w", p.Roots[i].Source, err)
		}
	}
	if err := layEtc(p); err != nil {
		return err
	}
	for i, f := range p.Files {
		if err := writeFile(workFiles+strconv.Itoa(i), f.Data, f.Mode); err != nil {
			return fmt.Errorf("placing %s: %w", f.Path, err)
		}
	}
	return nil
}

// Blanks opens the files of the plan that [Apply] has left empty to be written
// later, in the order of Etc and then Files.
func Blanks(p *Plan) ([]*os.File, error) {
	var files []*os.File
	open := func(e Entry, at string) error {
		if !e.Blank {
			return nil
		}
		f, err := os.OpenFile(at, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("opening %s to be written later: %w", e.Path, err)
		}
		files = append(files, f)
		return nil
	}
	for _, e := range p.Etc {
		if err := open(e, work+e.Path); err != nil {
			return files, err
		}
	}
	for i, e := range p.Files {
		if err := open(e, workFiles+strconv.Itoa(i)); err != nil {
			return files, err
		}
	}
	return files, nil
}

// layWork makes the work folder.
func layWork() error {
	if err := unix.Mount("tmpfs", work, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mounting the work folder: %w", err)
	}
	for _, dir := range []string{workRoots, workFiles, workEtc, workHoles, workEmpty + ".d"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("laying out the work folder: %w", err)
		}
	}
	return writeFile(workEmpty, nil, 0o444)
}

func writeFile(path string, data []byte, mode uint32) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(mode))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// lay attaches a root's clone and puts its pins, parts and masks on it, each
// opened anew from the root: what lies between cannot lead out of it.
func (r *Root) lay(i, clone int) error {
	at := workRoots + strconv.Itoa(i)
	var err error
	if r.Dir {
		err = os.Mkdir(at, 0o755)
	} else {
		err = writeFile(at, nil, 0o444)
	}
	if err != nil {
		return err
	}
	if err := attach(clone, at); err != nil {
		return err
	}
	if !r.Dir {
		return nil
	}
	root, err := unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a root: %w", err)
	}
	defer func() { _ = unix.Close(root) }()
	for _, pin := range r.Pins {
		if err := bindOnItself(root, pin, false); err != nil {
			return fmt.Errorf("pinning %s: %w", pin, err)
		}
	}
	for _, part := range r.Parts {
		if err := bindOnItself(root, part, true); err != nil {
			return fmt.Errorf("keeping %s read-only: %w", part, err)
		}
	}
	return r.layMasks(root, i)
}

// layEtc builds the new /etc.
func layEtc(p *Plan) error {
	for _, e := range p.Etc {
		if err := e.lay(work + e.Path); err != nil {
			return fmt.Errorf("making %s: %w", e.Path, err)
		}
	}
	for _, r := range p.Roots { // a place for a grant of the host's /etc/NAME
		if at := work + r.Path; Below(r.Path, "/etc") && !exists(at) {
			if err := (Entry{Dir: r.Dir, Mode: 0o444}).lay(at); err != nil {
				return fmt.Errorf("making %s: %w", r.Path, err)
			}
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (e Entry) lay(at string) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	switch {
	case e.Target != "":
		return os.Symlink(e.Target, at)
	case e.Dir:
		if err := os.MkdirAll(at, 0o755); err != nil || e.Host == "" {
			return err
		}
	case e.Host != "":
		if copied, err := copySmall(e.Host, at); copied || err != nil {
			return err
		}
		if err := writeFile(at, nil, 0o444); err != nil {
			return err
		}
	default:
		return writeFile(at, e.Data, e.Mode)
	}
	clone, err := unix.OpenTree(unix.AT_FDCWD, e.Host, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	return attach(clone, at)
}

// smallFile is what is copied rather than mounted, in bytes: every mount costs
// bwrap a look at all of them.
const smallFile = 128 << 10

// copySmall copies a small regular file of the host that the sandbox's user may
// read. The kernel copies: this process never has the text.
func copySmall(path, at string) (bool, error) {
	from, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, nil
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > smallFile {
		return false, nil
	}
	to, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return false, err
	}
	for n := 1; n > 0 && err == nil; {
		n, err = unix.Sendfile(int(to.Fd()), int(from.Fd()), nil, smallFile)
		if errors.Is(err, unix.EINTR) {
			n, err = 1, nil
		}
	}
	return true, errors.Join(err, to.Close())
}

// launcherClone finds egressd's own binary: the mount that came along, or the
// path, if what lies there is still what runs. Else -1: it is copied.
func launcherClone(path string, given int) (int, error) {
	if given >= 0 {
		return given, nil
	}
	fd, err := cloneHost(path)
	if err != nil {
		return -1, nil // replaced or removed since the start
	}
	var there, running unix.Stat_t
	err = errors.Join(unix.Fstat(fd, &there), unix.Stat("/proc/self/exe", &running))
	if err != nil {
		return -1, fmt.Errorf("comparing the launcher: %w", err)
	}
	if there.Dev == running.Dev && there.Ino == running.Ino {
		return fd, nil
	}
	return -1, unix.Close(fd)
}

func placeLauncher(clone int) error {
	if clone >= 0 {
		if err := writeFile(workLauncher, nil, 0o555); err != nil {
			return fmt.Errorf("placing the launcher: %w", err)
		}
		return attach(clone, workLauncher)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("copying the launcher: %w", err)
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(workLauncher, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o555)
	if err != nil {
		return fmt.Errorf("copying the launcher: %w", err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("copying the launcher: %w", err)
	}
	return nil
}
