package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
)

// The statuses of run that are not the program's own.
const (
	exitEgressd = 125 // egressd itself failed: nothing ran
	exitKilled  = 137 // egressd ended the sandbox, as SIGKILL does
)

// runFlags are what `egressd run` was told.
type runFlags struct {
	policyFlags
	verbosity
	audit   string
	capture string
	publish []string
	raw     bool
	lazy    bool // the sandbox may never be needed, so nothing of it is started ahead

	started func() // called when the program runs
}

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] [--] [CMD [ARG…]]",
		Short: "run CMD in the sandbox, behind the proxy",
		Long: `Run CMD (if none is given the command of --terminal, else the user's shell) in a
sandbox whose every connection is judged by the policy, forwarded and recorded.

Exit status: CMD's, 128+n if signal n ended it; 125 when egressd itself fails,
126 when CMD cannot be executed, 127 when it is not there.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := f.run(cmd.Context(), args)
			if err != nil {
				return failCode{exitEgressd, err}
			}
			return exitCode(code)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	f.registerAll(cmd)
	flags.StringArrayVar(&f.publish, "publish", nil, "open a loopback port of the host to one inside: `PORT[:HOSTPORT]` (repeatable)")
	flags.BoolVar(&f.raw, "raw-terminal", false, "let the program set the clipboard and ask for the terminal's title")
	return cmd
}

// registerAll adds the flags that every command with a sandbox takes.
func (f *runFlags) registerAll(cmd *cobra.Command) {
	f.register(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "say only what must be said")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "say how the sandbox is made, and a summary at the end")
	flags.StringVar(&f.audit, "audit", "", "write the record to this `FILE`")
	flags.StringVar(&f.capture, "capture", "", "transparent: fail where clients that ignore proxies cannot be caught; explicit: do not try")
}

// run is one session of the main job, from the policy to the program's status.
func (f *runFlags) run(ctx context.Context, argv []string) (int, error) {
	begin := time.Now()
	// A start makes some megabytes of garbage within milliseconds, and every
	// collection would make the user wait.
	collect := debug.SetGCPercent(-1)
	f.started = func() { debug.SetGCPercent(collect) }
	defer f.started()
	r, err := f.runner(ctx, argv)
	if err != nil {
		return 0, err
	}
	defer r.ahead.Close()
	code, err := r.session(ctx)
	if err == nil && (f.verbose || r.interactive && !f.quiet) && r.recorded {
		fmt.Fprintln(os.Stderr, r.sess.summary(time.Since(begin)))
	}
	return code, err
}

// runner reads the policy and decides what a run of argv is; nothing runs yet
// but what is needed later and takes its time. The caller closes what was
// started ahead.
func (f *runFlags) runner(ctx context.Context, argv []string) (_ *runner, err error) {
	if err := harden(); err != nil {
		return nil, err
	}
	capture, err := captureOf(f.capture)
	if err != nil {
		return nil, err
	}
	published, err := parsePublish(f.publish)
	if err != nil {
		return nil, err
	}
	src, err := newSource(f.policyFlags)
	if err != nil {
		return nil, err
	}
	var ahead *netns.Ahead
	if capture != netns.CaptureExplicit && !f.lazy {
		ahead = netns.Begin(src.cwd, invoker(src.dirs))
		defer func() {
			if err != nil {
				ahead.Close()
			}
		}()
	}
	p, err := src.enforced()
	if err != nil {
		return nil, err
	}
	if err := unsupported(p, true); err != nil {
		return nil, err
	}
	r := &runner{flags: f, src: src, policy: p, argv: commandOf(p, argv), capture: capture, published: published, ahead: ahead}
	if r.cwd, err = src.workingFolder(p); err != nil {
		return nil, err
	}
	if r.grants, err = grantsOf(p, r.cwd, src.dirs.home, os.Stderr); err != nil {
		return nil, err
	}
	if err := r.enterHome(); err != nil {
		return nil, err
	}
	if err := src.noFileToMake(p, r.reach()); err != nil {
		return nil, err
	}
	if err := turnable(p, src.dirs.home, r.reach()); err != nil {
		return nil, err
	}
	if r.isolator, err = chooseIsolator(p, os.Getenv, avoided(r.cwd, r.reach())); err != nil {
		return nil, err
	}
	r.hidden = hide(ctx, p, r.cwd, src.dirs.home, r.reach(), hidden(src.dirs, src.dirs.home), os.Stderr)
	r.announce()
	if err := r.recordApart(); err != nil {
		return nil, err
	}
	r.programs = newHostPrograms(r.cwd, r.reach(), src.dirs.home)
	r.git = make(chan []string, 1)
	r.java = sync.OnceValues(func() ([]string, bool) { return javaStores(src.dirs.home, r.grants) })
	go func() { // a process, while the rest is made ready
		if r.home != "" {
			r.git <- nil // that home has settings of its own
			return
		}
		r.git <- gitIdentity(ctx, src.dirs.home, r.programs)
	}()
	go r.java()
	return r, nil
}

// announce says what the user must know before anything runs, and which policy
// it is where they may think of another.
func (r *runner) announce() {
	src, p := r.src, r.policy
	if src.flags.file == "" {
		for _, file := range src.lookup().PassedOver() {
			r.say(fmt.Sprintf("the policy %s is passed over: it belongs to another user", file))
		}
	}
	if w := r.isolator.warning; w != "" {
		fmt.Fprintln(os.Stderr, "egressd: "+w)
	}
	switch {
	case src.path == "" && len(p.Rules) == 0:
		fmt.Fprintln(os.Stderr, "egressd: no policy: every request is denied. Write egressd.yaml here, allow something with --allow RULE, or have egressd learn write one (a later version)")
	case p.Unfiltered():
		fmt.Fprintln(os.Stderr, "egressd: network is NOT filtered (no egress_rules)")
	}
	if src.found && src.folder() != r.cwd {
		more := " is shown, and what the policy grants"
		if !slices.ContainsFunc(r.grants, func(g mount.Grant) bool { return !within(g.Path, r.cwd) }) {
			more = " is the only folder shown"
		}
		r.say(fmt.Sprintf("the policy is %s, from a folder above; %s%s", src.path, r.cwd, more))
	}
}

func userShell() string {
	if s := os.Getenv("SHELL"); filepath.IsAbs(s) {
		return s
	}
	return "/bin/sh"
}

func captureOf(flag string) (netns.Capture, error) {
	switch flag {
	case "":
		return netns.CaptureAuto, nil
	case "transparent":
		return netns.CaptureTransparent, nil
	case "explicit":
		return netns.CaptureExplicit, nil
	}
	return 0, fmt.Errorf("--capture is transparent or explicit, not %q", flag)
}
