package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/shell"
	"github.com/egressd/egressd/tools"
)

// standing is a session of exec or mcp: its commands come one by one, and the
// sandbox they run in is made for the first and stays. Policy, proxy, broker and
// record are those of run.
type standing struct {
	*runner
	config netns.Config
	start  string // the folder where commands start
	shell  *shell.Session
	end    context.CancelFunc // ends the session's work
	leaks  atomic.Bool        // a leak has ended it

	opening  sync.Mutex     // held while a sandbox is made
	watching sync.WaitGroup // for the ends of sandboxes by their limits
	proxied  *runner        // the sandbox whose connections the proxy takes, or nil
}

// stand makes a session ready and has work done in it.
func (f *runFlags) stand(ctx context.Context, work func(context.Context, *standing) error) (code int, err error) {
	f.started = func() {}
	r, err := f.runner(ctx, []string{"bash"})
	if err != nil {
		return 0, err
	}
	defer r.ahead.Close()
	s := &standing{runner: r}
	ctx, s.end = context.WithCancel(ctx)
	defer s.end()
	logger := f.logger()
	if r.sess, err = newSession(sessionConfig{dirs: r.src.dirs, src: r.src, policy: r.policy, audit: f.audit,
		start: r.startRecord(), logger: logger, programs: r.programs}); err != nil {
		return 0, err
	}
	r.sess.sandboxed, r.sess.onLeak = true, s.leaked
	reason := "failed"
	defer func() {
		if e := r.sess.close(reason); e != nil {
			err = errors.Join(err, fmt.Errorf("closing the session: %w", e))
		}
	}()
	removeFork, err := r.makeFork(ctx)
	if err != nil {
		return 0, err
	}
	defer removeFork()
	defer r.clearForks(ctx)()
	if s.config, err = r.config(ctx); err != nil {
		return 0, err
	}
	if s.start, err = s.startsIn(); err != nil {
		return 0, err
	}
	s.config.Argv = nil
	defer r.leftBehind(context.WithoutCancel(ctx))
	r.sess.exposed = exposure(s.config, r.src.dirs.home)
	s.shell = &shell.Session{Executor: s.executor(), Grace: 5 * time.Second}
	defer func() {
		if e := s.shell.Dispose(context.WithoutCancel(ctx)); e != nil {
			logger.Warn("closing the sandbox", "err", e)
		}
		s.watching.Wait()
	}()
	stop, err := r.sess.control(ctx, r.writable())
	if err != nil {
		return 0, err
	}
	defer stop()
	if r.watch != nil {
		r.watch() // before anything can change
	}
	if err = work(ctx, s); err == nil {
		reason = "exit"
	}
	if s.leaks.Load() {
		return exitKilled, nil
	}
	return 0, err
}

// startsIn is the working folder, or the scratch folder where the policy has
// commands start there.
func (s *standing) startsIn() (string, error) {
	if !s.policy.StartInScratch {
		return s.cwd, nil
	}
	view, err := netns.Look(s.config)
	if err != nil {
		return "", fmt.Errorf("finding the scratch folder: %w", err)
	}
	return view.Plan.Cwd, nil
}

// executor is where commands run.
func (s *standing) executor() shell.Executor {
	if s.isolator.bare() {
		return s.timed(&shell.Local{Cwd: s.cwd, Env: os.Environ(), Warn: func(text string) { fmt.Fprintln(os.Stderr, "egressd: "+text) }})
	}
	return s.timed(&tools.Sandbox{Open: s.open, Network: s.network(), Cwd: s.start, Isolator: s.isolator.kind})
}

// network says whether commands have one.
func (s *standing) network() bool { return s.policy.HasRules || s.policy.Sandbox.AllowNetwork }

// open makes a sandbox for commands and lets none in that does not hold.
func (s *standing) open(ctx context.Context, network bool) (*netns.Session, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.leaks.Load() {
		return nil, errors.New("a placeholder was used where it is not bound, which has ended the session")
	}
	one := &runner{flags: s.flags, src: s.src, policy: s.policy, cwd: s.cwd, grants: s.grants, isolator: s.isolator, sess: s.sess}
	c := s.config
	c.Event = one.event
	one.secrets = sync.OnceValues(func() (credbroker.Inside, error) { return s.sess.armed(ctx) })
	c.Texts = sync.OnceValues(func() (map[string][]byte, error) { return s.texts(one.secrets) })
	switch {
	case network && s.policy.HasRules:
		if err := s.retire(); err != nil {
			return nil, err
		}
		c.Names, c.Early = s.sess.inForce().set, one.early
		s.proxied = one
	case !network:
		c.Network, c.Names, c.Early = netns.NoNetwork, nil, nil
	}
	var err error
	if one.box, err = netns.Start(ctx, c); err != nil {
		return nil, cmp.Or(s.noSecret, err)
	}
	for _, note := range one.box.Notes() {
		s.say(note)
	}
	if err := s.try(ctx, one); err != nil {
		return nil, errors.Join(err, one.box.Close())
	}
	s.watchLimits(one)
	return one.box, nil
}

// try tests a sandbox. The doors of one that has any are served from here on.
func (s *standing) try(ctx context.Context, one *runner) (err error) {
	if one == s.proxied {
		if one.doors == nil {
			if one.doors, err = one.openDoors(); err != nil {
				return err
			}
		}
		return one.selfTest(ctx)
	}
	// What others ask of the proxy meanwhile is to be recorded, so it is not
	// touched here: this sandbox has no way to it.
	ctx, cancel := context.WithTimeout(ctx, selfTestTime)
	defer cancel()
	err = one.probeInside(ctx)
	verdict := "allow"
	if err != nil {
		verdict = "error"
		err = fmt.Errorf("the self-test of the sandbox failed, nothing was run: %w", err)
	}
	return errors.Join(err, s.sess.log.Append(&audit.Record{Kind: audit.KindSelfTest, Verdict: verdict}))
}

// retire ends the proxy of a sandbox that has died, down to the last record: the
// self-test of the next one is not to be mixed with them.
func (s *standing) retire() error {
	old := s.proxied
	if old == nil {
		return nil
	}
	s.proxied = nil
	if old.doors != nil {
		old.doors()
	}
	s.sess.mu.Lock()
	proxy := s.sess.proxy
	s.sess.proxy, s.sess.names = nil, nil
	s.sess.mu.Unlock()
	if proxy == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := proxy.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("closing the proxy of the sandbox before: %w", err)
	}
	return nil
}

// leaked ends the session: a placeholder was used where it is not bound. When it
// returns nothing inside runs any more, so no answer is acted on.
func (s *standing) leaked(credential string) {
	if s.leaks.Swap(true) {
		return
	}
	fmt.Fprintf(os.Stderr, "egressd: a placeholder (credential %s) was used where it is not bound: the sandbox is ended\n", plainText(cmp.Or(credential, "unknown")))
	s.end()
	if err := s.shell.Executor.Dispose(context.Background()); err != nil {
		s.sess.logger.Warn("ending the sandbox", "err", err)
	}
}
