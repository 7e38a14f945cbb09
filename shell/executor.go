package shell

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"
)

// DefaultTimeout is how long a command may take that does not say.
const DefaultTimeout = 30 * time.Second

// MaxOutput is how many bytes are kept of each of a command's two streams.
const MaxOutput = 100_000

// The exit codes that are not the command's own. A signal n is 128+n.
const (
	ExitTimeout   = 124
	ExitNoStart   = 127
	ExitCancelled = 130
)

// ErrDisposed is what Start and Exec fail with after Dispose.
var ErrDisposed = errors.New("the executor is disposed of")

// Executor is a place where commands run.
type Executor interface {
	// Start makes the place ready. It is called once, before the first Exec.
	Start(ctx context.Context) error
	// Exec runs a command to its end and is safe for concurrent calls. The end
	// of ctx ends the command, with ExitTimeout where ctx ran out of time and
	// ExitCancelled where it was cancelled, and no error.
	Exec(ctx context.Context, cmd Command) (Result, error)
	// Dispose gives back what Start took. It may be called more than once,
	// without a Start, and after one that failed.
	Dispose(ctx context.Context) error
}

// Command is what is to be run: a list or a script.
type Command struct {
	// Argv is the program and its arguments. No shell sees it.
	Argv []string
	// Script is run by bash -c.
	Script string
	// Cwd is where it runs, from the folder of the executor; empty is there.
	Cwd string
	// Timeout is how long it may take, DefaultTimeout if 0.
	Timeout time.Duration
	// AllowNetwork asks for a network or for none; nil is what the policy says.
	// An executor that cannot do as asked fails.
	AllowNetwork *bool
}

// Check says what is wrong with a command before anything is started for it.
func (c Command) Check() error {
	switch {
	case len(c.Argv) > 0 && c.Script != "":
		return errors.New("a command has argv or script, not both")
	case len(c.Argv) == 0 && c.Script == "":
		return errors.New("a command needs argv or script")
	case len(c.Argv) > 0 && c.Argv[0] == "":
		return errors.New("argv names no program")
	case c.Timeout < 0:
		return errors.New("a command cannot end before it begins: its timeout is negative")
	}
	return nil
}

// Result is what became of a command.
type Result struct {
	// Stdout and Stderr are the first MaxOutput bytes of each, not cut within a
	// character of UTF-8.
	Stdout, Stderr []byte
	// StdoutCut and StderrCut say that there was more.
	StdoutCut, StderrCut bool
	// ExitCode is as the package says.
	ExitCode int
	// Isolator is what kept the command in: linux_bwrap, firejail, none.
	Isolator string
}

// Truncated says that some output was cut.
func (r Result) Truncated() bool { return r.StdoutCut || r.StderrCut }

// bound holds a result of whatever executor to MaxOutput.
func (r Result) bound() Result {
	var cut bool
	if r.Stdout, cut = head(r.Stdout); cut {
		r.StdoutCut = true
	}
	if r.Stderr, cut = head(r.Stderr); cut {
		r.StderrCut = true
	}
	return r
}

func head(b []byte) ([]byte, bool) {
	if len(b) <= MaxOutput {
		return b, false
	}
	return Whole(b[:MaxOutput]), true
}

// Whole takes the beginning of a character of UTF-8 off the end of b, where
// there is only that of it.
func Whole(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if last := b[len(b)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// Ended is the exit code of a command whose context is over.
func Ended(ctx context.Context) int {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ExitTimeout
	}
	return ExitCancelled
}
