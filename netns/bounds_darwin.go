package netns

import (
	"time"

	"golang.org/x/sys/unix"
)

// Bounds says what holds the limits of the tree: nothing does here, and Limits
// with some are refused.
func (s *Session) Bounds() string { return "" }

// Grouped reports whether a cgroup holds the limits.
func (s *Session) Grouped() bool { return false }

// Exceeded is the limit for which the session was ended: none here.
func (s *Session) Exceeded() string { return "" }

// SignalAll passes a signal to the program's process group.
func (s *Session) SignalAll(sig unix.Signal) error { return s.Signal(sig, true) }

// WakeAfter does nothing here: a stopped process goes on when somebody says so,
// and its time-outs are met then.
func WakeAfter(time.Duration) (stop func(), err error) { return func() {}, nil }
