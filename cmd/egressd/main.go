// Command egressd runs a program that is not trusted in a sandbox whose every
// connection ends in egressd: judged by rules that deny by default, forwarded,
// and recorded.
//
//	egressd run -- curl https://api.example.com/
//
// `egressd help` lists the commands; README.md shows them at work.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/egressd/egressd/credbroker"
)

func main() {
	// The proxy's heap is small: to collect it at twice what lives would be a quarter
	// of its work, at five times would leave half as much again in each idle tunnel.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	os.Exit(mainCode(os.Args[1:]))
}

// exitCode is an error that only carries a status: what there was to say has
// been said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// failCode is the status of a command that could not do its work: 125 for
// run, whose other statuses are the program's, else 1.
type failCode struct {
	code int
	err  error
}

func (e failCode) Error() string { return e.err.Error() }
func (e failCode) Unwrap() error { return e.err }

// usageError is a command line that means nothing.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

// usageCode is the status of a command that was called wrongly. Statuses of
// run and explain that say something else are kept apart from it.
func usageCode(cmd *cobra.Command) int {
	switch cmd.Name() {
	case "run", "exec", "mcp":
		return exitEgressd
	case "explain":
		return 2
	}
	return 1
}

// atMost is the check of a command that takes so many arguments or fewer.
func atMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return usageError{fmt.Errorf("%q is one argument too many", args[n])}
		}
		return nil
	}
}

func mainCode(args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	var code exitCode
	var fail failCode
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		complain(fmt.Errorf("%w; see %s --help", usage.err, cmd.CommandPath()))
		return usageCode(cmd)
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &fail):
		complain(fail.err)
		return fail.code
	}
	complain(err)
	return 1
}

// complain prints an error, with its name where scripts look for one, and
// what to do about it.
func complain(err error) {
	text := err.Error()
	var start *credbroker.StartError
	if errors.As(err, &start) {
		text = start.Explain()
	}
	var named interface{ Reason() string }
	if errors.As(err, &named) && named.Reason() == "no_sandbox_available" {
		text = named.Reason() + ": " + text
	}
	if errors.Is(err, syscall.EADDRINUSE) && !strings.Contains(text, "--") {
		text += ": name another port of the host, --publish PORT:HOSTPORT"
	}
	var advised interface{ Hint() string }
	if errors.As(err, &advised) && advised.Hint() != "" {
		text += ": " + advised.Hint()
	}
	fmt.Fprintf(os.Stderr, "egressd: %s\n", plainText(text))
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "egressd",
		Short:         "run programs you do not trust, with every connection judged and recorded",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// In `egressd ls -l` the flag is not what is wrong.
		if args := cmd.Flags().Args(); cmd == root && len(args) > 0 {
			return noCommand(cmd, args)
		}
		return usageError{err}
	})
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version")
	root.AddCommand(
		runCommand(), execCommand(), mcpCommand(), serveCommand(), checkCommand(), explainCommand(), trustCommand(),
		reloadCommand(), caCommand(), doctorCommand(), auditCommand(), versionCommand(), demoOrigin(),
	)
	root.AddCommand(forPackagers()...)
	return root
}

// noCommand is the check of a command that only groups others.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no command %q", args[0])
	// Of a short word nearly every command is two letters away.
	cmd.SuggestionsMinimumDistance = 2
	if len(args[0]) <= 4 {
		cmd.SuggestionsMinimumDistance = 1
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
	} else if !cmd.HasParent() {
		text += fmt.Sprintf(" (a program runs in the sandbox by egressd run -- %s)", args[0])
	}
	return usageError{errors.New(text)}
}

// interruptible is the context of a command that ends on Ctrl-C or SIGTERM.
// run is none: there the signals are the program's.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
}

// verbosity is what -q and -v ask for.
type verbosity struct{ quiet, verbose bool }

func (v verbosity) logger() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case v.quiet:
		level = slog.LevelError
	case v.verbose:
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
