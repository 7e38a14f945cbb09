package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/shell"
)

// longest is the longest time that a call of shell may ask for.
const longest = 24 * time.Hour

// shellInput is the arguments of shell, and the input of egressd exec.
type shellInput struct {
	Argv         []string `json:"argv,omitempty"`
	Script       string   `json:"script,omitempty"`
	Cwd          string   `json:"cwd,omitempty"`
	TimeoutMS    int64    `json:"timeout_ms,omitempty"`
	AllowNetwork *bool    `json:"allow_network,omitempty"`
}

func (in *shellInput) field(name string) any {
	switch name {
	case "argv":
		return &in.Argv
	case "script":
		return &in.Script
	case "cwd":
		return &in.Cwd
	case "timeout_ms":
		return &in.TimeoutMS
	case "allow_network":
		return &in.AllowNetwork
	}
	return nil
}

func (in *shellInput) required() []string { return nil }

// Answer is what became of a command. As JSON it is what egressd exec answers.
type Answer struct {
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exit_code"`
	Truncated bool   `json:"truncated"`
	// Isolator is what kept the command in.
	Isolator string `json:"isolator"`
}

func (in *shellInput) command() shell.Command {
	return shell.Command{Argv: in.Argv, Script: in.Script, Cwd: in.Cwd,
		Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, AllowNetwork: in.AllowNetwork}
}

func (in *shellInput) check(s *Set) error {
	if in.TimeoutMS < 0 || in.TimeoutMS > longest.Milliseconds() {
		return badCall(fmt.Sprintf("timeout_ms is between 1 and %d", longest.Milliseconds()))
	}
	if err := in.command().Check(); err != nil {
		return badCall(err.Error())
	}
	for _, text := range append(slices.Clone(in.Argv), in.Script, in.Cwd) {
		if strings.ContainsRune(text, 0) {
			return badCall("a command cannot hold a NUL")
		}
	}
	if in.AllowNetwork != nil && *in.AllowNetwork && !s.cfg.ChooseNetwork {
		return &refusal{"not_granted", "not granted: the policy does not let a call say allow_network: true"}
	}
	return nil
}

// record writes down what would run, and allow_network, where it was said,
// beside the isolator, where no command can forge it.
func (in *shellInput) record(s *Set, r *audit.Record) {
	r.Argv = in.Argv
	if len(in.Argv) == 0 {
		r.Argv = []string{"bash", "-c", in.Script}
	}
	r.Isolator = in.isolator(s.cfg.Isolator)
}

func (in *shellInput) isolator(name string) string {
	if in.AllowNetwork == nil {
		return name
	}
	return strings.TrimSpace(fmt.Sprintf("%s allow_network=%v", name, *in.AllowNetwork))
}

func (in *shellInput) run(ctx context.Context, s *Set, r *audit.Record) (Result, error) {
	done, err := s.cfg.Shell.Exec(ctx, in.command())
	if err == nil {
		r.Isolator = in.isolator(done.Isolator)
	} else {
		r.Verdict, r.Reason = "error", "internal"
		return Result{}, fmt.Errorf("running a command: %w", err)
	}
	r.ExitCode = &done.ExitCode
	a := &Answer{
		Stdout:    strings.ToValidUTF8(string(done.Stdout), "�"),
		Stderr:    strings.ToValidUTF8(string(done.Stderr), "�"),
		ExitCode:  done.ExitCode,
		Truncated: done.Truncated(),
		Isolator:  done.Isolator,
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		return Result{}, fmt.Errorf("writing the answer: %w", err)
	}
	return Result{Text: strings.TrimSuffix(text.String(), "\n"), Truncated: a.Truncated, Command: a}, nil
}
