//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A Process is a command under way. Everything it starts ends with it, what has
// left its process group and its session too.
type Process struct {
	s      *Session
	number uint64
	ended  chan struct{}   // closed behind status
	status unix.WaitStatus // of the command's first process
}

// Exec starts a command. One that is not there or cannot be executed is a
// *NotStarted. One that has not started when ctx ends is ended, and the error
// is ctx's cause. Any other error is the session's: nothing more can be run in
// it.
func (s *Session) Exec(ctx context.Context, c Command) (*Process, error) {
	files, carried := []*os.File{nil}, []int{}
	for i, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		if f != nil {
			files, carried = append(files, f), append(carried, i)
		}
	}
	defer func() { closeFiles(files[1:]) }()
	if len(s.cfg.Argv) > 0 {
		return nil, errors.New("starting a command: the session has a program of its own")
	}
	if c.Cwd == "" {
		c.Cwd = s.plan.Cwd
	}
	if len(c.Argv) == 0 || !filepath.IsAbs(c.Cwd) {
		return nil, errors.New("starting a command: it has no name, or no absolute folder")
	}
	for _, f := range files[1:] {
		if err := s.give(f); err != nil {
			return nil, fmt.Errorf("starting a command: %w", err)
		}
	}
	spec, err := parcel("program", program{Argv: c.Argv, Env: override(s.env, c.Env), Cwd: c.Cwd, Limits: s.ofEach(), Reap: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = spec.Close() }()
	files[0] = spec
	p := s.enroll()
	_, got, err := s.launcher.ask(ctx, startTime, message{Kind: kindExec, Command: p.number, Carried: carried}, files...)
	closeFiles(got)
	if err != nil {
		s.dismiss(p.number)
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			if kill := p.Kill(); kill != nil {
				return nil, fmt.Errorf("ending a command that has not started: %w", kill)
			}
			return nil, err
		}
		var no *remoteError
		if errors.As(err, &no) && no.code != 0 {
			return nil, &NotStarted{Problem: no.text, Code: no.code}
		}
		return nil, err
	}
	return p, nil
}

// give makes a pipe belong to the sandbox's user, who may open it by a name
// such as /dev/stdout then. A run of root made it root's.
func (s *Session) give(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !s.id.root || info.Mode()&os.ModeNamedPipe == 0 {
		return err
	}
	return f.Chown(s.id.uid, s.id.gid)
}

// enroll is a new process that the launcher will tell of.
func (s *Session) enroll() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = true
	s.lastCommand++
	p := &Process{s: s, number: s.lastCommand, ended: make(chan struct{})}
	if s.commands == nil {
		s.commands = map[uint64]*Process{}
	}
	s.commands[p.number] = p
	return p
}

// dismiss forgets a process, and answers it.
func (s *Session) dismiss(number uint64) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.commands[number]
	delete(s.commands, number)
	return p
}

// commandEnded hears of a command's end from the launcher, once.
func (s *Session) commandEnded(m message) {
	if p := s.dismiss(m.Command); p != nil {
		p.status = unix.WaitStatus(m.Status)
		close(p.ended)
	}
}

// Kill ends the command and all it has started. Ended tells when that is done.
// An error says that the launcher did not take it within a second: a program
// can stop the launcher, and then the session is good for nothing any more.
func (p *Process) Kill() error {
	_, files, err := p.s.launcher.ask(context.Background(), answerTime, message{Kind: kindKill, Command: p.number})
	closeFiles(files)
	return err
}

// Ended is closed when nothing can be run in the session any more: it was
// closed, or has died.
func (s *Session) Ended() <-chan struct{} { return s.launcher.ended }
