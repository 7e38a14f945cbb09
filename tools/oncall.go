package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// askTime is how long somebody may take to decide a call.
const askTime = 30 * time.Second

// Request is a call that somebody is asked about. As JSON it is what a command
// reads.
type Request struct {
	Tool string `json:"tool"`
	// Arguments are those of the call as they will be used, by their names in
	// the schema.
	Arguments json.RawMessage `json:"arguments"`
	// Cwd is the folder where relative paths start, empty without files.
	Cwd string `json:"cwd,omitempty"`
}

// OnCall decides a call that is granted: nil lets it through, the text of an
// error is what the caller is told, in one line. It has 30 s; not to have
// decided by then is a no.
type OnCall func(ctx context.Context, r Request) error

// ask asks OnCall and gives up on one that does not come back.
func (s *Set) ask(ctx context.Context, name string, in input) error {
	if s.cfg.OnCall == nil {
		return nil
	}
	args, err := json.Marshal(in)
	if err != nil {
		return badCall("the arguments cannot be written as JSON")
	}
	r := Request{Tool: name, Arguments: args}
	if s.cfg.Files != nil {
		r.Cwd = s.cfg.Files.Cwd()
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- s.cfg.OnCall(ctx, r) }()
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	switch {
	case ctx.Err() != nil:
		return &refusal{"approval_timeout", "not granted: tools.on_call did not decide in time"}
	case err == nil:
		return nil
	}
	text := firstLine(err.Error())
	if text == "" {
		text = "not granted by tools.on_call"
	}
	return &refusal{"approval_denied", text}
}

// Hook is a command that decides calls: it reads the call as one line of JSON
// and exits with 0 to let it through.
type Hook struct {
	// Argv is the command, its program by an absolute path: the caller looks it
	// up, and not where a sandbox can write.
	Argv []string
	// Env is its whole environment, Dir where it runs.
	Env []string
	Dir string
}

// Decide is an [OnCall]. Anything but exit 0 is a no, with the first line of
// what the command printed as its text.
func (h Hook) Decide(ctx context.Context, r Request) error {
	if len(h.Argv) == 0 || !filepath.IsAbs(h.Argv[0]) {
		return errors.New("tools.on_call is no command with an absolute path")
	}
	call, err := json.Marshal(r)
	if err != nil {
		return errors.New("the call cannot be written as JSON")
	}
	var out, errs beginning
	c := exec.CommandContext(ctx, h.Argv[0], h.Argv[1:]...)
	c.Env = append([]string{}, h.Env...)
	c.Dir = h.Dir
	c.Stdin = bytes.NewReader(append(call, '\n'))
	c.Stdout, c.Stderr = &out, &errs
	c.WaitDelay = time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	if err := c.Run(); err != nil && (c.ProcessState == nil || !c.ProcessState.Success()) {
		if text := firstLine(string(out)); text != "" {
			return errors.New(text)
		}
		return errors.New(firstLine(string(errs)))
	}
	return nil
}

// beginning keeps the first bytes of what is written, enough for a line.
type beginning []byte

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), 4096-len(*b))]...)
	return len(p), nil
}

// firstLine is the first line that says something, without what would act on a
// terminal.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, "�"))
	if cut := []rune(line); len(cut) > 500 {
		line = string(cut[:500])
	}
	return strings.TrimSpace(line)
}
