package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Local runs commands on the host, as the user of this process, and keeps them
// from nothing. It is for tests, and for who has another sandbox around it all.
type Local struct {
	// Cwd is the folder where commands run, absolute.
	Cwd string
	// Env is where variables are taken from, commonly os.Environ(). A command
	// gets HOME LANG LC_ALL LOGNAME PATH SHELL TEMP TERM TMP TMPDIR USER of it
	// and nothing else.
	Env []string
	// Warn is told, before every command, that this is no sandbox. It must be
	// set.
	Warn func(text string)
}

// passed are the variables that commands get.
var passed = []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "USER"}

// secretWords are parts of the names of variables that hold credentials.
var secretWords = []string{"AUTH", "CRED", "KEY", "PASS", "PWD", "SECRET", "TOKEN"}

// Start refuses a Local that could not warn.
func (l *Local) Start(context.Context) error {
	if l.Warn == nil || !filepath.IsAbs(l.Cwd) {
		return errors.New("a local shell needs an absolute cwd, and somebody to warn that it is no sandbox")
	}
	return nil
}

// Dispose has nothing to give back: every command's processes end with it.
func (l *Local) Dispose(context.Context) error { return nil }

// Exec runs a command in a process group of its own, which is killed whole when
// the command ends, for whatever reason. What left the group lives on.
func (l *Local) Exec(ctx context.Context, cmd Command) (Result, error) {
	if err := errors.Join(cmd.Check(), l.Start(ctx)); err != nil {
		return Result{}, err
	}
	if cmd.AllowNetwork != nil && !*cmd.AllowNetwork {
		return Result{}, errors.New("a local shell cannot take the network away")
	}
	if cmd.Timeout == 0 {
		cmd.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	l.Warn("NO SANDBOX: a command runs on the host with all that this user can do")
	out, errs := &Output{}, &Output{}
	code, err := l.run(ctx, cmd, out, errs)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "egressd: %v\n", err)
	}
	r := Result{ExitCode: code, Isolator: "none"}
	r.Stdout, r.StdoutCut = out.Text()
	r.Stderr, r.StderrCut = errs.Text()
	return r, nil
}

// run runs the command and answers its exit code, with an error where it was
// not started.
func (l *Local) run(ctx context.Context, cmd Command, out, errs *Output) (int, error) {
	if ctx.Err() != nil {
		return Ended(ctx), nil
	}
	argv := cmd.Argv
	if cmd.Script != "" {
		argv = []string{"bash", "-c", cmd.Script}
	}
	env := environment(l.Env)
	path, err := find(argv[0], env)
	if err != nil {
		return ExitNoStart, fmt.Errorf("starting %q: %w", argv[0], err)
	}
	c := exec.Cmd{Path: path, Args: argv, Env: env, Dir: l.Cwd, Stdout: out, Stderr: errs,
		WaitDelay:   time.Second, // for a pipe that a process outside the group holds
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	if filepath.IsAbs(cmd.Cwd) {
		c.Dir = cmd.Cwd
	} else if cmd.Cwd != "" {
		c.Dir = filepath.Join(l.Cwd, cmd.Cwd)
	}
	if err := c.Start(); err != nil {
		return ExitNoStart, fmt.Errorf("starting %q: %w", argv[0], err)
	}
	group := c.Process.Pid
	over := make(chan struct{})
	go func() { awaitExit(group); close(over) }()
	late := false
	select {
	case <-over:
	case <-ctx.Done():
		late = true
	}
	// The first process is not reaped yet, so the number is still the group's.
	_ = syscall.Kill(-group, syscall.SIGKILL)
	<-over
	_ = c.Wait()
	if late {
		return Ended(ctx), nil
	}
	if s, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal()), nil
	}
	return c.ProcessState.ExitCode(), nil
}

// environment is what a command gets of env.
func environment(env []string) []string {
	out := []string{} // not nil, which would be everything
	for _, v := range env {
		name, _, ok := strings.Cut(v, "=")
		if ok && slices.Contains(passed, name) && !secretName(name) && !strings.ContainsRune(v, 0) {
			out = append(out, v)
		}
	}
	return out
}

func secretName(name string) bool {
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(strings.ToUpper(name), w) })
}

// find looks a program up in the PATH that it will have, by absolute folders
// only.
func find(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, v := range slices.Backward(env) { // the last one counts
		path, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			full := filepath.Join(dir, name)
			if info, err := os.Stat(full); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return full, nil
			}
		}
		break
	}
	return "", fs.ErrNotExist
}
