package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/netns/remains"
	"github.com/egressd/egressd/netns/streams"
	"github.com/egressd/egressd/netns/survey"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/rules"
)

// runner is one run under way.
type runner struct {
	flags     *runFlags
	src       *source
	policy    *policy.Policy
	argv      []string
	cwd       string
	grants    []mount.Grant
	hidden    func() (hiding, error) // waits for what must not be seen
	masks     []string               // hidden whatever is granted
	found     survey.Found           // what lies in the grants
	watch     func() *remains.Watch  // how it was at the start; nil without writable grants
	fork      string                 // the copy of cwd that the program works on; empty for none
	home      string                 // the host\'s folder that HOME is; empty for a private one
	isolator  isolator
	capture   netns.Capture
	ahead     *netns.Ahead
	published []netns.Publish
	git       chan []string           // the caller's git identity, as variables
	java      func() ([]string, bool) // what javaStores finds
	programs  *hostPrograms           // that may be started on the host
	inside    credbroker.Inside       // what the sandbox sees of credentials
	noSecret  error                   // why a secret could not be had
	// secrets reads those of the policy, once, and is what the sandbox sees of them.
	secrets func() (credbroker.Inside, error)
	// texts are of the files that are made inside.
	texts func(secrets func() (credbroker.Inside, error)) (map[string][]byte, error)

	recorded    bool // the record is whole
	interactive bool
	problem     string // why the program was not started, or why it was ended
	leak        sync.Once
	ended       atomic.Bool // by a leak
	late        atomic.Bool // sandbox.timeout is over
	due         time.Time   // when it is; zero for never
	endedBy     string      // limit or timeout, or empty
	sess        *session
	box         *netns.Session
	doors       func() // waits for the ends of the doors; nil until they are served
	tried       bool   // the network probes of the self-test have run
	network     error  // what they found
	streams     *streams.Streams
}

// recordApart refuses a record that the sandbox could write to, by whatever
// links its folder is reached.
func (r *runner) recordApart() error {
	name, file := "audit.file", r.policy.Audit.File
	if r.flags.audit != "" {
		abs, err := filepath.Abs(r.flags.audit)
		if err != nil {
			return fmt.Errorf("finding the record: %w", err)
		}
		name, file, r.flags.audit = "--audit", abs, abs
	}
	if file == "" {
		return nil
	}
	for _, g := range r.reach() {
		for _, path := range append(placesOf(file), file) {
			if g.Write && within(path, g.Path) {
				return fmt.Errorf("%s %s lies in %s, which the sandbox may write: name another folder", name, file, g.Path)
			}
		}
	}
	return nil
}

// say tells the user something that they would otherwise wonder about.
func (r *runner) say(text string) {
	if !r.flags.quiet {
		fmt.Fprintln(os.Stderr, "egressd: "+plainText(text))
	}
}

// writable are the folders the sandbox can write, cwd always among them:
// nothing there is run on the host.
func (r *runner) writable() []string {
	list := []string{r.cwd}
	for _, g := range r.reach() {
		if g.Write {
			list = append(list, g.Path)
		}
	}
	return list
}

func (r *runner) session(ctx context.Context) (code int, err error) {
	logger := r.flags.logger()
	if r.sess, err = newSession(sessionConfig{dirs: r.src.dirs, src: r.src, policy: r.policy, audit: r.flags.audit,
		start: r.startRecord(), logger: logger, programs: r.programs}); err != nil {
		return 0, err
	}
	r.sess.sandboxed, r.sess.onLeak = true, r.leaked
	reason := "failed"
	defer func() {
		if e := r.sess.close(reason); e != nil {
			err = errors.Join(err, fmt.Errorf("closing the session: %w", e))
		}
		if err == nil {
			r.recorded = true
		}
	}()
	removeFork, err := r.makeFork(ctx)
	if err != nil {
		return 0, err
	}
	defer removeFork()
	defer r.clearForks(ctx)()
	if r.isolator.bare() {
		defer r.tellProblem()
		if code, err = r.runBare(ctx); err == nil {
			reason = cmp.Or(r.endedBy, "exit")
		}
		return code, err
	}
	config, err := r.config(ctx)
	if err != nil {
		return 0, err
	}
	defer r.leftBehind(ctx)
	r.sess.exposed = exposure(config, r.src.dirs.home)
	if r.streams, err = streams.Open(streams.Config{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Raw: r.flags.raw}); err != nil {
		return 0, err
	}
	defer func() {
		e := r.streams.Close()
		r.tellProblem()
		if e != nil {
			fmt.Fprintf(os.Stderr, "egressd: %s\n", plainText(e.Error()))
			if code == 0 {
				code = exitEgressd
			}
		}
	}()
	r.interactive = r.streams.Terminal()
	config.Streams = r.streams.Program()
	if r.box, err = netns.Start(ctx, config); err != nil {
		return 0, cmp.Or(r.noSecret, err)
	}
	defer func() {
		if e := r.box.Close(); e != nil {
			logger.Warn("closing the sandbox", "err", e)
		}
	}()
	for _, note := range r.box.Notes() {
		fmt.Fprintf(os.Stderr, "egressd: %s\n", plainText(note))
	}
	r.sayBounds()
	if code, err = r.live(ctx); err == nil {
		reason = "exit"
		if r.ended.Load() {
			reason, code = "leak", exitKilled
		} else {
			reason = cmp.Or(r.endedBy, reason)
		}
	}
	return code, err
}

