package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/netns"
)

// recordFlags choose a record and what of it.
type recordFlags struct {
	file, session, since, until string
	filter                      audit.Filter
	kind                        string
	asJSON                      bool
}

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "read the record", Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(auditList(), auditTail(), auditVerify())
	return cmd
}

func (f *recordFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.file, "audit", "", "read this `FILE` and what rotation put beside it (default: the sessions of the state folder)")
	flags.StringVar(&f.session, "session", "", "only the session whose `ID` begins so")
	flags.StringVar(&f.filter.Host, "host", "", "only this `HOST`; *.NAME for NAME and all below it")
	flags.StringVar(&f.filter.Verdict, "verdict", "", "only this `VERDICT`: allow, deny or error")
	flags.StringVar(&f.filter.Reason, "reason", "", "only this `REASON`")
	flags.StringVar(&f.kind, "kind", "", "only this `KIND` of record, such as request")
	flags.StringVar(&f.since, "since", "", "only from this `TIME` on: RFC 3339, or a duration back from now")
	flags.StringVar(&f.until, "until", "", "only before this `TIME`")
	flags.BoolVar(&f.asJSON, "json", false, "print the lines as they stand in the record")
}

// finish checks the flags and the argument.
func (f *recordFlags) finish(args []string) error {
	if len(args) == 1 {
		if f.file != "" {
			return errors.New("name the record once: as an argument or with --audit")
		}
		f.file = args[0]
	}
	f.filter.Session, f.filter.Kind = f.session, audit.Kind(f.kind)
	if f.kind != "" && !slices.Contains(audit.Kinds(), f.filter.Kind) {
		return usageError{fmt.Errorf("--kind %q is no kind of record: %s", f.kind, join(audit.Kinds()))}
	}
	if verdicts := []string{"allow", "deny", "error"}; f.filter.Verdict != "" && !slices.Contains(verdicts, f.filter.Verdict) {
		return usageError{fmt.Errorf("--verdict %q is no verdict: %s", f.filter.Verdict, join(verdicts))}
	}
	if reasons := slices.Concat(audit.Reasons(), sessionReasons); f.filter.Reason != "" && !slices.Contains(reasons, f.filter.Reason) {
		return usageError{fmt.Errorf("--reason %q is no reason: %s", f.filter.Reason, join(reasons))}
	}
	var err error
	if f.filter.Since, err = parseWhen(f.since); err != nil {
		return err
	}
	f.filter.Until, err = parseWhen(f.until)
	return err
}

// sessionReasons are the words of session_start, session_end and limit.
var sessionReasons = []string{"unfiltered", "exit", "signal", "failed", "leak", "limit",
	netns.LimitMemory, netns.LimitProcesses, netns.LimitCPUSeconds}

func join[S ~string](list []S) string {
	var words []string
	for _, s := range list {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

func parseWhen(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither an RFC 3339 time nor a duration such as 15m or 24h", s)
	}
	return t, nil
}

// chains are the records that the flags mean, oldest first.
func (f *recordFlags) chains() ([]audit.Chain, error) {
	if f.file != "" {
		c, err := audit.FileChain(f.file)
		return []audit.Chain{c}, err
	}
	d, err := findDirs()
	if err != nil {
		return nil, err
	}
	if f.session != "" {
		s, err := audit.Find(d.state, f.session)
		return []audit.Chain{s.Chain}, err
	}
	all, err := audit.Sessions(d.state)
	if err != nil {
		return nil, err
	}
	var chains []audit.Chain
	for _, s := range all {
		chains = append(chains, s.Chain)
	}
	if len(chains) == 0 {
		fmt.Fprintf(os.Stderr, "egressd: there is no record yet: egressd run and egressd serve write theirs to %s\n", d.audit())
	}
	return chains, nil
}

func auditList() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use: "list [FILE]", Short: "print the record, one line each", Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			if err := f.finish(args); err != nil {
				return err
			}
			chains, err := f.chains()
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), audit.List(ctx, chains, f.filter))
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&f.filter.Limit, "limit", 0, "only the last so many")
	return cmd
}

