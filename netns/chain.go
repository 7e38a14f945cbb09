package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
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

// startHelper starts the helper with everything it needs and waits until it
// has become bwrap.
func (s *Session) startHelper(ctx context.Context) error {
	mounts, launcher, err := s.cloneMounts()
	defer func() { closeFiles(append(mounts, launcher)) }()
	if err != nil {
		return err
	}
	task := helperTask{
		Listeners: s.cfg.Network == Captured, Loopback: s.cfg.Network == NoNetwork,
		LauncherFD: -1, RootFDs: len(mounts), BwrapArgv0: s.bwrap,
	}
	if launcher != nil {
		task.LauncherFD = helperMounts + len(mounts)
	}
	task.Plan = s.plan
	plan, err := parcel("plan", task)
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
	talk, talkEnd, err := controlPair()
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(talk.close(), talkEnd.Close()) }()
	hail, hailEnd, err := controlPair()
	if err != nil {
		return err
	}
	defer func() { _ = hailEnd.Close() }()
	s.chain.launcher = hail
	keep, keepEnd, err := controlPair()
	if err != nil {
		return err
	}
	defer func() { _ = keepEnd.Close() }()
	s.chain.keeper = keep

	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{helperName}, Env: []string{}, Stderr: s.chain.said,
		SysProcAttr: namespaces(s.id, s.cfg.Network != HostNetwork), WaitDelay: time.Second}
	cmd.ExtraFiles = append([]*os.File{talkEnd, plan, hailEnd, bwrap, keepEnd}, mounts...)
	if launcher != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, launcher)
		image, err := aside(launcher, cmd.ExtraFiles)
		if err != nil {
			return err
		}
		defer func() { _ = image.Close() }()
		cmd.Path = "/proc/self/fd/" + strconv.Itoa(int(image.Fd()))
	}
	if s.chain.child, err = startChild(cmd); err != nil {
		return &forbidden{"namespaces", err}
	}
	_ = errors.Join(talkEnd.Close(), hailEnd.Close(), keepEnd.Close()) // else their ends would never be seen
	if err := s.sendTexts(talk); err != nil {
		return err
	}
	return s.hearHelper(ctx, talk)
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
		return bwrapFailed(ctx, s.bwrap, s.chain.said.String())
	}
	if !stop() {
		return fmt.Errorf("waiting for the launcher: %w", context.Cause(ctx))
	}
	return c.c.SetReadDeadline(time.Time{})
}

// cloneMounts makes, for a run of root, the mounts that the sandbox's uid
// could not reach itself: every granted path and egressd's binary.
func (s *Session) cloneMounts() ([]*os.File, *os.File, error) {
	if !s.id.root {
		return nil, nil, nil
	}
	idmap := -1
	if s.id.invented {
		f, err := idmapFor(s.id.uid, s.id.gid)
		if err != nil {
			return nil, nil, &mount.IdmapError{Path: "/", Err: err}
		}
		defer func() { _ = f.Close() }()
		idmap = int(f.Fd())
	}
	var mounts []*os.File
	for i := range s.plan.Roots {
		f, err := mount.Clone(s.plan.Roots[i].Source, idmap)
		if err != nil {
			return mounts, nil, s.cannotClone(err)
		}
		mounts = append(mounts, f)
		s.plan.Roots[i].Clone = len(mounts)
	}
	launcher, err := mount.Clone("/proc/self/exe", idmap)
	if err != nil {
		return mounts, nil, s.cannotClone(err)
	}
	return mounts, launcher, nil
}

// cannotClone tells a host that forbids mounts from one that only cannot map
// owners.
func (s *Session) cannotClone(err error) error {
	var idmap *mount.IdmapError
	var errno unix.Errno
	if !errors.As(err, &idmap) && errors.As(err, &errno) && denied(errno) {
		return &forbidden{"mounts", err}
	}
	return err
}

// aside copies a descriptor to a number that starting a child with the files
// does not touch: the child is executed through it.
func aside(f *os.File, files []*os.File) (*os.File, error) {
	above := 0
	for _, x := range files {
		above = max(above, int(x.Fd()))
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, above+len(files)+16)
	if err != nil {
		return nil, fmt.Errorf("copying a descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
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
