//go:build linux

package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors of the second stage.
const (
	programSpec   = 3 // a parcel of program
	programErrors = 4 // where an execError goes; closed by a successful exec
)

// program is what is started.
type program struct {
	Argv, Env []string
	Cwd       string
	Limits    Limits
	Reap      bool // it is handed its orphaned descendants
}

// attributes are those of a process group of its own, in the foreground of the
// terminal if there is one.
func attributes(env []string, files []*os.File, slave *os.File) *syscall.ProcAttr {
	attr := &syscall.ProcAttr{Env: env, Sys: &syscall.SysProcAttr{Setpgid: true}}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if slave != nil {
		attr.Sys.Foreground, attr.Sys.Ctty = true, int(slave.Fd())
	}
	return attr
}

// becomeProgram is the second stage: it sets the limits, which count in this
// user namespace alone, and becomes the program.
func becomeProgram(spec, errs *os.File) {
	fail(errs, execProgram(spec))
}

// fail tells the launcher why there is no program.
func fail(errs *os.File, err error) {
	var e *execError
	if !errors.As(err, &e) {
		e = &execError{Name: "egressd", Problem: err.Error(), Code: 126}
	}
	text, _ := json.Marshal(e) // plain strings
	_, _ = errs.Write(text)    // without a reader nobody waits for it
}

func execProgram(spec *os.File) error {
	var p program
	if _, err := unparcel(spec, &p); err != nil {
		return err
	}
	path, err := p.prepare()
	if err != nil {
		return err
	}
	if p.Reap {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("becoming a reaper: %w", err)
		}
	}
	if err := p.Limits.set(); err != nil {
		return err
	}
	// Nothing that could need a new thread may run from here on.
	err = syscall.Exec(path, p.Argv, p.Env)
	return refusal(p.Argv[0], err)
}

// prepare enters the working folder, finds the program's file, and sees to it
// that no descriptor but the standard ones outlives an exec.
func (p *program) prepare() (path string, err error) {
	if len(p.Argv) == 0 {
		return "", errors.New("starting the program: no name")
	}
	if err := unix.Chdir(p.Cwd); err != nil {
		return "", &execError{p.Cwd, fmt.Sprintf("entering the working folder: %v", err), 126}
	}
	p.Env = livePath(p.Env)
	if path, err = find(p.Argv[0], p.Env); err != nil {
		return "", err
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return "", fmt.Errorf("closing descriptors: %w", err)
	}
	return path, nil
}

// environment is the program's: what was given, and who and where it is
// inside.
func (s *Session) environment() []string {
	env := s.cfg.Env
	if s.cfg.EnvLate != nil {
		env = override(env, s.cfg.EnvLate())
	}
	if s.explicit {
		env = override(env, s.cfg.EnvExplicit)
	}
	return override(env, []string{"HOME=" + s.plan.Home, "TMPDIR=" + s.plan.Temp, "USER=" + s.id.inside.Name, "LOGNAME=" + s.id.inside.Name})
}
