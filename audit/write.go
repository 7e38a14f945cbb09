package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// out is the file that is written. It belongs to the writer, and to whoever
// holds room.frozen.
type out struct {
	file   *os.File
	number int
	size   int64 // bytes written
}

// maxSpare is the largest buffer that is kept for later.
const maxSpare = 1 << 20

// commit has the buffer written. Where nobody is writing the caller does it;
// else it joins those who wait for the next write, so that many records share
// one. The lock is held when it is called, and released.
func (l *Log) commit() error {
	if l.cfg.OnFailure == Warn && l.writing {
		l.mu.Unlock()
		return nil
	}
	wait := l.cfg.BlockTimeout
	if l.cfg.OnFailure == Warn {
		wait = 0
	}
	return l.commitWait(wait)
}

// commitWait is commit for one who waits that long if the write is not done at
// once.
func (l *Log) commitWait(wait time.Duration) error {
	if l.writing {
		b := l.join()
		l.mu.Unlock()
		return b.wait(wait)
	}
	l.writing = true
	p := l.take()
	l.mu.Unlock()
	p.rest, p.cuts, p.err = l.write(p.rest, p.cuts)
	l.mu.Lock()
	if p.err == nil {
		l.finish(p)
		if len(l.buf) == 0 {
			l.writing = false
			l.mu.Unlock()
			return nil
		}
		l.wg.Go(func() { l.drain(pending{}) })
		l.mu.Unlock()
		return nil
	}
	l.fail(p.err)
	b := &batch{done: make(chan struct{})}
	p.batches = append(p.batches, b)
	l.wg.Go(func() { l.drain(p) })
	l.mu.Unlock()
	l.warn(p.err)
	if wait == 0 {
		return nil
	}
	return b.wait(wait)
}

// join returns the batch of the lines in the buffer.
func (l *Log) join() *batch {
	if l.batch == nil {
		l.batch = &batch{done: make(chan struct{})}
	}
	return l.batch
}

var waits = sync.Pool{New: func() any { return time.NewTimer(time.Hour) }}

// wait waits for the batch to be written.
func (b *batch) wait(most time.Duration) error {
	t := waits.Get().(*time.Timer)
	defer waits.Put(t)
	t.Reset(most)
	defer t.Stop()
	select {
	case <-b.done:
		if b.err != nil {
			return &Unavailable{b.err}
		}
		return nil
	case <-t.C:
		return &Unavailable{errors.New("not written within audit.block_timeout")}
	}
}

// pending is what a writer has taken out of the buffer.
type pending struct {
	rest    []byte
	cuts    []int
	whole   []byte
	batches []*batch
	err     error
}

// take takes the buffer.
func (l *Log) take() pending {
	p := pending{rest: l.buf, whole: l.buf, cuts: l.cuts}
	if l.batch != nil {
		p.batches = []*batch{l.batch}
	}
	l.buf, l.spare, l.cuts, l.batch = l.spare[:0], nil, nil, nil
	return p
}

// finish tells those who wait, and keeps the buffer.
func (l *Log) finish(p pending) {
	if cap(p.whole) <= maxSpare {
		l.spare = p.whole[:0]
	}
	for _, b := range p.batches {
		b.err = p.err
		close(b.done)
	}
}

// drain writes until there is nothing left, and then ends. A disk that does not
// take a line is tried again until Close gives up, since the lines behind it
// cannot be written without it.
func (l *Log) drain(p pending) {
	for {
		for len(p.rest) > 0 {
			p.rest, p.cuts, p.err = l.write(p.rest, p.cuts)
			if p.err == nil {
				break
			}
			l.mu.Lock()
			l.fail(p.err)
			l.mu.Unlock()
			l.warn(p.err)
			select {
			case <-time.After(retryEvery):
			case <-l.quit:
				l.mu.Lock()
				l.finish(p)
				l.mu.Unlock()
				return
			}
		}
		l.mu.Lock()
		l.finish(p)
		if l.failing != nil {
			l.failing = nil
			l.wakeAll()
		}
		if len(l.buf) == 0 {
			l.writing = false
			l.mu.Unlock()
			return
		}
		p = l.take()
		l.mu.Unlock()
	}
}

// fail notes that the writer is stuck.
func (l *Log) fail(err error) { l.failing = err }

// write writes lines, beginning a new file at each cut. It returns what was
// not written. Only the writer calls it, without the lock.
func (l *Log) write(lines []byte, cuts []int) ([]byte, []int, error) {
	for len(lines) > 0 {
		if len(cuts) > 0 && cuts[0] == 0 {
			l.rotate(int64(len(lines)))
			cuts = cuts[1:]
		}
		n := len(lines)
		if len(cuts) > 0 {
			n = cuts[0]
		}
		done, err := l.file.Write(lines[:n])
		l.size += int64(done)
		lines = lines[done:]
		for i := range cuts {
			cuts[i] -= done
		}
		if err == nil && done < n {
			err = io.ErrShortWrite
		}
		if err != nil {
			return lines, cuts, fmt.Errorf("writing the record: %w", err)
		}
	}
	return nil, nil, nil
}
