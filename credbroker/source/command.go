package source

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// drain is how long the output of a program that has ended may still come: a
// grandchild in a session of its own may hold it open.
const drain = time.Second

// CommandError is a program that gave no secret. Its text holds nothing that
// the program wrote.
type CommandError struct {
	// Program is the command's first word.
	Program string
	// Err is what went wrong.
	Err error
	// Said is the end of what it wrote to stderr, for the user at the start and
	// for nobody else: one line of at most 1000 bytes, control characters
	// escaped, without what it wrote to stdout and without long words of
	// letters and digits, which may be a secret.
	Said string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("running %s: %v", e.Program, e.Err)
}

func (e *CommandError) Unwrap() error { return e.Err }

// Explain is the text of an error of this package for the user at the start:
// what a program said is in it, so it is for no log, record or answer.
func Explain(err error) string {
	var u *Unavailable
	if errors.As(err, &u) {
		err = u.Err
	}
	var c *CommandError
	if errors.As(err, &c) && c.Said != "" {
		return err.Error() + ", and said: " + c.Said
	}
	return err.Error()
}

// Run is the one way a program is started on the host for a secret. Words of
// argv that begin with ~/ lie in the home. argv[0] is found by c.LookPath; it runs in / with c.Env alone, an empty stdin and no
// terminal, in a session of its own. After 30 s, when ctx ends, when it has
// written more than 1 MiB, and when it has ended, all of its process group is
// killed. The answer is what it wrote to stdout; an error is a *CommandError.
//
// What leaves that group, by a session of its own, is not killed.
func (c Config) Run(ctx context.Context, argv []string) ([]byte, error) {
	return c.run(ctx, argv, patience)
}

func (c Config) run(ctx context.Context, argv []string, limit time.Duration) ([]byte, error) {
	if len(argv) == 0 {
		return nil, errors.New("running program: the command is empty")
	}
	fail := func(err error) error { return &CommandError{Program: argv[0], Err: err} }
	if c.LookPath == nil {
		return nil, fail(errors.New("there is nowhere to look it up"))
	}
	words, err := c.words(argv)
	if err != nil {
		return nil, fail(err)
	}
	path, err := c.LookPath(words[0])
	if err != nil {
		return nil, fail(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, fail(context.Cause(ctx))
	}
	// The kernel kills the program when the thread that started it ends, which
	// is with egressd: a thread of our own, then, until the program has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var stdout, stderr output
	overflow := make(chan struct{})
	stdout.full = sync.OnceFunc(func() { close(overflow) })
	cmd := &exec.Cmd{
		Path: path, Args: words, Env: c.Env, Dir: "/",
		Stdout: &stdout, Stderr: &stderr, WaitDelay: drain,
		// A session of its own has no terminal: a program that would ask there
		// fails at once instead of waiting where nobody looks.
		SysProcAttr: attributes(),
	}
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would be all of ours
	}
	if err := cmd.Start(); err != nil {
		return nil, fail(bare(err))
	}
	stopped := reap(ctx, cmd.Process.Pid, overflow)
	err = cmd.Wait()
	switch {
	case stopped != nil:
		err = stopped
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil
	}
	if err == nil {
		return stdout.head, nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = errors.New("it ended with " + exit.ProcessState.String())
	}
	return nil, &CommandError{Program: argv[0], Err: err, Said: said(stderr, stdout.head, c.Env)}
}

var (
	errLate  = fmt.Errorf("it did not end within %v", patience)
	errLarge = fmt.Errorf("it wrote more than %d MiB", maxSecret>>20)
)

// reap waits until a program has ended, or must, and kills its process group
// while the program is still there as a zombie: the group's number is no one
// else's. The answer is why it had to end.
func reap(ctx context.Context, pid int, overflow <-chan struct{}) (stopped error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		awaitExit(pid)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		stopped = context.Cause(ctx)
	case <-overflow:
		stopped = errLarge
	}
	_ = unix.Kill(-pid, unix.SIGKILL) // the whole group; ESRCH if it is gone
	<-ended
	return stopped
}

// output keeps the head of what is written up to the bound of a secret, and of
// a longer one calls full, or else goes on with its tail.
type output struct {
	head    []byte
	clipped bool // the beginning is lost
	full    func()
}

// maxSaid is how much of stderr is kept while the program runs.
const maxSaid = 16 << 10

func (o *output) Write(p []byte) (int, error) {
	switch {
	case o.full == nil:
		o.head = append(o.head, p...)
		if cut := len(o.head) - maxSaid; cut > 0 {
			o.head, o.clipped = append([]byte(nil), o.head[cut:]...), true
		}
	case len(o.head)+len(p) > maxSecret:
		o.full()
	default:
		o.head = append(o.head, p...)
	}
	return len(p), nil
}
