//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/census"
	"github.com/egressd/egressd/netns/cgroup"
)

// The tree is looked at four times a second, at moments that it cannot foresee.
const (
	lookEvery  = 250 * time.Millisecond
	lookJitter = 100 * time.Millisecond
	// blindLooks in a row end the sandbox: what is not counted is not limited.
	blindLooks = 8
	// cpuSlack is the chain's own time, and what lets a single process meet its
	// own limit, and SIGXCPU, before the tree meets it.
	cpuSlack = 250 * time.Millisecond
)

// bounds watch over the tree. met and err may be read behind done.
type bounds struct {
	meter meter
	stop  chan struct{}
	done  chan struct{}
	met   string // the limit that the tree is over, and for which it was ended
	err   error  // why it could not be watched, and was ended too
}

// meter tells which limit the tree is over.
type meter interface {
	over(Limits) (limit string, err error)
	Close() error
}

// makeGroup makes the session a cgroup if there is something to be limited and
// a place is delegated. A helper that was started ahead is outside of it.
func (s *Session) makeGroup() {
	l := s.cfg.Limits
	if !l.shared() {
		return
	}
	var want cgroup.Limits
	if l.Memory > 0 {
		want.Memory = l.Memory + chainMemory
	}
	if l.Processes > 0 {
		want.Tasks = l.Processes + chainTasks
	}
	place, err := cgroup.Find(want)
	if err == nil {
		if a := s.cfg.Ahead; a != nil {
			a.Close()
			s.cfg.Ahead = nil
		}
		s.group, err = place.Make()
	}
	if err != nil {
		s.noGroup = err.Error()
	}
}

func (s *Session) removeGroup() error {
	if s.group == nil {
		return nil
	}
	return s.group.Close()
}

// Bounds says what holds the limits of the tree, in words for the operator;
// empty where there are none.
func (s *Session) Bounds() string {
	switch {
	case s.group != nil:
		return "the cgroup " + s.group.Path()
	case s.cfg.Limits.shared():
		return "the rlimits of each process and a count of all, four times a second (" + s.noGroup + ")"
	}
	return ""
}

// Grouped reports whether a cgroup holds the limits.
func (s *Session) Grouped() bool { return s.group != nil }

// Exceeded is the limit for which the session was ended, empty for none. It is
// known when Wait has returned, or Close.
func (s *Session) Exceeded() string {
	if s.bounds == nil {
		return ""
	}
	<-s.bounds.done
	return s.bounds.met
}

// bound begins to watch over the tree, before anything of it runs.
func (s *Session) bound(ctx context.Context) error {
	if !s.cfg.Limits.shared() {
		return nil
	}
	b := &bounds{stop: make(chan struct{}), done: make(chan struct{})}
	if s.group != nil {
		b.meter = grouped{s.group}
		// Now that the chain is up it can be counted. One for commands has threads
		// for each of them.
		if p := s.cfg.Limits.Processes; p > 0 && len(s.cfg.Argv) > 0 {
			if err := s.group.Allow(p + spareTasks); err != nil {
				return err
			}
		}
	} else {
		_, files, err := s.launcher.ask(ctx, startTime, message{Kind: kindCensus})
		if err != nil {
			return err
		}
		if len(files) != 4 {
			closeFiles(files)
			return errors.New("counting the sandbox: the launcher's answer holds no /proc")
		}
		c, err := census.New(census.Inside{Proc: files[0], Segments: files[1], Mounts: files[2], Root: files[3]})
		if err != nil {
			return err
		}
		b.meter = counted{c}
	}
	s.bounds = b
	go func() {
		defer close(b.done)
		b.watch(s.cfg.Limits, s.chain.child)
	}()
	return nil
}

func (s *Session) unbound() error {
	if s.bounds == nil {
		return nil
	}
	close(s.bounds.stop)
	<-s.bounds.done
	return s.bounds.meter.Close()
}

// watch is the goroutine. It ends the sandbox, or with it.
func (b *bounds) watch(l Limits, tree *child) {
	for blind := 0; ; {
		ended := false
		select {
		case <-b.stop:
			return
		case <-tree.ended:
			ended = true // by the kernel for want of memory, perhaps
		case <-time.After(lookEvery - lookJitter + rand.N(2*lookJitter)):
		}
		met, err := b.meter.over(l)
		if err == nil {
			blind = 0
		} else {
			blind++
		}
		if ended {
			if met == LimitMemory && err == nil {
				b.met = met
			}
			return
		}
		if blind == blindLooks {
			b.err = fmt.Errorf("counting the sandbox, which is ended: %w", err)
		}
		if err == nil && met != "" || b.err != nil {
			b.met = met
			_ = tree.process.Kill() // it has ended already
			<-tree.ended
			return
		}
	}
}

// grouped reads the session's cgroup.
type grouped struct{ *cgroup.Group }

// Close leaves the group to its session.
func (grouped) Close() error { return nil }

func (g grouped) over(l Limits) (string, error) {
	u, err := g.Usage()
	switch {
	case err != nil:
		return "", err
	case l.Memory > 0 && u.Starved:
		return LimitMemory, nil
	case tooLong(u.CPU, l):
		return LimitCPUSeconds, nil
	}
	return "", nil
}

func tooLong(cpu time.Duration, l Limits) bool {
	return l.CPUSeconds > 0 && cpu > time.Duration(l.CPUSeconds)*time.Second+cpuSlack
}

// counted adds the tree up.
type counted struct{ *census.Census }

func (c counted) over(l Limits) (string, error) {
	limit := uint64(0)
	if l.Memory > 0 {
		limit = l.Memory + chainMemory
	}
	sum, err := c.Count(limit)
	switch {
	case err != nil:
		return "", err
	case l.Memory > 0 && sum.Memory > limit:
		return LimitMemory, nil
	case tooLong(sum.CPU, l):
		return LimitCPUSeconds, nil
	case l.Processes > 0 && sum.Tasks > l.Processes+chainTasks:
		// Only where RLIMIT_NPROC does not hold: of root's own uid, in firejail.
		return LimitProcesses, nil
	}
	return "", nil
}

// census opens what the sandbox is counted by, before anything else is here. It
// is egressd that reads it.
func (l *launched) census(m message) error {
	var files []*os.File
	defer func() { closeFiles(files) }()
	for _, path := range []string{"/proc", "/proc/sysvipc/shm", "/proc/self/mountinfo", "/"} {
		flags := unix.O_RDONLY
		if path == "/" {
			flags = unix.O_PATH
		}
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			return l.answer(m, result{err: fmt.Errorf("opening %s: %w", path, err)})
		}
		files = append(files, os.NewFile(uintptr(fd), path))
	}
	return l.c.send(message{Kind: m.Kind, ID: m.ID}, files...)
}
