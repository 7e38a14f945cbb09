//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// startTime is how long each actor has to appear.
const startTime = 15 * time.Second

// forbidden is a host that does not allow a step of the chain which the
// fallback does without.
type forbidden struct {
	step string
	err  error
}

func (e *forbidden) Error() string { return "setting up the " + e.step + ": " + e.err.Error() }
func (e *forbidden) Unwrap() error { return e.err }

// chain is what starting the helper gave.
type chain struct {
	child    *child
	launcher *control
	keeper   *control // nil in the fallback
	said     *tail    // by bwrap, on stderr
}

// end kills what was started and closes what leads to it.
func (c *chain) end() {
	if c.child != nil {
		c.child.kill()
	}
	for _, end := range []*control{c.launcher, c.keeper} {
		if end != nil {
			_ = end.close()
		}
	}
}

// startHelper gives a helper what it needs and waits until it has become bwrap.
func (s *Session) startHelper(ctx context.Context) error {
	h, err := s.helper()
	if err != nil {
		return err
	}
	s.chain = h.chain
	defer h.leave()
	mounts, err := s.cloneMounts(h.idmap)
	defer func() { closeFiles(mounts) }()
	if err != nil {
		return err
	}
	s.blank = s.leaveBlank()
	heard := false
	defer func() { s.blank.give(heard) }()
	plan, err := parcel("plan", helperTask{Plan: s.plan, BwrapArgv0: s.bwrap, Image: h.image != nil})
	if err != nil {
		return err
	}
	defer func() { _ = plan.Close() }()
	bwrapFD, err := unix.Open(s.bwrap, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening bwrap: %w", err)
	}
	bwrap := os.NewFile(uintptr(bwrapFD), s.bwrap)
	defer func() { _ = bwrap.Close() }()
	// A helper that has failed is heard below, whatever could not be sent to it.
	err = h.talk.send(message{Kind: kindTask, Mounts: len(mounts)}, plan, bwrap)
	for batch := range slices.Chunk(mounts, maxFiles) {
		err = errors.Join(err, h.talk.send(message{Kind: kindMounts}, batch...))
	}
	if err == nil {
		err = s.sendTexts(h.talk)
	}
	if err := s.hearHelper(ctx, h.talk); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	heard = true
	return s.serveEarly(ctx)
}

// hearHelper takes the listeners and waits for the end of the helper's control,
// which is its exec of bwrap.
func (s *Session) hearHelper(ctx context.Context, talk *control) error {
	stop := context.AfterFunc(ctx, func() { _ = talk.c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := talk.c.SetDeadline(time.Now().Add(startTime)); err != nil {
		return fmt.Errorf("waiting for the helper: %w", err)
	}
	for {
		m, files, err := talk.receive()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET):
			return nil
		case err != nil:
			return fmt.Errorf("waiting for the helper: %w", err)
		case m.Kind == kindListeners:
			if len(files) > 0 {
				if s.cookie, err = netnsCookie(int(files[0].Fd())); err != nil {
					closeFiles(files)
					return err
				}
			}
			s.ipv6 = m.IPv6
			if err := s.doors.take(files, m.IPv6); err != nil {
				return err
			}
		case m.Kind == kindSpares:
			s.spares = files
		case m.Kind == kindBlanks:
			s.blank.take(files)
		case m.Kind == kindFailed && denied(unix.Errno(m.Errno)):
			return &forbidden{m.Step, errors.New(m.Error)}
		default:
			closeFiles(files)
			return fmt.Errorf("setting up the sandbox: %s", m.Error)
		}
	}
}

// denied are the errors with which hosts forbid namespaces and mounts.
func denied(errno unix.Errno) bool {
	return errno == unix.EPERM || errno == unix.EACCES || errno == unix.ENOSYS
}

// hearLauncher waits for the launcher's first word.
func (s *Session) hearLauncher(ctx context.Context) error {
	c := s.chain.launcher
	stop := context.AfterFunc(ctx, func() { _ = c.c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.c.SetReadDeadline(time.Now().Add(startTime)); err != nil {
		return fmt.Errorf("waiting for the launcher: %w", err)
	}
	m, files, err := c.receive()
	closeFiles(files)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for the launcher: %w", context.Cause(ctx))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("waiting for the launcher: %w", err)
	case err != nil || m.Kind != kindHello:
		s.chain.child.kill()
		if s.cfg.Firejail != "" {
			return firejailFailed(ctx, s.cfg.Firejail, s.chain.said.String())
		}
		return bwrapFailed(ctx, s.bwrap, s.chain.said.String())
	}
	if !stop() {
		return fmt.Errorf("waiting for the launcher: %w", context.Cause(ctx))
	}
	return c.c.SetReadDeadline(time.Time{})
}

// cloneMounts makes, for a run of root, the mounts that the sandbox's uid
// could not reach itself: every granted path. idmap is the user namespace that
// maps their owners, nil for none.
func (s *Session) cloneMounts(idmap *os.File) ([]*os.File, error) {
	if !s.id.root {
		return nil, nil
	}
	var mounts []*os.File
	for i := range s.plan.Roots {
		if s.plan.Roots[i].Empty {
			continue
		}
		f, err := mount.Clone(s.plan.Roots[i].Source, fdOf(idmap))
		if err != nil {
			return mounts, cannotClone(err)
		}
		mounts = append(mounts, f)
		s.plan.Roots[i].Clone = len(mounts)
	}
	return mounts, nil
}

// cannotClone tells a host that forbids mounts from one that only cannot map
// owners.
func cannotClone(err error) error {
	var idmap *mount.IdmapError
	var errno unix.Errno
	if !errors.As(err, &idmap) && errors.As(err, &errno) && denied(errno) {
		return &forbidden{"mounts", err}
	}
	return err
}

// tail keeps the end of what was written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
