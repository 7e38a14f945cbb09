package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// written says that somebody has the file open for writing: the kernel gives no
// read lease then. (To others than the file's owner it gives none for another
// reason, so they are told no.)
func written(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return errors.Is(err, unix.EAGAIN)
}

// lookout is inotify: a set of watched folders and the names in them that count.
type lookout struct {
	fd   int
	file *os.File

	mu sync.Mutex
	// names are by watch; "" among them stands for every name.
	names map[int32]map[string]bool
	dirs  map[int32]string
}

func newLookout() (*lookout, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watching the policy: %w", err)
	}
	return &lookout{fd: fd, file: os.NewFile(uintptr(fd), "inotify"), names: map[int32]map[string]bool{}, dirs: map[int32]string{}}, nil
}

// interesting are events after which a file may be read: it was closed by a
// writer, renamed to, or is gone. Not IN_MODIFY: half of a file may be a good
// policy that lacks its deny rules.
const interesting = unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_CREATE

// watch sees to it that the folder of each file is watched, and where the file
// is a link, that of what it leads to.
func (in *lookout) watch(files []string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	var first error
	for i, file := range files {
		list := []string{file}
		every := false
		if real, err := filepath.EvalSymlinks(file); err == nil && real != filepath.Clean(file) {
			list, every = append(list, real), true
		}
		for _, f := range list {
			dir := filepath.Dir(f)
			wd, err := unix.InotifyAddWatch(in.fd, dir, interesting|unix.IN_ONLYDIR)
			if err != nil {
				if i == 0 && first == nil {
					first = fmt.Errorf("watching %s: %w", dir, err)
				}
				continue
			}
			if in.names[int32(wd)] == nil {
				in.names[int32(wd)] = map[string]bool{}
			}
			in.dirs[int32(wd)] = dir
			in.names[int32(wd)][filepath.Base(f)] = true
			if every { // a link on the way may be what is replaced
				in.names[int32(wd)][""] = true
			}
		}
	}
	return first
}

// read reports events that count until the descriptor is closed.
func (in *lookout) read(events chan<- struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := in.file.Read(buf)
		if err != nil {
			return
		}
		if !in.counts(buf[:n]) {
			continue
		}
		select {
		case events <- struct{}{}:
		default: // one is waiting already
		}
	}
}

// close ends read.
func (in *lookout) close() { _ = in.file.Close() } // nothing was written to it

// counts looks whether one of the events is about a name that counts. An
// overflow of the queue counts.
func (in *lookout) counts(buf []byte) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	found := false
	for len(buf) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(buf))
		mask := binary.NativeEndian.Uint32(buf[4:])
		size := int(binary.NativeEndian.Uint32(buf[12:]))
		name := strings.TrimRight(string(buf[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size]), "\x00")
		buf = buf[unix.SizeofInotifyEvent+size:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			found = true
		case mask&unix.IN_IGNORED != 0: // the folder is gone; a new one is watched anew
			delete(in.names, wd)
			delete(in.dirs, wd)
			found = true
		case !in.names[wd][name] && !in.names[wd][""]:
		case mask&unix.IN_CREATE != 0:
			found = found || linked(filepath.Join(in.dirs[wd], name))
		default:
			found = true
		}
	}
	return found
}

// linked says that a new name is whole as soon as it is there: a link of either
// kind. A file that was opened to be written comes again when it is closed.
func linked(path string) bool {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return false
	}
	return st.Mode&unix.S_IFMT == unix.S_IFLNK || st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1
}
