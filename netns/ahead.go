//go:build linux

package netns

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/cgroup"
	"github.com/egressd/egressd/netns/mount"
)

// An Ahead is a helper that is started while it is not yet known what sandbox
// it is to make: its namespaces and listeners are made beside the reading of
// the policy, which is a fifth of the time to the program. It is good for one
// Start of the same working folder and invoker with a captured network; any
// other Start makes a helper of its own.
type Ahead struct {
	cwd     string
	invoker Invoker
	id      identity
	done    chan struct{}
	helper  *begun // set before done is closed
	err     error
}

// Begin starts a helper ahead. It returns at once; what fails is told by the
// Start that takes it. Close it in any case.
func Begin(cwd string, invoker Invoker) *Ahead {
	a := &Ahead{cwd: cwd, invoker: invoker, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		if a.err = conceal(); a.err != nil {
			return
		}
		if a.id, a.err = whoRuns(cwd, invoker); a.err != nil {
			return
		}
		a.helper, a.err = begin(a.id, Captured, nil)
	}()
	return a
}

// Close ends the helper if no Start has taken it.
func (a *Ahead) Close() {
	if a == nil {
		return
	}
	<-a.done
	if a.helper != nil {
		a.helper.chain.end()
		a.helper.leave()
		a.helper = nil
	}
}

// take gives the helper away.
func (a *Ahead) take() (*begun, error) {
	h, err := a.helper, a.err
	a.helper, a.err = nil, nil
	return h, err
}

// begun is a helper that has been started and told its network.
type begun struct {
	chain chain
	talk  *control
	idmap *os.File // of the mounts of a run of root with an invented uid, or nil
	image *os.File // egressd's binary as a mount of such a run, or nil
}

// leave closes what is of no more use once the helper has become bwrap.
func (b *begun) leave() {
	if b.talk != nil {
		_ = b.talk.close()
	}
	for _, f := range []*os.File{b.idmap, b.image} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// helper is one for this session: the one that was started ahead if it fits.
func (s *Session) helper() (*begun, error) {
	if a := s.ahead; a != nil {
		s.ahead = nil
		return a.take()
	}
	return begin(s.id, s.cfg.Network, s.group)
}

// begin starts a helper, in a group if there is one, and has it bring its
// network up.
func begin(id identity, network Network, group *cgroup.Group) (b *begun, err error) {
	b = &begun{chain: chain{said: &tail{}}}
	defer func() {
		if err != nil {
			b.chain.end()
			b.leave()
			b = nil
		}
	}()
	if err := b.clone(id); err != nil {
		return b, err
	}
	ends := []*os.File{nil, nil, nil}
	defer func() { closeFiles(ends) }() // else their ends would never be seen
	for i, c := range []**control{&b.talk, &b.chain.launcher, &b.chain.keeper} {
		if *c, ends[i], err = controlPair(); err != nil {
			return b, err
		}
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{helperName}, Env: []string{}, Stderr: b.chain.said,
		SysProcAttr: namespaces(id, network != HostNetwork), WaitDelay: time.Second, ExtraFiles: ends}
	if group != nil {
		group.Into(cmd.SysProcAttr)
	}
	if b.image != nil {
		cmd.ExtraFiles = append([]*os.File{}, append(ends, b.image)...)
		image, err := aside(b.image, cmd.ExtraFiles)
		if err != nil {
			return b, err
		}
		defer func() { _ = image.Close() }()
		cmd.Path = "/proc/self/fd/" + strconv.Itoa(int(image.Fd()))
	}
	if b.chain.child, err = startChild(cmd); err != nil {
		return b, &forbidden{"namespaces", err}
	}
	// A helper that has failed already says why, to whoever gives it its task.
	_ = b.talk.send(message{Kind: kindBegin, Network: network})
	return b, nil
}

// clone makes, for a run of root, egressd's binary as the sandbox's user can
// reach it, and what maps the owners of all such mounts.
func (b *begun) clone(id identity) (err error) {
	if !id.root {
		return nil
	}
	if id.invented {
		if b.idmap, err = idmapFor(id.uid, id.gid); err != nil {
			return &mount.IdmapError{Path: "/", Err: err}
		}
	}
	if b.image, err = mount.Clone("/proc/self/exe", fdOf(b.idmap)); err != nil {
		return cannotClone(err)
	}
	return nil
}

// fdOf is the number of a file that may not be there.
func fdOf(f *os.File) int {
	if f == nil {
		return -1
	}
	return int(f.Fd())
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
