package shell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// DefaultGrace is how long after the end of a command's time a Session waits
// for its executor.
const DefaultGrace = 2 * time.Second

// Session runs commands in an executor that it owns. It is an Executor itself;
// its Start need not be called.
type Session struct {
	// Executor is where the commands run. Nothing else may use it.
	Executor Executor
	// Grace is how long after the end of its time a command may take to come
	// back, DefaultGrace if 0. Then it is given up: 124 or 130, without output.
	Grace time.Duration

	mu       sync.Mutex
	started  chan struct{} // closed when startErr is there; nil before the first Start
	startErr error
	stop     context.CancelFunc // of ctx
	ctx      context.Context    // over when Dispose begins
	running  sync.WaitGroup
	disposed chan struct{} // closed when disposeErr is there
	endErr   error
}

// Start starts the executor, if nobody has. It is tried once: what it failed
// with, it fails with again. ctx bounds the waiting, the start goes on.
func (s *Session) Start(ctx context.Context) error {
	s.mu.Lock()
	if s.disposed != nil {
		s.mu.Unlock()
		return ErrDisposed
	}
	s.context()
	if s.started == nil {
		s.started = make(chan struct{})
		s.running.Go(func() {
			err := s.Executor.Start(s.ctx)
			s.mu.Lock()
			s.startErr = err
			s.mu.Unlock()
			close(s.started)
		})
	}
	started := s.started
	s.mu.Unlock()
	select {
	case <-started:
	case <-ctx.Done():
		return fmt.Errorf("starting a shell: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.startErr != nil {
		return fmt.Errorf("starting a shell: %w", s.startErr)
	}
	return nil
}

// context makes ctx. The session outlives the calls it serves, so it has a
// context of its own, which Dispose ends.
func (s *Session) context() {
	if s.ctx == nil {
		s.ctx, s.stop = context.WithCancel(context.Background())
	}
}

// Exec runs a command, in at most its timeout and Grace whatever the executor
// does. The time does not count that the first one spends on starting the
// executor.
func (s *Session) Exec(ctx context.Context, cmd Command) (Result, error) {
	if err := cmd.Check(); err != nil {
		return Result{}, err
	}
	switch err := s.Start(ctx); {
	case err != nil && ctx.Err() != nil:
		return Result{ExitCode: Ended(ctx)}, nil
	case err != nil:
		return Result{}, err
	}
	if cmd.Timeout == 0 {
		cmd.Timeout = DefaultTimeout
	}
	s.mu.Lock()
	if s.disposed != nil {
		s.mu.Unlock()
		return Result{}, ErrDisposed
	}
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	type outcome struct {
		Result
		error
	}
	done := make(chan outcome, 1)
	s.running.Go(func() {
		r, err := s.Executor.Exec(ctx, cmd)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // about the command, then
			r.ExitCode, err = Ended(ctx), nil
		}
		done <- outcome{r.bound(), err}
	})
	s.mu.Unlock()
	select {
	case o := <-done:
		return o.Result, o.error
	case <-ctx.Done():
	}
	grace := s.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case o := <-done:
		return o.Result, o.error
	case <-late.C:
		return Result{ExitCode: Ended(ctx)}, nil
	}
}

// Dispose ends what runs, waits for it as long as ctx lets it, and disposes of
// the executor, once. Called again it waits for the first call.
func (s *Session) Dispose(ctx context.Context) error {
	s.mu.Lock()
	s.context()
	if first := s.disposed == nil; first {
		s.disposed = make(chan struct{})
		s.stop()
		s.mu.Unlock()
		s.settle(ctx)
		err := s.Executor.Dispose(ctx)
		s.mu.Lock()
		s.endErr = err
		close(s.disposed)
	}
	done := s.disposed
	s.mu.Unlock()
	select {
	case <-done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.endErr
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settle waits for the calls of the executor that have not come back. One that
// never does is left behind by the end of ctx, or of the grace.
func (s *Session) settle(ctx context.Context) {
	grace := s.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	idle := make(chan struct{})
	go func() { s.running.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-late.C:
	case <-ctx.Done():
	}
}
