package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/shell"
)

// Sandbox is a [shell.Executor] whose commands run in sandboxes that stay up
// between them: what one command writes to HOME, to TMPDIR or to a granted
// folder the next one finds, and no process outlives the command that started
// it.
//
// A command that wants no network (AllowNetwork false) where the policy gives
// one runs in a second sandbox, with a HOME and a TMPDIR of its own: within the
// first one there would always be a neighbour to ask.
//
// A sandbox that has died, since something inside has killed its first process
// or the host has done something to it, fails the commands that ran in it. The
// next command gets a new one.
type Sandbox struct {
	// Open makes a sandbox: a session without a program. Without network it has
	// none but its loopback. It is called when a command needs one and there is
	// none, never twice at a time for one kind.
	Open func(ctx context.Context, network bool) (*netns.Session, error)
	// Network says that the policy gives commands a network.
	Network bool
	// Cwd is where a relative cwd starts, an absolute path.
	Cwd string
	// Isolator is what Open makes its sandboxes with, for results.
	Isolator string

	mu      sync.Mutex
	over    bool
	with    slot // the sandbox with what network the policy gives
	without slot // the one without any
}

// slot holds one sandbox of a kind.
type slot struct {
	mu     sync.Mutex // held while it is opened
	box    *netns.Session
	failed error // what Start came to, for the first command
}

// Start opens the sandbox, so that the time of the first command is its own.
// What that fails with the command is told, and the next one tries again.
func (s *Sandbox) Start(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	_, err := s.open(ctx, &s.with)
	s.with.mu.Lock()
	defer s.with.mu.Unlock()
	s.with.failed = err
	return nil
}

func (s *Sandbox) check() error {
	if s.Open == nil || !filepath.IsAbs(s.Cwd) {
		return errors.New("a sandboxed shell needs an absolute cwd, and somebody to open the sandbox")
	}
	return nil
}

