package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/egressd/egressd/tools"
)

// maxInput is how many bytes exec reads.
const maxInput = 32 << 20

func execCommand() *cobra.Command {
	f := runFlags{}
	cmd := &cobra.Command{
		Use:   "exec [flags] [JSON]",
		Short: "run one command in the sandbox, JSON in and JSON out",
		Args:  atMost(1),
		Long: `Run one command in the sandbox that the policy describes, behind the proxy. What
to run is a JSON object, the argument or else standard input:

  {"argv": ["PROGRAM", "ARG"…]}     a program and its arguments, no shell
  {"script": "…"}                   or a text for bash -c
  "cwd": "…"                        where, from the policy's cwd
  "timeout_ms": N                   30000 if left out
  "allow_network": false            without any network

The answer is one line of JSON: {"stdout":"…","stderr":"…","exit_code":N,
"truncated":false,"isolator":"linux_bwrap"}. exit_code is the command's; 124
when its time was up, 127 when it could not be started, 128+n if signal n ended
it, 130 when it was given up. Each stream is cut at 100,000 bytes.

Exit status: 0 when there is an answer, whatever exit_code says; 125 when egressd
itself fails.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			code, err := f.exec(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), args)
			if err != nil {
				return failCode{exitEgressd, err}
			}
			return exitStatus(code)
		},
	}
	f.registerAll(cmd)
	return cmd
}

// exitStatus is the error that carries a status, nil for 0.
func exitStatus(code int) error {
	if code == 0 {
		return nil
	}
	return exitCode(code)
}

func (f *runFlags) exec(ctx context.Context, in io.Reader, out io.Writer, args []string) (int, error) {
	var input []byte
	if len(args) > 0 {
		input = []byte(args[0])
	} else {
		var err error
		if input, err = io.ReadAll(io.LimitReader(in, maxInput+1)); err != nil {
			return 0, fmt.Errorf("reading the command: %w", err)
		}
	}
	if len(input) > maxInput {
		return 0, errors.New("reading the command: it has more than 32 MiB")
	}
	return f.stand(ctx, func(ctx context.Context, s *standing) error {
		// exec is the operator's own tool: no grant of the policy is about it, but
		// who is asked about calls is asked about this one.
		set, done, err := s.toolset(tools.Grants{Allow: []string{"shell"}})
		if err != nil {
			return err
		}
		defer done()
		r, err := set.Call(ctx, "shell", input)
		if err != nil || s.leaks.Load() {
			return err
		}
		if _, err := fmt.Fprintln(out, r.Text); err != nil {
			return fmt.Errorf("writing the answer: %w", err)
		}
		return nil
	})
}
