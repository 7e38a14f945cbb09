package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/shell"
)

// exitTimeout is the status of a run that took longer than sandbox.timeout.
const exitTimeout = 124

// timeoutGrace is how long a program has to end after SIGTERM.
const timeoutGrace = 5 * time.Second

// limitsOf are the limits of the sandboxed tree.
func limitsOf(l policy.SandboxLimits) netns.Limits {
	return netns.Limits{Memory: uint64(l.Memory), Processes: uint64(l.Processes), OpenFiles: uint64(l.OpenFiles), CPUSeconds: uint64(l.CPUSeconds)}
}

// startClock begins to count the time of the run. It is called before the
// program starts: one that stops at once stops egressd too, which must not be
// without an alarm then. stop ends the counting.
func (r *runner) startClock(ended <-chan struct{}) (stop func(), err error) {
	limit := r.policy.Sandbox.Timeout
	if limit <= 0 {
		return func() {}, nil
	}
	awake, err := r.stayAwake()
	if err != nil {
		return nil, err
	}
	r.due = time.Now().Add(limit)
	timer := time.AfterFunc(limit, func() { r.outOfTime(ended) })
	return func() { timer.Stop(); awake() }, nil
}

// timeUp says that the time is over, also where nobody was awake to see it.
func (r *runner) timeUp() bool { return !r.due.IsZero() && !time.Now().Before(r.due) }

// wait waits for the program's end.
func (r *runner) wait() (int, error) {
	code, err := r.box.Wait()
	if name := r.box.Exceeded(); err == nil && name != "" {
		r.problem, r.endedBy = r.overLimit(name), "limit"
		return exitKilled, r.recordLimit(name)
	}
	if r.late.Load() && err == nil {
		return r.overdue()
	}
	return code, err
}

// stayAwake sees to it that a stopped egressd goes on when the time is up. The
// function takes it back.
func (r *runner) stayAwake() (func(), error) {
	if limit := r.policy.Sandbox.Timeout; limit > 0 {
		return netns.WakeAfter(limit)
	}
	return func() {}, nil
}

// overdue says and records that the time was up.
func (r *runner) overdue() (int, error) {
	r.problem = fmt.Sprintf("the run took longer than sandbox.timeout (%s): it was ended", r.policy.Sandbox.Timeout)
	r.endedBy = "timeout"
	return exitTimeout, r.recordLimit("timeout")
}

// outOfTime ends the program: it is asked to, and killed if it does not. One
// that is stopped must go on to hear of it.
func (r *runner) outOfTime(ended <-chan struct{}) {
	r.late.Store(true)
	err := r.box.Signal(unix.SIGTERM, true)
	if err == nil {
		err = r.box.Signal(unix.SIGCONT, true)
	}
	if err == nil {
		select {
		case <-ended:
			return
		case <-time.After(timeoutGrace):
		}
	}
	if err := r.box.Close(); err != nil {
		r.sess.logger.Warn("ending the sandbox", "err", err)
	}
}

func (r *runner) recordLimit(name string) error {
	return r.sess.log.Append(&audit.Record{Kind: audit.KindLimit, Verdict: "deny", Reason: name})
}

// overLimit says that the sandbox met a limit.
func (r *runner) overLimit(name string) string {
	return fmt.Sprintf("the sandbox used more than sandbox.limits.%s (%s): it was ended", name, limitText(r.policy.Sandbox.Limits, name))
}

// limitText is a limit as the policy could have it.
func limitText(l policy.SandboxLimits, name string) string {
	switch name {
	case netns.LimitMemory:
		for _, unit := range []struct {
			name string
			size int64
		}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if l.Memory%unit.size == 0 {
				return strconv.FormatInt(l.Memory/unit.size, 10) + unit.name
			}
		}
		return count(int(l.Memory), "byte")
	case netns.LimitProcesses:
		return strconv.Itoa(l.Processes)
	}
	return strconv.Itoa(l.CPUSeconds)
}

// stopped stops egressd with a program that stopped, as on Ctrl-Z. Where it is
// egressd that counts what the sandbox uses, all of it stops: what is not
// counted must not run.
func (r *runner) stopped() {
	signal := func(s unix.Signal) error {
		if r.box.Bounds() == "" {
			return r.box.Signal(s, true)
		}
		return r.box.SignalAll(s)
	}
	go func() {
		if r.box.Bounds() != "" {
			if err := r.box.SignalAll(unix.SIGSTOP); err != nil {
				r.deaf(err)
				return
			}
		}
		r.streams.Stopped(func() {
			if r.timeUp() {
				return // what ends it lets it go on to hear of that
			}
			if err := signal(unix.SIGCONT); err != nil {
				r.sess.logger.Warn("letting the program go on", "err", err)
			}
		})
	}()
}

// deaf ends a sandbox whose launcher takes no signals.
func (r *runner) deaf(err error) {
	if errors.Is(err, os.ErrClosed) {
		return // it has ended
	}
	fmt.Fprintf(os.Stderr, "egressd: the sandbox takes no signals (%v): it is ended\r\n", err)
	if err := r.box.Close(); err != nil {
		r.sess.logger.Warn("ending the sandbox", "err", err)
	}
}

// sayBounds says, with -v, what holds the limits.
func (r *runner) sayBounds() {
	if bounds := r.box.Bounds(); r.flags.verbose && bounds != "" {
		fmt.Fprintf(os.Stderr, "egressd: sandbox.limits is held by %s\n", plainText(bounds))
	}
}

// timed is an executor no command of which takes longer than sandbox.timeout:
// with commands that come one by one, each is a run.
func (s *standing) timed(e shell.Executor) shell.Executor {
	if limit := s.policy.Sandbox.Timeout; limit > 0 {
		return timedExecutor{e, limit}
	}
	return e
}

type timedExecutor struct {
	shell.Executor
	limit time.Duration
}

func (e timedExecutor) Exec(ctx context.Context, cmd shell.Command) (shell.Result, error) {
	cmd.Timeout = min(cmp.Or(cmd.Timeout, shell.DefaultTimeout), e.limit)
	return e.Executor.Exec(ctx, cmd)
}

// watchLimits says and records which limit has ended a sandbox for commands.
func (s *standing) watchLimits(one *runner) {
	if one.box.Bounds() == "" {
		return
	}
	one.sayBounds()
	s.watching.Go(func() {
		<-one.box.Ended()
		if name := one.box.Exceeded(); name != "" {
			fmt.Fprintf(os.Stderr, "egressd: %s\n", plainText(one.overLimit(name)))
			if err := one.recordLimit(name); err != nil {
				s.sess.logger.Warn("recording the end of the sandbox", "err", err)
			}
		}
	})
}
