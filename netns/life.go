//go:build linux

package netns

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Check looks from inside, before Go, and returns what does not hold.
func (s *Session) Check(ctx context.Context, checks ...Check) ([]string, error) {
	m, files, err := s.launcher.ask(ctx, startTime, message{Kind: kindCheck, Checks: checks})
	closeFiles(files)
	if err != nil {
		return nil, err
	}
	return m.Failures, nil
}

// Go starts the program. A program that is not there or cannot be executed is
// a *NotStarted.
func (s *Session) Go(ctx context.Context) error {
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
	_, files, err := s.launcher.ask(ctx, startTime, message{Kind: kindGo})
	closeFiles(files)
	var no *remoteError
	if errors.As(err, &no) && no.code != 0 {
		return &NotStarted{Problem: no.text, Code: no.code}
	}
	if errors.Is(err, os.ErrClosed) {
		// The launcher is gone: a program may have killed it before it could say
		// that it had started one. Wait tells the end.
		return nil
	}
	return err
}

// Signal passes a signal to the program, or to its whole process group. An error
// says that it was not taken within a second: a program can stop the launcher,
// and then nothing inside says or hears anything any more.
func (s *Session) Signal(sig unix.Signal, group bool) error {
	_, files, err := s.launcher.ask(context.Background(), answerTime, message{Kind: kindSignal, Signal: int(sig), Group: group})
	closeFiles(files)
	return err
}

// SignalAll passes a signal to everything inside but the launcher. Its error is
// that of Signal.
func (s *Session) SignalAll(sig unix.Signal) error {
	_, files, err := s.launcher.ask(context.Background(), answerTime, message{Kind: kindSignal, Signal: int(sig), All: true})
	closeFiles(files)
	return err
}

// endTime is how long the sandbox has to fall down after its program.
const endTime = 2 * time.Second

// Wait waits for the program's end and then for that of everything inside. The
// code is the program's status, 128+n if signal n ended it. A sandbox that
// ends without one, as by Close, is 137, and so is one that met a limit, whatever
// its program came to (Exceeded).
func (s *Session) Wait() (code int, err error) {
	<-s.launcher.ended
	select {
	case <-s.chain.child.ended:
	case <-time.After(endTime):
		s.chain.child.kill()
	}
	status := s.launcher.status
	if s.bounds != nil {
		<-s.bounds.done
		if s.bounds.met != "" || s.bounds.err != nil {
			return 128 + int(unix.SIGKILL), s.bounds.err
		}
	}
	switch {
	case status == nil:
		return 128 + int(unix.SIGKILL), nil
	case status.Signaled():
		return 128 + int(status.Signal()), nil
	default:
		return status.ExitStatus(), nil
	}
}

// Close ends everything inside at once and waits for it. It is safe to call
// more than once, and at any time.
func (s *Session) Close() error {
	s.close.Do(func() {
		s.chain.child.kill()
		s.closeErr = errors.Join(s.chain.launcher.close(), s.doors.close(), s.stopWatching())
		if s.chain.keeper != nil {
			s.closeErr = errors.Join(s.closeErr, s.chain.keeper.close())
		}
		if s.keeper != nil {
			<-s.keeper.ended
		}
		if s.launcher != nil {
			<-s.launcher.ended
		}
		_ = s.blank.wait() // its error has been told
		if s.early != nil {
			<-s.early // of a start that failed, whose error it has
		}
		s.dropSpares()
		if s.server != nil {
			s.server.close()
		}
		if s.public != nil {
			s.closeErr = errors.Join(s.closeErr, s.public.close())
		}
		s.closeErr = errors.Join(s.closeErr, s.unbound(), s.removeGroup())
	})
	return s.closeErr
}
