package netns

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Go starts the program. A program that is not there or cannot be executed is
// a *NotStarted.
func (s *Session) Go(ctx context.Context) (err error) {
	streams := []*os.File{s.cfg.Streams.Stdin, s.cfg.Streams.Stdout, s.cfg.Streams.Stderr}
	defer closeFiles(streams)
	var slave *os.File
	if s.terminal != nil {
		slave = s.terminal.slave
		defer func() {
			err = errors.Join(err, slave.Close()) // only the program's holds it open now
			s.terminal.slave = nil
		}()
	}
	p, err := s.launch(ctx, errand{Argv: s.cfg.Argv, Env: s.env, Cwd: s.plan.Cwd, Limits: s.cfg.Limits}, streams, slave)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.program = p
	return nil
}

func (s *Session) running() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.program
}

// Signal passes a signal to the program, or to the process group in its
// terminal's foreground, without a terminal its own.
func (s *Session) Signal(sig unix.Signal, group bool) error {
	p := s.running()
	if p == nil {
		return os.ErrClosed
	}
	select {
	case <-p.ended:
		return os.ErrClosed
	default:
	}
	to := p.pid
	if group {
		to = -p.pid
		if s.terminal != nil {
			if g := s.terminal.foreground(); g > 0 {
				to = -g
			}
		}
	}
	if err := unix.Kill(to, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("passing a signal on: %w", err)
	}
	return nil
}

// Wait waits for the program's end and then for that of everything that could be
// found inside. The code is the program's status, 128+n if signal n ended it.
func (s *Session) Wait() (code int, err error) {
	p := s.running()
	if p == nil {
		return 128 + int(unix.SIGKILL), nil
	}
	<-p.ended
	return p.Code(), nil
}

// Close ends everything inside at once and waits for it, and removes the
// session's folder. It is safe to call more than once, and at any time.
func (s *Session) Close() error {
	s.close.Do(func() {
		s.mu.Lock()
		var all []*Process
		for p := range s.commands {
			all = append(all, p)
		}
		s.mu.Unlock()
		for _, p := range all {
			_ = p.Kill()
			<-p.ended
		}
		if s.base != "" {
			sweep(s.mark())
		}
		var errs []error
		if s.proxy != nil {
			errs = append(errs, s.proxy.Close())
		}
		errs = append(errs, s.captured.Close())
		if s.terminal != nil {
			errs = append(errs, s.terminal.close())
		}
		closeFiles([]*os.File{s.cfg.Streams.Stdin, s.cfg.Streams.Stdout, s.cfg.Streams.Stderr}) // where Go was never called
		if s.base != "" {
			errs = append(errs, removeAll(s.base))
		}
		if s.keeper != nil {
			errs = append(errs, s.keeper.close())
		}
		close(s.ended)
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}