// leaked ends the sandbox: a placeholder was used where it is not bound. When it
// returns nothing inside runs any more, so no answer is acted on.
func (r *runner) leaked(credential string) {
	r.leak.Do(func() {
		r.ended.Store(true)
		fmt.Fprintf(os.Stderr, "egressd: a placeholder (credential %s) was used where it is not bound: the sandbox is ended\r\n", plainText(cmp.Or(credential, "unknown")))
		if err := r.box.Close(); err != nil {
			r.sess.logger.Warn("ending the sandbox", "err", err)
		}
	})
}

// startRecord is what session_start says beyond what every one does.
func (r *runner) startRecord() audit.Record {
	start := audit.Record{Isolator: r.isolator.kind}
	if r.policy.Unfiltered() {
		start.Reason = "unfiltered"
	}
	return start
}

// tellProblem says why the program was not started.
func (r *runner) tellProblem() {
	if r.problem != "" {
		fmt.Fprintf(os.Stderr, "egressd: %s\n", plainText(r.problem))
	}
}

// live serves the sandbox while its program runs.
func (r *runner) live(ctx context.Context) (int, error) {
	if r.doors == nil {
		doors, err := r.openDoors()
		if err != nil {
			return 0, err
		}
		r.doors = doors
	}
	defer r.doors()
	tested := make(chan error, 1)
	go func() { tested <- r.selfTest(ctx) }()
	stop, err := r.sess.control(ctx, r.writable())
	if test := <-tested; test != nil || err != nil {
		if err == nil {
			stop()
		}
		return 0, errors.Join(test, err)
	}
	defer stop()
	if err := r.streams.Attach(r.box.Terminal(), r.box.HostUID(), r.box.HostGID()); err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	if r.watch != nil {
		r.watch() // before anything can change
	}
	ended := make(chan struct{})
	defer close(ended)
	stopClock, err := r.startClock(ended)
	if err != nil {
		return 0, err
	}
	defer stopClock()
	if err := r.box.Go(ctx); err != nil {
		var no *netns.NotStarted
		if errors.As(err, &no) {
			r.problem = no.Problem + r.advice(no) // said when the terminal is the user's again
			return no.Code, nil
		}
		return 0, err
	}
	r.flags.started()
	go r.signals(ctx, signals, ended)
	return r.wait()
}

// signals passes what egressd is sent on to the program. SIGHUP reloads the
// policy, but for a terminal that is gone.
func (r *runner) signals(ctx context.Context, in <-chan os.Signal, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case s := <-in:
			sig, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			if sig == syscall.SIGHUP && !r.streams.HungUp() {
				_ = r.sess.reload(ctx) // it has said what there is to say
				continue
			}
			if err := r.box.Signal(unix.Signal(sig), true); err != nil {
				r.deaf(err)
			}
		}
	}
}

// event records what happens inside and acts on a program that stopped.
func (r *runner) event(e netns.Event) {
	switch e.Kind {
	case netns.Stopped:
		r.stopped()
	case netns.Continued:
	case netns.Uncovered:
		go func() {
			fmt.Fprintf(os.Stderr, "egressd: the host replaced %s, and it could not be hidden or made read-only again (%v): the sandbox is ended\r\n", plainText(e.Name), plainText(fmt.Sprint(e.Err)))
			if err := r.sess.log.Append(&audit.Record{Kind: audit.KindLimit, Verdict: "error", Reason: "internal"}); err != nil {
				r.sess.logger.Warn("recording the end of the sandbox", "err", err)
			}
		}()
	default:
		r.question(e)
	}
}

// openDoors serves what comes from inside; the returned function waits for the
// doors' ends.
func (r *runner) openDoors() (func(), error) {
	if !r.policy.HasRules {
		return func() {}, nil
	}
	if err := r.sess.serve(r.box, "explicit", r.sess.token); err != nil {
		return nil, err
	}
	r.sess.tellNames(func(set *rules.Set) error { return r.box.SetNames(set) })
	done := make(chan struct{}, 2)
	for l, serve := range map[string]func() error{
		"explicit":    func() error { return r.sess.proxy.ServeProxy(r.box.Explicit()) },
		"transparent": func() error { return r.sess.proxy.ServeCaptured(r.box.Captured()) },
	} {
		go func() {
			if err := serve(); err != nil && !errors.Is(err, net.ErrClosed) {
				r.sess.logger.Debug("a door closed", "door", l, "err", err)
			}
			done <- struct{}{}
		}()
	}
	return func() {
		_ = r.box.Close() // its error is told where it is closed for good
		<-done
		<-done
	}, nil
}

// question records what was asked of the DNS stub, once for each name and type.
func (r *runner) question(e netns.Event) {
	if r.sess.sink.closed() {
		return
	}
	record := audit.Record{Kind: audit.KindDNS, Host: e.Name, Qtype: e.Type}
	if e.Kind == netns.PortTaken {
		record.Verdict, record.Reason, record.Port = "error", "connect", int(e.At.Port())
	} else if e.Err != nil {
		record.Verdict, record.Reason = "error", "dns"
	}
	go func() { // whoever tells of an event must not wait for the disk
		if err := r.sess.log.Append(&record); err != nil {
			r.sess.logger.Debug("recording a question", "err", err)
		}
	}()
}
