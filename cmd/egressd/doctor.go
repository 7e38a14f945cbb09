package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
)

// doctorTime bounds all of doctor; each tool has a limit of its own.
const doctorTime = 2 * time.Minute

// How a finding is: as it should be, worth a look, or a policy that could not
// be enforced.
const (
	isOK   = "ok"
	isWarn = "warn"
	isFail = "fail"
)

// finding is one thing that doctor looked at.
type finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"` // ok, warn, fail
	OK     bool   `json:"ok"`    // not fail
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what to do next
}

// good, odd and bad are findings of the three levels.
func good(check, found string) finding {
	return finding{Check: check, Level: isOK, OK: true, Found: found}
}

func odd(check, found, advice string) finding {
	return finding{Check: check, Level: isWarn, OK: true, Found: found, Advice: advice}
}

// bad takes its advice from the error where it has some.
func bad(check string, err error, advice string) finding {
	if h, ok := err.(interface{ Hint() string }); ok && advice == "" {
		advice = h.Hint()
	}
	return finding{Check: check, Level: isFail, Found: err.Error(), Advice: advice}
}

func doctorCommand() *cobra.Command {
	var asJSON bool
	var flags policyFlags
	cmd := &cobra.Command{
		Use: "doctor", Short: "try what a sandbox needs on this host, and say what is missing", Args: atMost(0),
		Long: `Try what a sandbox needs on this host: the policy in force here, the isolation
program, namespaces, how traffic is captured, the filter of system calls, limits,
names, the certificate authority, how secrets are kept, and each tool that is
installed. It makes real sandboxes and looks from inside; a tool makes a request
to an origin on loopback, through the proxy. Nothing leaves this machine but one
question for the address of example.com.

Exit status: 0, or 1 when a policy could not be enforced.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorTime)
			defer cancel()
			src, err := newSource(flags)
			if err != nil {
				return err
			}
			findings := examine(ctx, src)
			if err := report(cmd.OutOrStdout(), findings, asJSON); err != nil {
				return fmt.Errorf("printing the findings: %w", err)
			}
			for _, f := range findings {
				if !f.OK {
					return exitCode(1)
				}
			}
			return nil
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func report(out io.Writer, findings []finding, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(findings)
	}
	for _, f := range findings {
		mark := map[string]string{isOK: "ok  ", isWarn: "warn", isFail: "FAIL"}[f.Level]
		if _, err := fmt.Fprintf(out, "%s  %-11s %s\n", mark, f.Check, indented(f.Found)); err != nil {
			return err
		}
		if f.Advice != "" {
			if _, err := fmt.Fprintf(out, "                  %s\n", indented(f.Advice)); err != nil {
				return err
			}
		}
	}
	return nil
}

// indented keeps further lines of a text below its first.
func indented(text string) string {
	return strings.ReplaceAll(plainText(text), "\n", "\n                  ")
}

// examination is what doctor has learned while it looks.
type examination struct {
	src      *source
	policy   *policy.Policy // in force here; one without rules where none loads
	cwd      string
	grants   []mount.Grant
	isolator isolator
	findings []finding
}

func (e *examination) add(f ...finding) { e.findings = append(e.findings, f...) }

// examine runs the checks, each for real. What can be done meanwhile is done
// meanwhile.
func examine(ctx context.Context, src *source) []finding {
	e := &examination{src: src}
	e.thePolicy()
	var names, tools []finding
	var wg sync.WaitGroup
	wg.Go(func() { names = []finding{examineNames(ctx, e.policy)} })
	if e.isolation(ctx) {
		if e.sandbox(ctx) {
			wg.Go(func() { tools = examineTools(ctx, src.dirs, e.cwd, e.grants) })
		}
	}
	e.add(examineAppArmor(e.findings, word))
	e.add(examineGroups(e.isolator, e.grants))
	e.add(examineSockets(e.cwd, e.grants))
	wg.Wait()
	e.add(names...)
	e.add(examineCA(), examineSecrets(), examineKeyring(ctx, e.policy))
	e.add(tools...)
	return e.findings
}
