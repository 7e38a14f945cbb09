package audit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// growBy is how much is allocated ahead: few enough calls, and little
	// enough left behind when a session is killed.
	growBy = 256 << 10
	// endRoom is held from the start for session_end: 18 kinds of up to four
	// verdicts fit four times over.
	endRoom = 16 << 10
	// maxBuffer is how much waits for a writer that does not come back.
	maxBuffer = 4 << 20
	// retryEvery is how often a disk that was full is tried again.
	retryEvery = 50 * time.Millisecond
)

var errTotal = errors.New("the session's record has reached audit.max_total")

// room is the account of disk blocks of the current file:
//
//	allocated - written = buffered + reserved + free
//
// It and everything in this file is under the Log's lock.
type room struct {
	free      int64 // allocated, and nobody's
	reserved  int64 // held by Reserve, and for session_end
	allocated int64 // offset up to which the current file has blocks
	total     int64 // bytes of lines of this session
	frozen    bool  // somebody grows the file or begins the next one
	failing   error // the last write failed, and is tried again
	wake      chan struct{}
}

// wakeAll tells those who wait for room to look again.
func (m *room) wakeAll() {
	if m.wake != nil {
		close(m.wake)
		m.wake = nil
	}
}

func (m *room) waker() chan struct{} {
	if m.wake == nil {
		m.wake = make(chan struct{})
	}
	return m.wake
}

// waitWake waits, without the lock, for wakeAll.
func (l *Log) waitWake() {
	c := l.waker()
	l.mu.Unlock()
	<-c
	l.mu.Lock()
}

// holdEnd holds the room of session_end.
func (l *Log) holdEnd() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.claim(context.Background(), endRoom); err != nil && l.cfg.OnFailure == Block {
		return false
	} else if err != nil {
		l.free -= endRoom // in debt; the writer tries all the same
	}
	l.reserved += endRoom
	return true
}

// Reserve holds room on the disk for one final record. With Block it waits for
// it BlockTimeout at most, and fails with *Unavailable, or ctx's error in one;
// with Warn it does nothing.
func (l *Log) Reserve(ctx context.Context) error {
	if l.cfg.OnFailure == Warn {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.claim(ctx, recordRoom); err != nil {
		return err
	}
	l.reserved += recordRoom
	return nil
}

// Release gives back the room of one Reserve.
func (l *Log) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.takeReserved() {
		l.free += recordRoom
		l.wakeAll()
	}
}

// takeReserved ends one reservation, if there is one.
func (l *Log) takeReserved() bool {
	if l.cfg.OnFailure == Warn || l.reserved < endRoom+recordRoom {
		return false
	}
	l.reserved -= recordRoom
	return true
}

func (l *Log) dropReserved(r *Record) {
	if r.Reserved && l.takeReserved() {
		l.free += recordRoom
	}
}

// claimFor claims room for the line of r. A record with reserved room always
// gets it, if need be by being cut.
func (l *Log) claimFor(r *Record, e *encoder, body *[]byte) (int64, error) {
	need := int64(len(*body) + headRoom)
	if !r.Reserved || !l.takeReserved() {
		return need, l.claim(context.Background(), need)
	}
	if need <= recordRoom {
		return recordRoom, nil
	}
	if more := need - recordRoom; l.claimNow(more) == nil {
		return need, nil
	}
	*body = e.encode(&l.cfg, r, true)
	return recordRoom, nil
}

var errBehind = errors.New("the disk does not take the record")

// errGrow says that the file must grow first.
var errGrow = errors.New("the file has no room")

// claimNow takes n bytes of room that is there.
func (l *Log) claimNow(n int64) error {
	switch {
	case l.closed:
		return ErrClosed
	case l.total+l.reserved+n > l.cfg.MaxTotal:
		return errTotal
	case l.failing != nil:
		return l.failing
	case len(l.buf) > maxBuffer:
		return errBehind
	case l.frozen || l.free < n:
		return errGrow
	}
	l.free -= n
	return nil
}

// claim takes n bytes of room, and with Block waits for them. The lock is held
// when it is called and when it returns, not in between.
func (l *Log) claim(ctx context.Context, n int64) error {
	err := l.claimNow(n)
	if err == nil {
		return nil
	}
	timer := time.NewTimer(l.cfg.BlockTimeout)
	defer timer.Stop()
	for {
		if err == errGrow && !l.frozen {
			if err = l.grow(n); err == nil {
				err = l.claimNow(n)
			}
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrClosed), l.total+min(l.reserved, endRoom)+n > l.cfg.MaxTotal:
			return &Unavailable{err} // no Release can help
		case l.cfg.OnFailure == Warn && !l.frozen:
			return &Unavailable{err}
		}
		if waitErr := l.waitRoom(ctx, timer); waitErr != nil {
			if err == errGrow {
				return &Unavailable{waitErr}
			}
			return &Unavailable{fmt.Errorf("%w: %w", waitErr, err)}
		}
		err = l.claimNow(n)
	}
}

var errWaited = errors.New("no room within audit.block_timeout")

// waitRoom waits for a reason to look again.
func (l *Log) waitRoom(ctx context.Context, end *time.Timer) error {
	wake := l.waker()
	l.mu.Unlock()
	defer l.mu.Lock()
	again := time.NewTimer(retryEvery)
	defer again.Stop()
	select {
	case <-wake:
	case <-again.C:
	case <-end.C:
		return errWaited
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// grow allocates blocks for n bytes and some more, or, on a disk that is
// nearly full, for as little as will do.
func (l *Log) grow(n int64) error {
	l.frozen = true
	file, from, want := l.file, l.allocated, n-l.free
	l.mu.Unlock()
	got := max(want, growBy)
	err := allocate(file, from, got)
	if err != nil && got > want {
		got = want
		err = allocate(file, from, got)
	}
	l.mu.Lock()
	l.frozen = false
	if err == nil {
		l.free += got
		l.allocated += got
	}
	l.wakeAll()
	if err != nil {
		return fmt.Errorf("holding room on the disk: %w", err)
	}
	return nil
}
