package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
)

// thePolicy looks whether the policy that run would take here could be
// enforced.
func (e *examination) thePolicy() {
	p, problems, err := e.src.load(false)
	if err == nil && p != nil {
		err = whole(p, problems)
	} else if err == nil {
		err = problems.Err()
	}
	where := e.src.path
	switch {
	case err != nil:
		e.add(bad("policy", fmt.Errorf("%s does not load: %w", where, err), "egressd check "+where))
	case where == "":
		e.add(good("policy", "none here: every request would be denied"))
	default:
		found := fmt.Sprintf("%s: %s, %s", where, count(len(p.Rules), "rule"), count(len(p.Credentials), "credential"))
		if p.Unfiltered() {
			found += "; the network is NOT filtered (no egress_rules)"
		}
		e.add(e.trusted(p, found))
		if err := unsupported(p, true); err != nil {
			e.add(bad("policy", err, "take them out, or wait for a later version"))
		}
	}
	e.policy, e.cwd = p, e.src.cwd
	if e.policy == nil {
		e.policy, _ = policy.Load("egressd.yaml", nil, policy.Options{})
		return
	}
	if cwd, err := e.src.workingFolder(p); err != nil {
		e.add(bad("policy", err, ""))
	} else {
		e.cwd = cwd
	}
	var said strings.Builder
	if e.grants, err = grantsOf(p, e.cwd, e.src.dirs.home, &said); err != nil {
		e.add(bad("grants", err, ""))
	}
	for line := range strings.Lines(said.String()) {
		e.add(odd("grants", strings.TrimPrefix(strings.TrimSpace(line), "egressd: "), "make it, or take it out of the policy"))
	}
}

// trusted says whether run takes the policy.
func (e *examination) trusted(p *policy.Policy, found string) finding {
	if !e.src.found {
		return good("policy", found)
	}
	state, err := e.src.store().State(p)
	switch {
	case err != nil:
		return bad("policy", err, "")
	case state != policy.Trusted:
		return odd("policy", fmt.Sprintf("%s; it is %s, so run does not take it", found, state), "read it, then egressd trust")
	}
	return good("policy", found)
}

// isolation finds the program that keeps this policy's programs apart, and
// says whether there is one to try.
func (e *examination) isolation(ctx context.Context) bool {
	var err error
	if e.isolator, err = chooseIsolator(e.policy, os.Getenv, avoided(e.cwd, e.grants)); err != nil {
		e.add(bad("isolation", err, ""))
		return false
	}
	if e.isolator.bare() {
		advice := "leave sandbox.type out"
		if e.policy.Sandbox.Type != policy.BackendNone {
			advice = "unset " + unsafeVariable
		}
		e.add(odd("isolation", e.isolator.warning, advice))
		return false
	}
	version, err := isolatorVersion(ctx, e.isolator)
	if err != nil {
		e.add(bad("isolation", err, ""))
		return false
	}
	found := strings.TrimSpace(e.isolator.program + " " + version)
	if e.isolator.warning != "" {
		e.add(odd("isolation", found+": "+e.isolator.warning, "install the package bubblewrap, version 0.8 or newer"))
	} else {
		e.add(good("isolation", found))
	}
	return true
}

// sandbox makes one and looks from inside. It says whether there is a proxy in
// it to try tools with.
func (e *examination) sandbox(ctx context.Context) bool {
	captured := e.isolator.kind != policy.BackendFirejail
	box, err := e.trial(ctx, captured)
	if err != nil {
		e.add(bad("namespaces", err, namespaceAdvice()))
		return false
	}
	defer box.Close() // the trial is over whatever it says
	e.add(good("namespaces", fmt.Sprintf("programs run as uid %d of this host", box.HostUID())))
	switch {
	case !captured:
		e.add(good("capture", "none: "+e.isolator.kind+" has no proxy, and this policy no rules"))
	case box.Transparent():
		e.add(good("capture", "transparent: clients that ignore proxies are caught too"))
	default:
		e.add(odd("capture", "explicit only: clients must honour the proxy variables, others find no network", namespaceAdvice()))
	}
	for _, note := range box.Notes() {
		e.add(odd("note", note, ""))
	}
	if bounds := box.Bounds(); bounds != "" {
		e.add(good("limits", "sandbox.limits would be held by "+bounds))
	}
	e.inside(ctx, box)
	return captured
}

// inside looks at files, network and privileges from within a sandbox.
func (e *examination) inside(ctx context.Context, box *netns.Session) {
	look := func(check, found string, checks ...netns.Check) {
		failures, err := box.Check(ctx, checks...)
		if err == nil && len(failures) > 0 {
			err = errors.New(strings.Join(failures, "; "))
		}
		if err != nil {
			e.add(bad(check, err, "please report it with egressd doctor --json: nothing is run in such a sandbox"))
		} else {
			e.add(good(check, found))
		}
	}
	if runtime.GOOS == "linux" {
		look("seccomp", "the filter of system calls is in force; no capability, and none can be had", netns.Check{Kind: netns.CheckConfined})
	}
	look("inside", insideFound, append(networkChecks(), netns.Check{Kind: netns.CheckReadOnly, Path: "/usr"},
		netns.Check{Kind: netns.CheckAbsent, Path: shadow})...)
}

// trial makes a sandbox like run's, for a program that is never started.
func (e *examination) trial(ctx context.Context, captured bool) (*netns.Session, error) {
	d := e.src.dirs
	c := netns.Config{Argv: []string{"true"}, Cwd: e.cwd, Grants: append([]mount.Grant{{Path: e.cwd}}, e.grants...), Home: d.home,
		Network: netns.NoNetwork, Path: os.Getenv("PATH"), Invoker: invoker(d), Limits: e.limits()}
	if captured {
		c.Network = netns.Captured
	}
	if e.isolator.kind == policy.BackendFirejail {
		c.Firejail = e.isolator.program
	}
	for i := range c.Grants {
		c.Grants[i].Write = false // a trial makes nothing in them
	}
	var err error
	for _, end := range []**os.File{&c.Streams.Stdin, &c.Streams.Stdout, &c.Streams.Stderr} {
		if *end, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
			return nil, fmt.Errorf("opening %s: %w", os.DevNull, err)
		}
	}
	return netns.Start(ctx, c)
}

// namespaceAdvice names what on this host keeps users from making namespaces.
func namespaceAdvice() string {
	list := netns.Obstacles()
	for i, o := range list {
		if strings.HasPrefix(o, "AppArmor") {
			list[i] = o + ", as AppArmor below says"
		}
	}
	return strings.Join(list, "; ")
}

// limits are those of the policy, or some to see what would hold them.
func (e *examination) limits() netns.Limits {
	if e.policy != nil && e.policy.Sandbox.Limits != (policy.SandboxLimits{}) {
		return limitsOf(e.policy.Sandbox.Limits)
	}
	if runtime.GOOS == "darwin" {
		return netns.Limits{} // where most would be refused
	}
	return netns.Limits{Memory: 1 << 50, Processes: 1 << 20, CPUSeconds: 1 << 20} // that nothing meets
}