func auditTail() *cobra.Command {
	var f recordFlags
	var follow bool
	cmd := &cobra.Command{
		Use: "tail [FILE]", Short: "print the end of the newest record, and what comes", Args: atMost(1),
		Long: `Print the end of the newest session's record. With -f what is added to it comes
after it, and every line of the sessions that start later, until Ctrl-C; with a
file or --session only what is added there.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			if err := f.finish(args); err != nil {
				return err
			}
			if follow && f.file == "" && f.session == "" {
				d, err := findDirs()
				if err != nil {
					return err
				}
				return f.print(cmd.OutOrStdout(), audit.Follow(ctx, d.state, f.filter))
			}
			chains, err := f.chains()
			if err != nil {
				return err
			}
			if len(chains) == 0 {
				return exitCode(1) // it has been said
			}
			newest := chains[len(chains)-1]
			if !follow {
				return f.print(cmd.OutOrStdout(), audit.List(ctx, []audit.Chain{newest}, f.filter))
			}
			return f.print(cmd.OutOrStdout(), audit.Tail(ctx, newest, f.filter, false))
		},
	}
	f.register(cmd)
	cmd.Flags().IntVarP(&f.filter.Limit, "lines", "n", 10, "begin with the last so many")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added, until Ctrl-C")
	return cmd
}

// print shows lines as they are or for a person. A line that cannot be read is
// told of on stderr, and reading goes on.
func (f *recordFlags) print(out io.Writer, lines iter.Seq2[audit.Line, error]) error {
	colour := false
	if file, ok := out.(*os.File); ok {
		colour = term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
	}
	var buf []byte
	var bad error
	for line, err := range lines {
		var broken *audit.LineError
		switch {
		case errors.As(err, &broken):
			fmt.Fprintf(os.Stderr, "egressd: %v\n", err)
			bad = errors.New("some lines of the record could not be read; see egressd audit verify")
			continue
		case errors.Is(err, context.Canceled):
			return bad
		case err != nil:
			return err
		}
		if f.asJSON {
			buf = append(append(buf[:0], line.Raw...), '\n')
		} else {
			buf = append(audit.AppendConsole(buf[:0], &line.Record, colour), '\n')
		}
		if _, err := out.Write(buf); err != nil {
			return fmt.Errorf("printing the record: %w", err)
		}
	}
	return bad
}

func auditVerify() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use: "verify [FILE]", Short: "check that no line of the record was changed, taken out or moved", Args: atMost(1),
		Long: `Check that no line of the record was changed, taken out or moved, and say where
one was. Sessions without an end are named: open where they run, cut where they
were killed. Exit status: 0, or 1 where something is wrong.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			if err := f.finish(args); err != nil {
				return err
			}
			chains, err := f.chains()
			if err != nil {
				return err
			}
			return verifyAll(ctx, cmd.OutOrStdout(), chains, f.asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "audit", "", "check this `FILE` and what rotation put beside it (default: the sessions of the state folder)")
	flags.StringVar(&f.session, "session", "", "only the session whose `ID` begins so")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object for each chain")
	return cmd
}

func verifyAll(ctx context.Context, out io.Writer, chains []audit.Chain, asJSON bool) error {
	ok := true
	for _, c := range chains {
		report, err := audit.Verify(ctx, c)
		if err != nil {
			return err
		}
		ok = ok && report.OK()
		if asJSON {
			err = json.NewEncoder(out).Encode(report)
		} else {
			err = printReport(out, c, report)
		}
		if err != nil {
			return fmt.Errorf("printing the report: %w", err)
		}
	}
	if !ok {
		return exitCode(1)
	}
	return nil
}

func printReport(out io.Writer, c audit.Chain, r audit.Report) error {
	for _, f := range r.Faults {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	for _, s := range r.Sessions {
		if s.State != audit.StateEnded {
			if _, err := fmt.Fprintf(out, "%s: session %s is %s: it has no end\n", c.Path, s.ID, s.State); err != nil {
				return err
			}
		}
	}
	verdict := "ok"
	if !r.OK() {
		verdict = "NOT ok: " + count(len(r.Faults), "fault")
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s of %s\n", c.Path, verdict, count(int(r.Lines), "line"), count(len(r.Sessions), "session"))
	return err
}
