package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"

	secrets "github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/tools"
)

// toolset is the tools of a session, with what they work on. The second answer
// lets that go.
func (s *standing) toolset(grants tools.Grants) (*tools.Set, func(), error) {
	c := tools.Config{
		Grants: grants, Shell: s.shell, ChooseNetwork: s.network(), Isolator: s.isolator.kind, Record: s.sess.log,
	}
	view, err := netns.Look(s.config)
	if err != nil {
		return nil, nil, err
	}
	view.Plan.Cwd = s.cwd // the scratch folder is the sandbox's alone
	if c.Files, err = safepath.Open(tools.Files(view.Plan)); err != nil {
		return nil, nil, err
	}
	done := func() { _ = c.Files.Close() } // only read from, or written and closed before
	if os.Geteuid() == 0 && !s.isolator.bare() {
		c.Apart = func(work func()) error { return asUser(view.UID, view.GID, work) }
	}
	if c.OnCall, err = s.onCall(); err != nil {
		done()
		return nil, nil, err
	}
	set, err := tools.New(c)
	if err != nil {
		done()
		return nil, nil, err
	}
	return set, done, nil
}

// onCall is the operator's program that decides each call, or nil. It is looked
// up as every program of the host is, where no sandbox can write.
func (s *standing) onCall() (tools.OnCall, error) {
	argv := s.policy.Tools.OnCall
	if len(argv) == 0 {
		return nil, nil
	}
	err := secrets.CheckCommand(argv, s.src.dirs.home, s.programs.find, s.programs.unsafe)
	at := ""
	if err == nil {
		at, err = s.programs.find(argv[0])
	}
	if err != nil {
		return nil, fmt.Errorf("finding the program of tools.on_call: %w", err)
	}
	argv = slices.Clone(argv)
	argv[0] = at
	return func(ctx context.Context, r tools.Request) error {
		r.Cwd = s.cwd
		return tools.Hook{Argv: argv, Env: s.programs.env, Dir: "/"}.Decide(ctx, r)
	}, nil
}

// asUser does work as a user without any right of root: what a file tool of a
// run of root can do to files is what the sandbox can. Only this work's thread
// is that user, and it ends with it.
func asUser(uid, gid int, work func()) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := layDown(uid, gid)
		if err == nil {
			work()
		}
		done <- err
	}()
	return <-done
}
