package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Words by which the binary knows what it is started as.
const (
	launcherWord = "egressd-launcher"
	probeWord    = "egressd-probe"
	keeperWord   = "egressd-keeper"
)

// Descriptors of the launcher, beside the standard ones.
const (
	launcherSpec   = 3 // an errand as JSON
	launcherErrors = 4 // a byte when it runs, then an execError; closed by a successful exec
)

// The one variable of this package that does something, as on Linux: an actor
// takes over before main.
var _ = takeOver(os.Args)

// takeOver does not return where args, the process's own, say that it was
// started as an actor.
func takeOver(args []string) (no bool) {
	switch {
	case len(args) == 2 && args[1] == launcherWord:
		launcher(os.NewFile(launcherSpec, "spec"), os.NewFile(launcherErrors, "errors"))
	case len(args) == 2 && args[1] == probeWord:
		probe(os.Stdin, os.Stdout)
	case len(args) == 3 && args[1] == keeperWord:
		keep(os.NewFile(keeperLife, "life"), args[2])
	default:
		return false
	}
	syscall.Exit(0)
	return true
}

// errand is what a launcher becomes.
type errand struct {
	Argv, Env []string
	Cwd       string
	Limits    Limits
}

// launcher becomes the program, already under the profile.
func launcher(spec, errs *os.File) {
	_, _ = errs.Write([]byte{'+'}) // the profile was taken: what fails now is ours
	err := becomeProgram(spec)
	var e *execError
	if !errors.As(err, &e) {
		e = &execError{Name: "egressd", Problem: err.Error(), Code: 126}
	}
	text, _ := json.Marshal(e) // plain strings
	_, _ = errs.Write(text)    // without a reader nobody waits for it
}

func becomeProgram(spec *os.File) error {
	data, err := io.ReadAll(spec)
	if err != nil {
		return fmt.Errorf("reading what to start: %w", err)
	}
	var e errand
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("reading what to start: %w", err)
	}
	if len(e.Argv) == 0 {
		return errors.New("starting the program: no name")
	}
	if err := unix.Chdir(e.Cwd); err != nil {
		return &execError{e.Cwd, fmt.Sprintf("entering the working folder: %v", err), 126}
	}
	e.Env = livePath(e.Env)
	path, err := find(e.Argv[0], e.Env)
	if err != nil {
		return err
	}
	if err := closeAtExec(); err != nil {
		return err
	}
	if err := e.Limits.set(); err != nil {
		return err
	}
	return refusal(e.Argv[0], syscall.Exec(path, e.Argv, e.Env))
}

// closeAtExec sees to it that no descriptor but the standard ones goes to a
// program: those that egressd's own parent left open are among them.
func closeAtExec() error {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("closing descriptors: %w", err)
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
