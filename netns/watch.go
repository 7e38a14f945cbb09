//go:build linux

package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// A watcher sees what the host does to the names that are hidden or read-only
// inside, and has them covered again.
type watcher struct {
	list   []mount.Spot
	ids    map[string]fileID // what names and folders stood for at the start
	quit   chan struct{}     // closed by close
	mu     sync.Mutex
	file   *os.File                        // inotify, once it looks
	spots  map[int32]map[string]mount.Spot // by the watch on their folder, and their name
	above  map[int32]mount.Spot            // by the watch on a folder that must stay where it is
	keeper *remote                         // nil: nobody can mend
	fell   func(mount.Spot, error)
	wait   sync.WaitGroup
}

// watched are the changes that take a cover off or make a name anew. The end
// or the move of a folder between a root and such a name cannot be mended: the
// sandbox could make it anew. That of the root itself takes nothing off.
const watched = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// watchAfter is how long a sandbox runs before its names are watched: to end a
// watch takes the kernel up to 20 ms, which a command that is over at once must
// not wait for. What happened before is seen then, by comparing.
const watchAfter = 100 * time.Millisecond

// fileID says which file or folder a name stands for; zero for none. A number
// is given again as soon as its file is gone, so the time of making counts too,
// and where a file system does not tell it, that of the last change: then a file
// that was only written to counts as another, which at worst covers it twice.
type fileID struct {
	major, minor uint32
	ino          uint64
	when         unix.StatxTimestamp
}

func identify(path string) fileID {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME|unix.STATX_CTIME, &st) != nil {
		return fileID{}
	}
	id := fileID{st.Dev_major, st.Dev_minor, st.Ino, st.Btime}
	if st.Mask&unix.STATX_BTIME == 0 {
		id.when = st.Ctime
	}
	return id
}

// watchSpots notes what the names stand for. It must come before the mounts are
// made, so that no change is missed; serve begins to look.
func watchSpots(spots []mount.Spot) *watcher {
	w := &watcher{list: spots, ids: map[string]fileID{}, spots: map[int32]map[string]mount.Spot{}, above: map[int32]mount.Spot{}, quit: make(chan struct{})}
	for _, s := range spots {
		for _, path := range append([]string{filepath.Join(s.Folder, s.Name)}, s.Above...) {
			if _, ok := w.ids[path]; !ok {
				w.ids[path] = identify(path)
			}
		}
	}
	return w
}

// serve has what falls off mended, or calls fell where that fails.
func (w *watcher) serve(keeper *remote, fell func(mount.Spot, error)) {
	w.keeper, w.fell = keeper, fell
	w.wait.Go(func() {
		select {
		case <-w.quit:
			return
		case <-time.After(watchAfter):
		}
		if w.begin() {
			w.read()
		}
	})
}

// begin sets the watches and sees what has happened before.
func (w *watcher) begin() bool {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		w.fell(w.list[0], fmt.Errorf("watching hidden names: %w", err))
		return false
	}
	file := os.NewFile(uintptr(fd), "inotify")
	for _, s := range w.list {
		for i, folder := range append([]string{s.Folder}, s.Above...) {
			wd, err := unix.InotifyAddWatch(fd, folder, watched|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW)
			if err != nil {
				w.fell(s, fmt.Errorf("watching %s: %w", folder, err))
				_ = file.Close()
				return false
			}
			if i == 0 {
				if w.spots[int32(wd)] == nil {
					w.spots[int32(wd)] = map[string]mount.Spot{}
				}
				w.spots[int32(wd)][s.Name] = s
			} else {
				w.above[int32(wd)] = s
			}
		}
	}
	w.mu.Lock()
	w.file = file
	w.mu.Unlock()
	select {
	case <-w.quit: // close came before it could see the file
		_ = file.Close()
		return false
	default:
	}
	for _, s := range w.list {
		for _, folder := range s.Above {
			// A folder that was moved keeps its number, so a new one has another.
			if now, then := identify(folder), w.ids[folder]; now.ino != then.ino || now.major != then.major || now.minor != then.minor {
				w.fell(s, errMoved)
				return true
			}
		}
		if name := filepath.Join(s.Folder, s.Name); identify(name) != w.ids[name] {
			w.mend(s)
		}
	}
	return true
}

var errMoved = errors.New("a folder above it was moved or removed")

// read is the watcher's goroutine. It ends when the file is closed.
func (w *watcher) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		for data := buf[:n]; len(data) >= unix.SizeofInotifyEvent; {
			size := int(binary.NativeEndian.Uint32(data[12:]))
			if unix.SizeofInotifyEvent+size > len(data) {
				break
			}
			wd := int32(binary.NativeEndian.Uint32(data))
			name := strings.TrimRight(string(data[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size]), "\x00")
			w.see(wd, binary.NativeEndian.Uint32(data[4:]), name)
			data = data[unix.SizeofInotifyEvent+size:]
		}
	}
}

func (w *watcher) see(wd int32, mask uint32, name string) {
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0: // anything may have happened
		for _, spots := range w.spots {
			for _, s := range spots {
				w.mend(s)
			}
		}
	case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0:
		if s, ok := w.above[wd]; ok {
			w.fell(s, errMoved)
		}
	default:
		if s, ok := w.spots[wd][name]; ok {
			w.mend(s)
		}
	}
}

func (w *watcher) mend(s mount.Spot) {
	if w.keeper == nil {
		w.fell(s, errors.New("only bwrap may mount here, and it is over"))
		return
	}
	_, files, err := w.keeper.ask(context.Background(), answerTime, message{Kind: kindMend, Spot: &s})
	closeFiles(files)
	if err != nil {
		w.fell(s, err)
	}
}

func (w *watcher) close() error {
	close(w.quit)
	w.mu.Lock()
	file := w.file
	w.mu.Unlock()
	var err error
	if file != nil {
		err = file.Close()
	}
	w.wait.Wait()
	return err
}
