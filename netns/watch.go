package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// A watcher sees what the host does to the names that are hidden or read-only
// inside, and has them covered again.
type watcher struct {
	file   *os.File               // inotify
	spots  map[int32][]mount.Spot // by the watch on their folder
	above  map[int32]mount.Spot   // by the watch on a folder that must stay where it is
	keeper *remote                // nil: nobody can mend
	fell   func(mount.Spot, error)
	wait   sync.WaitGroup
}

// watched are the changes that take a cover off or make a name anew. The end
// or the move of a folder between a root and such a name cannot be mended: the
// sandbox could make it anew. That of the root itself takes nothing off.
const watched = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// watchSpots begins to look. It must come before the mounts are made, so that
// no change is missed; serve begins to act.
func watchSpots(spots []mount.Spot) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watching hidden names: %w", err)
	}
	w := &watcher{file: os.NewFile(uintptr(fd), "inotify"), spots: map[int32][]mount.Spot{}, above: map[int32]mount.Spot{}}
	for _, s := range spots {
		for i, folder := range append([]string{s.Folder}, s.Above...) {
			wd, err := unix.InotifyAddWatch(fd, folder, watched|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("watching %s: %w", folder, err), w.file.Close())
			}
			if i == 0 {
				w.spots[int32(wd)] = append(w.spots[int32(wd)], s)
			} else {
				w.above[int32(wd)] = s
			}
		}
	}
	return w, nil
}

// serve has what falls off mended, or calls fell where that fails.
func (w *watcher) serve(keeper *remote, fell func(mount.Spot, error)) {
	w.keeper, w.fell = keeper, fell
	w.wait.Go(w.read)
}

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
			w.fell(s, errors.New("a folder above it was moved or removed"))
		}
	default:
		for _, s := range w.spots[wd] {
			if s.Name == name {
				w.mend(s)
			}
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
	err := w.file.Close()
	w.wait.Wait()
	return err
}
