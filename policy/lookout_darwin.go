package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// lookInterval is how often files are looked at. kqueue tells of every write
// but not of its end, and wants a descriptor for each file.
const lookInterval = time.Second

// written cannot be known here: nobody tells who has a file open. A file is read
// when it has been quiet for as long as the Watcher waits.
func written(string) bool { return false }

// lookout is a set of files that are looked at again and again.
type lookout struct {
	stop chan struct{}

	mu    sync.Mutex
	files map[string]fileState
}

// fileState is what tells that a file is another one, or says something else.
type fileState struct {
	there  bool
	size   int64
	change time.Time
	id     os.FileInfo
}

func (a fileState) same(b fileState) bool {
	return a.there == b.there && a.size == b.size && a.change.Equal(b.change) && (!a.there || os.SameFile(a.id, b.id))
}

func stateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{there: true, size: info.Size(), change: info.ModTime(), id: info}
}

func newLookout() (*lookout, error) {
	return &lookout{stop: make(chan struct{}), files: map[string]fileState{}}, nil
}

// watch adds files. The folder of the first must be there.
func (l *lookout) watch(files []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range files {
		if _, ok := l.files[f]; !ok {
			l.files[f] = stateOf(f)
		}
	}
	if len(files) == 0 {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(files[0])); err != nil {
		return fmt.Errorf("watching %s: %w", filepath.Dir(files[0]), err)
	}
	return nil
}

// read reports changes until close.
func (l *lookout) read(events chan<- struct{}) {
	for tick := time.NewTicker(lookInterval); ; {
		select {
		case <-l.stop:
			tick.Stop()
			return
		case <-tick.C:
		}
		if !l.changed() {
			continue
		}
		select {
		case events <- struct{}{}:
		default: // one is waiting already
		}
	}
}

func (l *lookout) changed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := false
	for f, old := range l.files {
		if now := stateOf(f); !now.same(old) {
			l.files[f], found = now, true
		}
	}
	return found
}

// close ends read.
func (l *lookout) close() { close(l.stop) }
