package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/rules"
)

// watchAfter is how long a session runs before its policy is watched. A change
// before that is seen then.
const watchAfter = 250 * time.Millisecond

// control opens the session's socket and watches its policy. The returned
// function ends both.
func (s *session) control(ctx context.Context, writable []string) (func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	c, err := serveControl(ctx, s.dirs, s.id, s.answer, func(reason string) {
		if err := s.log.Append(&audit.Record{Kind: audit.KindControl, Verdict: "deny"}); err != nil {
			s.logger.Warn("recording a refused control connection", "err", err)
		}
		s.logger.Warn("a control connection was refused", "reason", reason)
	})
	if err != nil {
		cancel()
		return nil, err
	}
	w := &policy.Watcher{
		Path: s.src.path, Current: s.now.policy,
		ByDemand: s.src.path == "" || reachable(s.now.policy, s.src.path, writable),
		Read: func() (*policy.Policy, policy.Problems, error) {
			p, err := s.src.enforced()
			return p, nil, err
		},
		Take: func(c policy.Change) error { return s.take(ctx, c.Policy, c.Err) },
	}
	s.watcher = w
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		// The kernel takes up to 20 ms to end a watch, which a command that is
		// over at once must not wait for.
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchAfter):
		}
		if err := w.Run(ctx); err != nil {
			s.logger.Warn("the policy is not reloaded when it changes, only by egressd reload", "err", err)
			w = &policy.Watcher{Path: w.Path, Read: w.Read, Take: w.Take, Current: w.Current, ByDemand: true}
			s.mu.Lock()
			s.watcher = w
			s.mu.Unlock()
			_ = w.Run(ctx) // without a watch there is nothing to fail
		}
	}()
	return func() {
		cancel() // first: a reload that is asked for now must not be waited for
		c.Close()
		<-done
	}, nil
}

// reachable says whether the sandbox can write a file of the policy: such a
// policy is reloaded on demand alone, since its change may be the sandbox's.
func reachable(p *policy.Policy, path string, writable []string) bool {
	for _, file := range append(p.Pins(), path) {
		for _, f := range []string{file, realPath(file), realPath(filepath.Dir(file))} {
			for _, w := range writable {
				if f != "" && within(f, w) {
					return true
				}
			}
		}
	}
	return false
}

// answer does what a command asked over the control socket.
func (s *session) answer(ctx context.Context, do string) controlAnswer {
	switch do {
	case "reload":
		if err := s.reload(ctx); err != nil {
			return controlAnswer{Error: err.Error()}
		}
		return controlAnswer{Text: "reloaded: " + count(len(s.inForce().policy.Rules), "rule") + "\n"}
	case "ca":
		return controlAnswer{Text: string(s.issuer.PEM())}
	}
	return controlAnswer{Error: fmt.Sprintf("a session cannot do %q", do)}
}

func (s *session) inForce() *enforcement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// reload reads the policy again, by SIGHUP or by command.
func (s *session) reload(ctx context.Context) error {
	if s.src.path == "" {
		return s.take(ctx, nil, errors.New("the session began without a policy file, so there is none to read again: start it anew"))
	}
	s.mu.Lock()
	w := s.watcher
	s.mu.Unlock()
	return w.Reload(ctx)
}

// take puts a policy in force, whole or not at all. How it went stands on
// stderr and in the record.
func (s *session) take(ctx context.Context, p *policy.Policy, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		err = s.swap(ctx, p)
	}
	verdict := "allow"
	if err != nil {
		verdict = "deny"
		text := fmt.Sprintf("egressd: the policy in force stays: %v\n", err)
		if term.IsTerminal(int(os.Stderr.Fd())) {
			text = strings.ReplaceAll(text, "\n", "\r\n") // run has it in raw mode
		}
		fmt.Fprint(os.Stderr, text)
	}
	record := s.log.Append(&audit.Record{Kind: audit.KindReload, Verdict: verdict, Policy: "sha256:" + s.now.policy.Hash})
	if err == nil && s.tell != nil {
		if err = s.tell(s.now.broker.Inside()); err != nil {
			err = fmt.Errorf("the new policy is in force, but clients are not told: %w", err)
			fmt.Fprintf(os.Stderr, "egressd: %v\n", err)
		}
	}
	return errors.Join(err, record)
}

// shows has tell told what clients are to see, now and after each reload.
func (s *session) shows(tell func(credbroker.Inside) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell = tell
	return tell(s.now.broker.Inside())
}

func (s *session) swap(ctx context.Context, p *policy.Policy) error {
	if !p.HasRules && s.now.policy.HasRules {
		return errors.New("the new policy has no egress_rules: a running sandbox is not opened, start it anew")
	}
	if p.HasRules && !s.now.policy.HasRules {
		return errors.New("the new policy has egress_rules: what runs without them cannot be caught, start it anew")
	}
	if err := unsupported(p, s.sandboxed); err != nil {
		return err
	}
	next, err := enforce(p, rules.New(p.Rules), s.issuer, s.roots)
	if err != nil {
		return err
	}
	if s.exposed != nil {
		if err := s.exposed(p); err != nil {
			return err
		}
	}
	if p.HasRules {
		if err := s.arm(ctx, next, s.now.broker); err != nil {
			return err
		}
	}
	s.remeter(p)
	next.set.Adopt(s.now.set)
	s.now = next
	if s.proxy != nil {
		s.proxy.SetPolicy(next.proxy)
	}
	if s.names != nil {
		if err := s.names(next.set); err != nil {
			s.logger.Warn("a port that a rule names is held by the sandbox", "err", err)
		}
	}
	return nil
}
