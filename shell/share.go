package shell

import (
	"context"
	"sync"
)

// Share is one executor for several users: it is started for the first that
// starts and disposed of after the last that leaves.
type Share struct {
	session Session

	mu    sync.Mutex
	users int
	over  bool
}

// NewShare shares an executor, which nothing else may use then. It is disposed
// of when the last user is.
func NewShare(e Executor) *Share { return &Share{session: Session{Executor: e}} }

// Use is a user more. Its Dispose lets go; the last one disposes of the
// executor, and who comes after that gets ErrDisposed.
func (s *Share) Use() Executor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.users++
	}
	return &user{share: s, gone: s.over}
}

// leave says whether the user was the last.
func (s *Share) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.over = s.over || s.users == 0
	return s.users == 0
}

type user struct {
	share *Share
	mu    sync.Mutex
	gone  bool
}

func (u *user) left() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gone
}

func (u *user) Start(ctx context.Context) error {
	if u.left() {
		return ErrDisposed
	}
	return u.share.session.Start(ctx)
}

func (u *user) Exec(ctx context.Context, cmd Command) (Result, error) {
	if u.left() {
		return Result{}, ErrDisposed
	}
	return u.share.session.Exec(ctx, cmd)
}

func (u *user) Dispose(ctx context.Context) error {
	u.mu.Lock()
	first := !u.gone
	u.gone = true
	u.mu.Unlock()
	if first && u.share.leave() {
		return u.share.session.Dispose(ctx)
	}
	return nil
}