// Exec runs a command in a session and a process group of its own. All that it
// has started is killed when it ends, for whatever reason.
func (s *Sandbox) Exec(ctx context.Context, cmd shell.Command) (shell.Result, error) {
	if err := errors.Join(cmd.Check(), s.check()); err != nil {
		return shell.Result{}, err
	}
	kind := &s.with
	if ask := cmd.AllowNetwork; ask != nil {
		switch {
		case *ask && !s.Network:
			return shell.Result{}, errors.New("the policy gives the sandbox no network")
		case !*ask && s.Network:
			kind = &s.without
		}
	}
	if cmd.Timeout == 0 {
		cmd.Timeout = shell.DefaultTimeout
	}
	box, err := s.open(ctx, kind)
	if err != nil {
		return shell.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	return s.run(ctx, box, cmd)
}

// open is the sandbox of a kind, a new one where there is none that lives.
func (s *Sandbox) open(ctx context.Context, kind *slot) (*netns.Session, error) {
	kind.mu.Lock()
	defer kind.mu.Unlock()
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over {
		return nil, shell.ErrDisposed
	}
	if err := kind.failed; err != nil {
		kind.failed = nil
		return nil, err
	}
	if kind.box != nil {
		select {
		case <-kind.box.Ended():
			_ = kind.box.Close() // it is dead, and what it died of has been told
			kind.box = nil
		default:
			return kind.box, nil
		}
	}
	var err error
	kind.box, err = s.Open(ctx, kind == &s.with && s.Network)
	return kind.box, err
}

// endTime is how long all that a command has started may take to be gone once
// it is killed. What cannot be killed ends with the sandbox.
const endTime = time.Second

func (s *Sandbox) run(ctx context.Context, box *netns.Session, cmd shell.Command) (shell.Result, error) {
	c := netns.Command{Argv: cmd.Argv, Cwd: cmd.Cwd}
	if cmd.Script != "" {
		c.Argv = []string{"bash", "-c", cmd.Script}
	}
	if !filepath.IsAbs(c.Cwd) {
		c.Cwd = filepath.Join(s.Cwd, c.Cwd)
	}
	var out, errs capture
	var err error
	if c.Stdout, err = out.open(); err != nil {
		return shell.Result{}, err
	}
	defer out.close()
	if c.Stderr, err = errs.open(); err != nil {
		_ = c.Stdout.Close()
		return shell.Result{}, err
	}
	defer errs.close()
	result := func(code int, more string) (shell.Result, error) {
		r := shell.Result{ExitCode: code, Isolator: s.Isolator}
		r.Stdout, r.StdoutCut = out.text()
		r.Stderr, r.StderrCut = errs.text()
		r.Stderr = append(r.Stderr, more...)
		return r, nil
	}
	p, err := box.Exec(ctx, c)
	var no *netns.NotStarted
	switch {
	case errors.As(err, &no):
		return result(shell.ExitNoStart, "egressd: "+no.Problem+"\n")
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return result(shell.Ended(ctx), "")
	case err != nil:
		_ = box.Close() // it takes no commands any more
		return shell.Result{}, dead(err)
	}
	code, err := await(ctx, box, p)
	var over *overLimit
	switch {
	case errors.As(err, &over):
		return result(exitKilled, "egressd: "+over.Error()+"\n")
	case err != nil:
		return shell.Result{}, err
	}
	return result(code, "")
}

// exitKilled is the status of a command that was killed.
const exitKilled = 128 + 9

// overLimit is a sandbox that was ended because all in it together took too
// much.
type overLimit struct{ limit string }

func (e *overLimit) Error() string {
	return "the sandbox was over its limit of " + e.limit + " and has ended, with all that ran in it; the next command starts a new one"
}

func dead(err error) error {
	return fmt.Errorf("the sandbox has ended, and all that ran in it; the next command starts a new one: %w", err)
}

// await is the exit code of a command, once it and all that it has started are
// gone.
func await(ctx context.Context, box *netns.Session, p *netns.Process) (int, error) {
	select {
	case <-p.Ended():
		return p.Code(), nil
	case <-box.Ended():
		select {
		case <-p.Ended(): // just before
			return p.Code(), nil
		default:
		}
		_ = box.Close() // it is dead, and this waits until it is known of what
		if limit := box.Exceeded(); limit != "" {
			return 0, &overLimit{limit}
		}
		return 0, dead(errors.New("something inside has killed its first process, or the host has"))
	case <-ctx.Done():
	}
	late := time.NewTimer(endTime)
	defer late.Stop()
	if p.Kill() == nil {
		select {
		case <-p.Ended():
			return shell.Ended(ctx), nil
		case <-box.Ended():
		case <-late.C:
		}
	}
	_ = box.Close()
	return shell.Ended(ctx), nil
}

// Dispose ends everything and waits for it.
func (s *Sandbox) Dispose(context.Context) error {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	var errs []error
	for _, kind := range []*slot{&s.with, &s.without} {
		kind.mu.Lock()
		if kind.box != nil {
			errs = append(errs, kind.box.Close())
			kind.box = nil
		}
		kind.mu.Unlock()
	}
	return errors.Join(errs...)
}

// capture is one stream of a command as far as it is kept.
type capture struct {
	read *os.File
	kept shell.Output
	done chan struct{}
}

// open is the command's end.
func (c *capture) open() (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	c.read, c.done = read, make(chan struct{})
	go func() {
		defer close(c.done)
		_, _ = read.WriteTo(&c.kept) // ends with the last writer, or with close
	}()
	return write, nil
}

// text is what was written. No writer is left when a command is over; where the
// sandbox had to be ended for that, some may take a moment.
func (c *capture) text() ([]byte, bool) {
	_ = c.read.SetReadDeadline(time.Now().Add(endTime))
	<-c.done
	return c.kept.Text()
}

func (c *capture) close() {
	_ = c.read.Close()
	<-c.done
}
