//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A remote is egressd's side of the launcher's control: questions with their
// answers, and what the launcher says by itself.
type remote struct {
	c     *control
	event func(message)

	mu      sync.Mutex
	lastID  uint64
	waiting map[uint64]chan reply

	ended  chan struct{} // closed when nothing more comes
	status *unix.WaitStatus
}

type reply struct {
	message
	files []*os.File
}

// open is what an answer holds.
func (r reply) open() (message, []*os.File, error) {
	if r.Error != "" {
		closeFiles(r.files)
		return message{}, nil, &remoteError{r.Error, unix.Errno(r.Errno), r.Code}
	}
	return r.message, r.files, nil
}

// answerTime is how long the launcher has for an answer. The program can stop
// it, to its own harm only.
const answerTime = time.Second

func newRemote(c *control, event func(message)) *remote {
	r := &remote{c: c, event: event, waiting: map[uint64]chan reply{}, ended: make(chan struct{})}
	go r.read()
	return r
}

// read is the remote's goroutine. It ends with the control.
func (r *remote) read() {
	defer close(r.ended)
	for {
		m, files, err := r.c.receive()
		if err != nil {
			return
		}
		if m.ID != 0 {
			r.mu.Lock()
			answer := r.waiting[m.ID]
			delete(r.waiting, m.ID)
			r.mu.Unlock()
			if answer != nil {
				answer <- reply{m, files}
				continue
			}
		}
		closeFiles(files)
		switch m.Kind {
		case kindExited:
			if r.status == nil {
				s := unix.WaitStatus(m.Status)
				r.status = &s
			}
		case kindStopped, kindContinued, kindEnded:
			r.event(m)
		}
	}
}

// ask sends a question and waits for its answer. An answer that says no is a
// remoteError. The caller closes the files.
func (r *remote) ask(ctx context.Context, limit time.Duration, m message, files ...*os.File) (message, []*os.File, error) {
	answer := make(chan reply, 1)
	r.mu.Lock()
	r.lastID++
	m.ID = r.lastID
	r.waiting[m.ID] = answer
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.waiting, m.ID)
		r.mu.Unlock()
		select {
		case late := <-answer:
			closeFiles(late.files)
		default:
		}
	}()
	if err := r.c.send(m, files...); err != nil {
		return message{}, nil, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-answer:
		return got.open()
	case <-r.ended:
		// A program that is over at once ends the control right behind the
		// answer, and select takes either.
		select {
		case got := <-answer:
			return got.open()
		default:
			return message{}, nil, fmt.Errorf("asking the launcher for %s: %w", m.Kind, os.ErrClosed)
		}
	case <-timer.C:
		return message{}, nil, fmt.Errorf("asking the launcher for %s: %w", m.Kind, os.ErrDeadlineExceeded)
	case <-ctx.Done():
		return message{}, nil, fmt.Errorf("asking the launcher for %s: %w", m.Kind, context.Cause(ctx))
	}
}

// remoteError is an answer that says no.
type remoteError struct {
	text  string
	errno unix.Errno
	code  int
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// oneFile is the file of an answer that must hold one.
func oneFile(files []*os.File) (*os.File, error) {
	if len(files) != 1 {
		closeFiles(files)
		return nil, errors.New("reading the launcher's answer: it holds no descriptor")
	}
	return files[0], nil
}
