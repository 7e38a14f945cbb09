package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/rules"
)

func checkCommand() *cobra.Command {
	var flags policyFlags
	var strict bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "load a policy and say what is wrong or odd with it",
		Long: `Load a policy and say what is wrong or odd with it: a line FILE:LINE:COL: error
KIND: text for each error, then for each warning, then whether its tests hold.

Exit status: 0, or 1 with errors or failed tests; with --strict also with
warnings.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				flags.file = args[0]
			}
			src, err := newSource(flags)
			if err != nil {
				return err
			}
			if src.path == "" {
				return errNoPolicy
			}
			p, problems, err := src.read()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			errs, warnings := problems.Errors(), problems.Warnings()
			if p != nil {
				errs = append(errs, p.Missing...) // run refuses such a policy
			}
			for _, problem := range append(errs, warnings...) {
				fmt.Fprintln(out, problem)
			}
			if p != nil {
				for _, note := range p.Notes {
					fmt.Fprintln(out, note)
				}
			}
			failed := 0
			if p != nil && len(errs) == 0 { // without its includes it says less than is meant
				failed = runTests(p, func(line string) { fmt.Fprintln(out, line) })
			}
			if len(errs) > 0 || failed > 0 || strict && len(warnings) > 0 {
				return exitCode(1)
			}
			for _, c := range p.Credentials {
				fmt.Fprintln(out, "credential "+policy.Sentence(c))
			}
			_, err = fmt.Fprintf(out, "ok: %s, %s\n", count(len(p.Rules), "rule"), count(len(p.Credentials), "credential"))
			return err
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "exit 1 on warnings too")
	return cmd
}

// runTests judges the requests of the policy's tests section and returns how
// many did not get the verdict that stands there.
func runTests(p *policy.Policy, say func(string)) (failed int) {
	set := rules.New(p.Rules)
	for _, t := range p.Tests {
		req, spelled, err := rawRequest(t.Method, t.URL)
		req.At = time.Now()
		d := malformed
		if spelled {
			d = set.Decide(req)
		}
		if (d.Verdict == rules.Allow) != t.Allow || err != nil {
			failed++
			say(fmt.Sprintf("%s: error test: %s %s is %s (%s)", t.Pos, t.Method, t.URL, d.Verdict, d.Reason))
		}
	}
	return failed
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
