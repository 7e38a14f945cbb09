package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
)

// keptHome is the folder of the host that HOME is inside, links followed, or ""
// for a private one. It is judged like a grant: yesterday's sandbox may have put
// a link in its place.
func keptHome(p *policy.Policy, cwd, home string) (string, error) {
	written := p.Sandbox.Home
	if written == "" {
		return "", nil
	}
	path := policy.Expand(written, cwd, home)
	real, err := filepath.EvalSymlinks(path)
	if os.IsNotExist(err) {
		return "", fmt.Errorf("sandbox.home: %s does not exist: make that folder first", written)
	}
	if err != nil {
		return "", fmt.Errorf("finding sandbox.home: %w", err)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("sandbox.home: %s is no folder", written)
	}
	folders := []string{cwd}
	for _, g := range slices.Concat(p.Sandbox.ReadPaths, p.Sandbox.WritePaths) {
		folders = append(folders, policy.Expand(g, cwd, home))
	}
	if err := staysInside(path, real, folders); err != nil {
		return "", fmt.Errorf("sandbox.home: %w", err)
	}
	for _, own := range []string{home, realPath(home)} {
		if own != "" && within(own, real) {
			return "", fmt.Errorf("sandbox.home: %s is or holds your own home, with its secrets: name a folder for the sandbox alone, or grant what it needs with write_paths", written)
		}
	}
	return real, nil
}

// reach are the grants and the home that is kept: where the sandbox comes to on
// the host.
func (r *runner) reach() []mount.Grant {
	if r.home == "" {
		return r.grants
	}
	return append(slices.Clone(r.grants), mount.Grant{Path: r.home, Write: true})
}

// enterHome finds the home that is kept. Where the working folder is HOME, that
// is what shows there.
func (r *runner) enterHome() (err error) {
	if r.home, err = keptHome(r.policy, r.cwd, r.src.dirs.home); err != nil || r.home == "" {
		return err
	}
	if at := r.src.dirs.home; r.cwd == at || r.cwd == realPath(at) {
		r.say(fmt.Sprintf("sandbox.home is not used: %s is the working folder and HOME", r.cwd))
		r.home = ""
	}
	return nil
}

// visible says whether a folder of the host's search path is there inside, in
// the home that is kept too.
func (r *runner) visible() func(dir string) bool {
	shown, home := visibleIn(r.grants), r.src.dirs.home
	return func(dir string) bool {
		if rel, err := filepath.Rel(home, dir); err == nil && r.home != "" && within(dir, home) {
			if info, err := os.Stat(filepath.Join(r.home, rel)); err == nil && info.IsDir() {
				return true
			}
		}
		return shown(dir) || r.sees(realPath(dir))
	}
}
