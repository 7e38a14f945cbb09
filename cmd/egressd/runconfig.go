package main

import (
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/netns"
)

// invoker is whose run it is, where egressd was started by sudo.
func invoker(d dirs) netns.Invoker {
	if d.uid == os.Getuid() {
		return netns.Invoker{}
	}
	return netns.Invoker{SudoUID: d.uid, SudoGID: d.gid}
}

// config is the sandbox as the policy wants it.
func (r *runner) config() netns.Config {
	p, d := r.policy, r.src.dirs
	git, links := r.gitFolders()
	c := netns.Config{
		Argv: r.argv, Cwd: r.cwd, Grants: r.grants, AllowHidden: p.Sandbox.AllowHidden,
		Hidden:   slices.Concat(hidden(d, d.home), secretFiles(p), links),
		ReadOnly: append(r.src.readOnly(p, r.cwd), git...), Home: d.home,
		Capture: r.capture, Publish: r.published, Path: os.Getenv("PATH"), Event: r.event,
		Invoker: invoker(d), Ahead: r.ahead,
	}
	c.Env = sandboxEnviron(os.Environ(), p.Sandbox.EnvPassthrough, visibleIn(r.grants))
	stores, loose := r.java()
	c.Files = trustFiles(stores)
	var authority *ca.Issuer
	switch {
	case p.HasRules:
		c.Network, c.Names, c.Early = netns.Captured, r.sess.set, r.early
		authority = r.sess.issuer
		c.Env = append(c.Env, proxyVariables(proxyURL)...)
		if loose {
			c.Env = withJavaOptions(c.Env, javaTrust())
		}
		c.EnvExplicit = javaExplicit(c.Env)
		c.Env = append(c.Env, ca.Variables(bundlePath, filepath.Dir(bundlePath))...)
	default:
		c.Network = netns.NoNetwork
		if p.Sandbox.AllowNetwork {
			c.Network = netns.HostNetwork
		}
	}
	c.Texts = sync.OnceValues(func() (map[string][]byte, error) {
		roots, err := r.sess.roots()
		if err != nil {
			return nil, err
		}
		return trustTexts(roots, authority, c.Files, stores)
	})
	c.Env = append(c.Env, <-r.git...)
	return c
}
