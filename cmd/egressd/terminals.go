package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
)

// commandOf is what runs: what the command line names, else what the terminal
// that was chosen does, else the user's shell.
func commandOf(p *policy.Policy, argv []string) []string {
	t := p.Terminal
	switch {
	case len(argv) > 0:
		return argv
	case t == nil:
		return []string{userShell()}
	case t.Command == "":
		return append([]string{userShell()}, t.Args...)
	}
	return append([]string{t.Command}, t.Args...)
}

// terminalVariables are those that a terminal sets inside, sorted.
func terminalVariables(t *policy.Terminal) []string {
	if t == nil {
		return nil
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		env = append(env, name+"="+t.Env[name])
	}
	return env
}

// noFileToMake refuses a policy that names a file which is not there, such as an
// agent's, and which the sandbox could make: a later run would take its word. Of a
// policy that was found it would not, since that one needs trust anew.
func (s *source) noFileToMake(p *policy.Policy, grants []mount.Grant) error {
	if s.found {
		return nil
	}
	for _, file := range p.Pins() {
		if _, err := os.Lstat(file); !os.IsNotExist(err) {
			continue
		}
		for _, g := range grants {
			if g.Write && within(leads(file), g.Path) {
				return fmt.Errorf("%s belongs to the policy and is not there, and the sandbox could make it, since it may write to %s: make it, or take it out of the policy", file, g.Path)
			}
		}
	}
	return nil
}
