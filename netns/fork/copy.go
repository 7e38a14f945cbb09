//go:build linux

package fork

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// deepest is how many folders may lie in one another: each takes two descriptors
// while it is copied.
const deepest = 1000

// copier is one copy being made.
type copier struct {
	Config
	ctx   context.Context
	root  *os.File      // the copy
	gid   int           // what is made belongs to this group
	super bool          // owners can be kept
	spare chan struct{} // holds a token for each further goroutine
	work  sync.WaitGroup

	forks    inode    // Config.Dir
	noClone  sync.Map // file systems, by device, that share no blocks
	files    atomic.Int64
	bytes    atomic.Int64
	shared   atomic.Bool
	failed   atomic.Bool
	mu       sync.Mutex
	err      error
	linked   map[inode]string // files of several names, and where in the copy they are
	leftOut  map[string][]string
	leftOutN map[string]int
}

type inode struct{ dev, ino uint64 }

func inodeOf(st *unix.Stat_t) inode { return inode{uint64(st.Dev), st.Ino} }

// folder is a folder that is being copied.
type folder struct {
	rel      string
	depth    int
	src, dst *os.File
	stat     unix.Stat_t
	above    *folder
	open     atomic.Int32 // itself and the folders in it that are not done
}

// copy fills the fork's folder.
func (f *Fork) copy(ctx context.Context, c Config) error {
	src, err := openFolder(c.Source)
	if err != nil {
		return err
	}
	k := &copier{Config: c, ctx: ctx, gid: os.Getegid(), super: os.Geteuid() == 0,
		spare:  make(chan struct{}, min(8, 2*runtime.GOMAXPROCS(0))),
		linked: map[inode]string{}, leftOut: map[string][]string{}, leftOutN: map[string]int{}}
	top := &folder{src: src}
	if k.Skip == nil {
		k.Skip = func(string) bool { return false }
	}
	var st unix.Stat_t
	err = unix.Fstat(int(f.home.Fd()), &st)
	k.forks = inodeOf(&st)
	if err == nil {
		err = unix.Fstat(int(src.Fd()), &top.stat)
	}
	if err == nil {
		err = unix.Mkdirat(int(f.dir.Fd()), treeName, 0o700)
	}
	if err == nil {
		top.dst, err = openAt(f.dir, treeName, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	if err != nil {
		return errors.Join(&Error{c.Source, c.Dir, err}, src.Close())
	}
	k.root = top.dst
	top.open.Store(1)
	k.walk(top)
	k.work.Wait()
	f.Files, f.Bytes, f.Shared, f.Notes = k.files.Load(), k.bytes.Load(), k.shared.Load(), k.notes()
	return k.err
}

// fail ends the copying; the first error is the one that is told.
func (k *copier) fail(rel string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = &Error{filepath.Join(k.Source, rel), k.Dir, err}
	}
	k.failed.Store(true)
}

// Kinds of what is not in a copy.
const (
	outSpecial = "sockets, pipes and devices"
	outClosed  = "what you may not read"
	outKernel  = "file systems of the kernel's"
	outChanged = "what was changed meanwhile"
)

// leave notes that a name is not in the copy.
func (k *copier) leave(kind, rel string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leftOutN[kind]++; len(k.leftOut[kind]) < 3 {
		k.leftOut[kind] = append(k.leftOut[kind], rel)
	}
}

func (k *copier) notes() []string {
	var lines []string
	for _, kind := range []string{outSpecial, outClosed, outKernel, outChanged} {
		if names := k.leftOut[kind]; len(names) > 0 {
			slices.Sort(names)
			more := ""
			if n := k.leftOutN[kind] - len(names); n > 0 {
				more = fmt.Sprintf(" and %d more", n)
			}
			lines = append(lines, fmt.Sprintf("the copy is without %s: %q%s", kind, names, more))
		}
	}
	return lines
}

// walk copies what a folder holds. Folders in it are copied beside it while there
// are goroutines to spare.
func (k *copier) walk(f *folder) {
	defer k.done(f)
	for !k.failed.Load() {
		names, err := f.src.Readdirnames(batch)
		for _, name := range names {
			if err := k.ctx.Err(); err != nil {
				k.fail(f.rel, err)
			}
			if k.failed.Load() {
				return
			}
			rel := filepath.Join(f.rel, name)
			if k.Skip(rel) {
				continue
			}
			if err := k.entry(f, name, rel); err != nil {
				k.fail(rel, err)
			}
		}
		if len(names) == 0 {
			if err != nil && !errors.Is(err, io.EOF) {
				k.fail(f.rel, err)
			}
			return
		}
	}
}

// entry copies one name of a folder.
func (k *copier) entry(f *folder, name, rel string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(f.src.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return k.gone(rel, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return k.file(f, name, rel)
	case unix.S_IFLNK:
		return k.link(f, name, rel, &st)
	case unix.S_IFDIR:
		return k.enter(f, name, rel)
	}
	k.leave(outSpecial, rel)
	return nil
}

// gone lets pass that a name is not there any more or may not be read.
func (k *copier) gone(rel string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		k.leave(outClosed, rel)
		return nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENXIO):
		k.leave(outChanged, rel)
		return nil
	}
	return err
}

// enter begins with a folder.
func (k *copier) enter(f *folder, name, rel string) error {
	src, err := openAt(f.src, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return k.gone(rel, err)
	}
	sub := &folder{rel: rel, depth: f.depth + 1, src: src, above: f}
	err = unix.Fstat(int(src.Fd()), &sub.stat)
	switch {
	case err != nil:
	case inodeOf(&sub.stat) == k.forks:
		return src.Close()
	case sub.depth > deepest:
		err = fmt.Errorf("more than %d folders lie in one another", deepest)
	case sub.stat.Dev != f.stat.Dev && ofKernel(src):
		k.leave(outKernel, rel)
		return src.Close()
	default:
		if err = unix.Mkdirat(int(f.dst.Fd()), name, 0o700); err == nil {
			sub.dst, err = openAt(f.dst, name, unix.O_RDONLY|unix.O_DIRECTORY)
		}
	}
	if err != nil {
		return errors.Join(err, src.Close())
	}
	sub.open.Store(1)
	f.open.Add(1)
	select {
	case k.spare <- struct{}{}:
		k.work.Go(func() {
			k.walk(sub)
			<-k.spare
		})
	default:
		k.walk(sub)
	}
	return nil
}

// done is called when a folder's own names are copied. What is then whole gets
// the original's mode and times, which writing to it would change.
func (k *copier) done(f *folder) {
	for ; f != nil && f.open.Add(-1) == 0; f = f.above {
		if !k.failed.Load() {
			if err := k.likeOriginal(f.src, f.dst, &f.stat); err != nil {
				k.fail(f.rel, err)
			}
		}
		_ = f.src.Close()
		_ = f.dst.Close()
	}
}

// link copies a symbolic link as what it is.
func (k *copier) link(f *folder, name, rel string, st *unix.Stat_t) error {
	target := make([]byte, max(int(st.Size)+1, 256))
	n, err := unix.Readlinkat(int(f.src.Fd()), name, target)
	if errors.Is(err, unix.EINVAL) {
		k.leave(outChanged, rel)
		return nil
	}
	if err != nil {
		return k.gone(rel, err)
	}
	if n == len(target) {
		k.leave(outChanged, rel)
		return nil
	}
	at := int(f.dst.Fd())
	if err := unix.Symlinkat(string(target[:n]), at, name); err != nil {
		return err
	}
	if k.super {
		if err := unix.Fchownat(at, name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return unix.UtimesNanoAt(at, name, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}
