package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// withoutEffect are the keys of the policy that do nothing without a sandbox:
// they are named where one might think that they hold.
func (r *runner) withoutEffect() []string {
	s := r.policy.Sandbox
	var keys []string
	for _, k := range []struct {
		key string
		set bool
	}{
		{"read_paths", len(s.ReadPaths) > 0}, {"write_paths", len(s.WritePaths) > 0}, {"write_files", len(s.WriteFiles) > 0},
		{"mask_paths", len(s.MaskPaths) > 0}, {"env_passthrough", len(s.EnvPassthrough) > 0}, {"home", s.Home != ""},
		{"limits", s.Limits.Memory > 0 || s.Limits.Processes > 0 || s.Limits.OpenFiles > 0 || s.Limits.CPUSeconds > 0},
		{"start_in_scratch", r.policy.StartInScratch}, {"--publish", len(r.published) > 0},
	} {
		if k.set {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// runBare runs the program as its caller would: with the whole environment, the
// streams themselves, and in egressd's process group, so that a terminal's
// signals reach it by themselves.
func (r *runner) runBare(ctx context.Context) (int, error) {
	if keys := r.withoutEffect(); len(keys) > 0 {
		fmt.Fprintf(os.Stderr, "egressd: without a sandbox these do nothing: %s\n", strings.Join(keys, ", "))
	}
	env := withVariables(os.Environ(), terminalVariables(r.policy.Terminal))
	dir := cmp.Or(r.fork, r.cwd)
	path, code, err := bareProgram(r.argv[0], dir, env)
	if err != nil {
		r.problem = fmt.Sprintf("%s: %v", r.argv[0], err)
		return code, nil
	}
	cmd := &exec.Cmd{Path: path, Args: r.argv, Env: env, Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: bareAttributes()}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	// What ends the program with egressd is bound to the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	awake, err := r.stayAwake()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		awake()
		r.problem = fmt.Sprintf("%s: %v", r.argv[0], errors.Unwrap(err))
		return 126, nil
	}
	r.flags.started()
	ended := make(chan struct{})
	overdue := make(chan bool, 1)
	go func() { overdue <- r.superviseBare(ctx, cmd.Process, signals, ended) }()
	err = cmd.Wait()
	close(ended)
	awake()
	switch late := <-overdue; {
	case late:
		return r.overdue()
	case cmd.ProcessState == nil:
		return 0, fmt.Errorf("waiting for the program: %w", err)
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// superviseBare passes signals on and ends the program when its time is up,
// which it reports.
func (r *runner) superviseBare(ctx context.Context, p *os.Process, signals <-chan os.Signal, ended <-chan struct{}) bool {
	var up <-chan time.Time
	if t := r.policy.Sandbox.Timeout; t > 0 {
		up = time.After(t)
	}
	late := false
	for {
		select {
		case <-ended:
			return late
		case <-ctx.Done():
			_ = p.Kill() // it has ended already
			ctx = context.WithoutCancel(ctx)
		case <-up:
			if late {
				_ = p.Kill() // it has ended already
				continue
			}
			late, up = true, time.After(timeoutGrace)
			_ = p.Signal(syscall.SIGTERM)
			_ = p.Signal(syscall.SIGCONT) // one that is stopped hears of it only then
		case s := <-signals:
			if fromTerminal := s == syscall.SIGINT || s == syscall.SIGQUIT; !fromTerminal || !inForeground() {
				_ = p.Signal(s) // it has ended already
			}
		}
	}
}

// inForeground says that the terminal's own signals reach the program too,
// which is in egressd's process group.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// bareProgram finds a program as a shell does, with the status of one that is
// not there (127) or cannot be executed (126).
func bareProgram(name, cwd string, env []string) (path string, code int, err error) {
	if strings.Contains(name, "/") {
		path = name
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		code, err = executableFile(path)
		return path, code, err
	}
	search := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	code, err = 127, errors.New("not found")
	for _, dir := range filepath.SplitList(search) {
		if !filepath.IsAbs(dir) || name == "" {
			continue
		}
		at := filepath.Join(dir, name)
		c, e := executableFile(at)
		if e == nil {
			return at, 0, nil
		}
		if c == 126 && code == 127 {
			code, err = c, e
		}
	}
	return "", code, err
}

func executableFile(path string) (int, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 127, errors.New("not found")
	case err != nil:
		return 126, err
	case info.IsDir():
		return 126, errors.New("a folder is no program")
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return 126, err
	}
	return 0, nil
}
