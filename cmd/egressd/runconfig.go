package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
)

// invoker is whose run it is, where egressd was started by sudo.
func invoker(d dirs) netns.Invoker {
	if d.uid == os.Getuid() {
		return netns.Invoker{}
	}
	return netns.Invoker{SudoUID: d.uid, SudoGID: d.gid}
}

// config is the sandbox as the policy wants it.
func (r *runner) config(ctx context.Context) (netns.Config, error) {
	p, d := r.policy, r.src.dirs
	if p.Fork && r.fork == "" {
		return netns.Config{}, errors.New("there is no copy of the working folder to show")
	}
	hide, err := r.hidden()
	if err != nil {
		return netns.Config{}, err
	}
	r.found, r.masks = hide.found, hide.masks
	git := r.gitFolders(r.found.Git)
	r.watchFor(git.held)
	c := netns.Config{
		Argv: r.argv, Cwd: r.cwd, Grants: r.grants, GrantNames: grantNames(p, r.cwd, d.home), AllowHidden: p.Sandbox.AllowHidden,
		Hidden: r.inFork(slices.Concat(hidden(d, d.home), secretFiles(p, d.home), git.links)),
		Masks:  hide.masks, Dots: hide.dots,
		ReadOnly: r.inFork(append(r.src.readOnly(p, r.cwd), git.list...)), Home: d.home, HomeSource: r.home, Scratch: p.StartInScratch,
		Capture: r.capture, Publish: r.published, Path: os.Getenv("PATH"), Event: r.event,
		Limits:  limitsOf(p.Sandbox.Limits),
		Invoker: invoker(d), Ahead: r.ahead,
	}
	if r.fork != "" {
		c.Forked, c.ForkAt = r.cwd, r.fork
	}
	if r.isolator.kind == policy.BackendFirejail {
		c.Firejail = r.isolator.program
	}
	c.Env = sandboxEnviron(os.Environ(), p.Sandbox.EnvPassthrough, sourceVariables(p.Credentials), r.visible())
	c.Env = withVariables(c.Env, terminalVariables(p.Terminal))
	stores, loose := insideLayout.stores(r.java())
	c.Files = insideLayout.trustFiles(stores)
	var authority *ca.Issuer
	switch {
	case p.HasRules:
		c.Network, c.Names, c.Early = netns.Captured, r.sess.set, r.early
		authority = r.sess.issuer
		c.Env = withVariables(c.Env, proxyVariables(insideLayout.url(r.sess.token)))
		if loose {
			c.Env = withJavaOptions(c.Env, javaTrust(insideLayout))
		}
		c.EnvExplicit = javaExplicit(c.Env, insideLayout)
		c.Env = withVariables(c.Env, ca.Variables(insideLayout.bundle, filepath.Dir(insideLayout.bundle)))
	default:
		c.Network = netns.NoNetwork
		if p.Sandbox.AllowNetwork {
			c.Network = netns.HostNetwork
		}
	}
	trust := c.Files
	for _, name := range credbroker.InsideFiles(p.Credentials) {
		c.Files = append(c.Files, mount.Entry{Path: insideLayout.file(name), Mode: 0o444})
	}
	c.Env = withVariables(<-r.git, c.Env)
	r.texts = func(secrets func() (credbroker.Inside, error)) (map[string][]byte, error) {
		// Only now, when the helper runs: to start it the process must be open to
		// others for a moment.
		if p.HasRules {
			if r.inside, r.noSecret = secrets(); r.noSecret != nil {
				return nil, r.noSecret
			}
		}
		roots, err := r.sess.roots()
		if err != nil {
			return nil, err
		}
		texts, err := trustTexts(roots, authority, trust, stores)
		for _, f := range r.inside.Files {
			texts[insideLayout.file(f.Name)] = f.Data
		}
		return texts, err
	}
	r.secrets = sync.OnceValues(func() (credbroker.Inside, error) { return r.sess.armed(ctx) })
	c.Texts = sync.OnceValues(func() (map[string][]byte, error) { return r.texts(r.secrets) })
	c.EnvLate = func() []string {
		env := slices.Concat(r.inside.Env, gitVariables(c.Env, r.inside.Git))
		for _, f := range r.inside.Files {
			env = append(env, f.Variable+"="+insideLayout.file(f.Name))
		}
		return env
	}
	return c, nil
}
