package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Process is a program or a command under way.
type Process struct {
	s      *Session
	pid    int
	mark   string        // what it and all that it starts have in their environment
	ended  chan struct{} // closed behind status
	status syscall.WaitStatus
}

// Exec starts a command. One that is not there or cannot be executed is a
// *NotStarted; any other error is the session's.
func (s *Session) Exec(ctx context.Context, c Command) (*Process, error) {
	files := []*os.File{c.Stdin, c.Stdout, c.Stderr}
	defer closeFiles(files)
	if len(s.cfg.Argv) > 0 {
		return nil, errors.New("starting a command: the session has a program of its own")
	}
	if c.Cwd == "" {
		c.Cwd = s.plan.Cwd
	}
	if len(c.Argv) == 0 || !filepath.IsAbs(c.Cwd) {
		return nil, errors.New("starting a command: it has no name, or no absolute folder")
	}
	return s.launch(ctx, errand{Argv: c.Argv, Env: override(s.env, c.Env), Cwd: c.Cwd, Limits: s.cfg.Limits}, files, nil)
}

// launch starts a program under the profile. What it is to be goes to the
// launcher by a pipe, so that no list of processes shows more than egressd.
func (s *Session) launch(ctx context.Context, e errand, streams []*os.File, terminal *os.File) (*Process, error) {
	p := &Process{s: s, ended: make(chan struct{})}
	s.mu.Lock()
	s.number++
	p.mark = fmt.Sprintf("%s%d;", s.mark(), s.number)
	s.mu.Unlock()
	e.Env = override(e.Env, []string{p.mark})
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	defer func() { _ = null.Close() }()
	specRead, specWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	errsRead, errsWrite, err := os.Pipe()
	if err != nil {
		closeFiles([]*os.File{specRead, specWrite})
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	attr := &os.ProcAttr{Dir: "/", Env: []string{p.mark}, Sys: s.attributes()}
	for i, f := range streams {
		switch {
		case f != nil:
			attr.Files = append(attr.Files, f)
		case terminal != nil:
			attr.Files = append(attr.Files, terminal)
			if !attr.Sys.Setctty {
				attr.Sys.Setctty, attr.Sys.Ctty = true, i
			}
		default:
			attr.Files = append(attr.Files, null)
		}
	}
	attr.Files = append(attr.Files, specRead, errsWrite)
	process, err := os.StartProcess(sandboxExec, s.words(launcherWord), attr)
	closeFiles([]*os.File{specRead, errsWrite})
	defer func() { _ = errsRead.Close() }()
	if err != nil {
		_ = specWrite.Close()
		return nil, &Unavailable{Problem: sandboxExec + " does not run", Advice: "see egressd doctor", Err: err}
	}
	p.pid = process.Pid
	_ = process.Release() // follow waits for it, stops too
	s.mu.Lock()
	s.commands[p] = true
	s.mu.Unlock()
	go p.follow()
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	defer stop()
	_, werr := specWrite.Write(data)
	_ = specWrite.Close()
	text, err := io.ReadAll(errsRead)
	if ctx.Err() != nil {
		<-p.ended
		return nil, context.Cause(ctx)
	}
	if err = errors.Join(err, werr); len(text) == 0 || err != nil {
		_ = p.Kill()
		<-p.ended
		return nil, &Unavailable{Problem: "macOS did not take the profile", Advice: "what it says of it stands above; egressd is written for macOS 13 and newer", Err: err}
	}
	if len(text) > 1 {
		<-p.ended
		var e *execError
		if err := parseExecError(text[1:]); errors.As(err, &e) {
			return nil, &NotStarted{Problem: e.Error(), Code: e.Code}
		} else {
			return nil, err
		}
	}
	return p, nil
}

// words are what starts egressd's own binary under the profile.
func (s *Session) words(word string) []string {
	return []string{sandboxExec, "-f", s.profile, s.self, word}
}

// mark begins the mark of each process of the session.
func (s *Session) mark() string { return "EGRESSD_RUN=" + s.base + "#" }

// attributes are those of a session of its own, by the sandbox's user.
func (s *Session) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(s.user.UID), Gid: uint32(s.user.GID)}
	}
	return attr
}

// follow waits for the process, tells when it stops, and clears away what it
// leaves. It ends with the process.
func (p *Process) follow() {
	for {
		_, err := syscall.Wait4(p.pid, &p.status, unix.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err == nil && p.status.Stopped() {
			if p.s.cfg.Event != nil {
				p.s.cfg.Event(Event{Kind: Stopped, Signal: int(p.status.StopSignal())})
			}
			continue
		}
		break
	}
	sweep(p.mark)
	p.s.mu.Lock()
	delete(p.s.commands, p)
	p.s.mu.Unlock()
	close(p.ended)
}

// Kill ends the command and all that it has started. Ended tells when that is
// done.
func (p *Process) Kill() error {
	select {
	case <-p.ended:
		return nil // its number may be another's
	default:
	}
	_ = unix.Kill(-p.pid, unix.SIGKILL) // its group; what has left that, follow ends
	_ = unix.Kill(p.pid, unix.SIGKILL)
	return nil
}

// Ended is closed when nothing can be run in the session any more: it was
// closed.
func (s *Session) Ended() <-chan struct{} { return s.ended }
