package audit

import (
	"fmt"
	"os"
)

// rotate begins the next file, with room in it for everything that has room in
// the current one. Where that cannot be had the current file goes on, past
// MaxSize: a reservation counts for more than a size. unwritten is what the
// writer has in hand. Only the writer calls it, without the lock.
func (l *Log) rotate(unwritten int64) {
	l.mu.Lock()
	for l.frozen {
		l.waitWake()
	}
	l.frozen = true
	need := unwritten + int64(len(l.buf)) + l.reserved
	l.mu.Unlock()

	next, got, err := l.nextFile(need)

	l.mu.Lock()
	old, size := l.file, l.size
	if err == nil {
		l.file, l.size = next, 0
		l.number++
		l.allocated = got
		// What was buffered meanwhile used reserved room, and gave some back.
		l.free = got - unwritten - int64(len(l.buf)) - l.reserved
	} else {
		l.planned += l.cfg.MaxSize // the next record tries again
	}
	l.frozen = false
	l.wakeAll()
	l.mu.Unlock()
	if err != nil {
		l.warn(err)
		return
	}
	// Syncing may take longer than a request can wait. Close waits for it.
	l.wg.Go(func() {
		if err := finishFile(old, size, old != l.locks); err != nil {
			l.warn(err)
		}
	})
}

// nextFile makes the next file, with room for need bytes and some more.
func (l *Log) nextFile(need int64) (*os.File, int64, error) {
	name := l.place.name(l.number + 1)
	f, err := l.place.make(name)
	if err != nil {
		return nil, 0, fmt.Errorf("beginning the next file of the record: %w", err)
	}
	got := need + growBy
	if err = allocate(f, 0, got); err != nil {
		got = need
		err = allocate(f, 0, got)
	}
	if err != nil {
		f.Close()
		l.place.root.Remove(name)
		return nil, 0, fmt.Errorf("holding room in the next file of the record: %w", err)
	}
	return f, got, nil
}

// finishFile leaves a file that is full: blocks behind its end go back, the
// rest goes to the medium. The first file stays open, since it bears the lock.
func finishFile(f *os.File, size int64, shut bool) error {
	err := f.Truncate(size)
	if err == nil {
		err = f.Sync()
	}
	if shut {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return fmt.Errorf("finishing a file of the record: %w", err)
	}
	return nil
}
