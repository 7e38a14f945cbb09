package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
)

// finding is one thing that doctor looked at.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"`
}

func doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "try what a sandbox needs on this host, and say what is missing", Args: atMost(0),
		Long: `Try what a sandbox needs on this host: the isolation program, namespaces, how
traffic is captured, the certificate authority, and how secrets are kept. It
makes a real sandbox and looks from inside. Exit status: 0, or 1 when a policy could not be enforced.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
			defer cancel()
			findings := examine(ctx)
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func report(out io.Writer, findings []finding, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(findings)
	}
	for _, f := range findings {
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
		}
		if _, err := fmt.Fprintf(out, "%s  %-11s %s\n", mark, f.Check, f.Found); err != nil {
			return err
		}
		if f.Advice != "" {
			if _, err := fmt.Fprintf(out, "                  %s\n", f.Advice); err != nil {
				return err
			}
		}
	}
	return nil
}

// examine runs the checks, each for real.
func examine(ctx context.Context) []finding {
	var all []finding
	add := func(check string, err error, found, advice string) {
		f := finding{Check: check, OK: err == nil, Found: found, Advice: advice}
		if err != nil {
			f.Found = err.Error()
			if h, ok := err.(interface{ Hint() string }); ok && advice == "" {
				f.Advice = h.Hint()
			}
		}
		all = append(all, f)
	}
	avoid := []string{} // as run does: a bwrap that lies here may have come with a repository
	if cwd, err := os.Getwd(); err == nil && !mount.InBase(cwd) {
		avoid = append(avoid, cwd)
	}
	bwrap, err := netns.FindBwrap(os.Getenv("PATH"), avoid)
	version := ""
	if err == nil {
		version, err = netns.BwrapVersion(ctx, bwrap)
	}
	add("isolation", err, bwrap+" "+version, "")
	if err != nil {
		return all
	}
	box, err := trial(ctx)
	if err != nil {
		add("namespaces", err, "", namespaceAdvice())
		return all
	}
	defer box.Close() // the trial is over whatever it says
	who := fmt.Sprintf("programs run as uid %d of this host", box.HostUID())
	add("namespaces", nil, who, "")
	switch {
	case box.Transparent():
		add("capture", nil, "transparent: clients that ignore proxies are caught too", "")
	default:
		add("capture", nil, "explicit only: clients must honour the proxy variables, others find no network", namespaceAdvice())
	}
	for _, note := range box.Notes() {
		add("note", nil, note, "")
	}
	failures, err := box.Check(ctx, netns.Check{Kind: netns.CheckReadOnly, Path: "/usr"},
		netns.Check{Kind: netns.CheckAbsent, Path: "/etc/shadow"}, netns.Check{Kind: netns.CheckDevices}, netns.Check{Kind: netns.CheckRoutes})
	if err == nil && len(failures) > 0 {
		err = fmt.Errorf("%s", strings.Join(failures, "; "))
	}
	add("inside", err, "/usr takes no write, /etc is made new, no network but lo", "")
	return append(all, examineCA(), examineSecrets())
}

// trial makes a sandbox like run's, for a program that is never started.
func trial(ctx context.Context) (*netns.Session, error) {
	d, err := findDirs()
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working folder: %w", err)
	}
	c := netns.Config{Argv: []string{"true"}, Cwd: cwd, Grants: []mount.Grant{{Path: cwd}}, Home: d.home,
		Network: netns.Captured, Path: os.Getenv("PATH")}
	if d.uid != os.Getuid() {
		c.Invoker = netns.Invoker{SudoUID: d.uid, SudoGID: d.gid}
	}
	for _, end := range []**os.File{&c.Streams.Stdin, &c.Streams.Stdout, &c.Streams.Stderr} {
		if *end, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
			return nil, fmt.Errorf("opening %s: %w", os.DevNull, err)
		}
	}
	return netns.Start(ctx, c)
}

// namespaceAdvice names what on this host keeps users from making namespaces.
func namespaceAdvice() string {
	list := netns.Obstacles()
	for i, o := range list {
		if strings.HasPrefix(o, "AppArmor") {
			list[i] = o + ", as deploy/apparmor/egressd shows"
		}
	}
	return strings.Join(list, "; ")
}

// examineCA makes an authority and a leaf as a session does.
func examineCA() finding {
	f := finding{Check: "CA", OK: true}
	roots, err := hostRoots()
	var issuer *ca.Issuer
	if err == nil {
		issuer, err = ca.New(ca.Config{})
	}
	if err == nil {
		_, err = issuer.Leaf("api.example.test")
	}
	if err != nil {
		return finding{Check: "CA", Found: err.Error(), Advice: "install the package ca-certificates"}
	}
	f.Found = fmt.Sprintf("an authority for the session can be made; this host trusts %s", count(roots.Len(), "root"))
	return f
}

// examineSecrets closes this process as a session does, and names the programs
// that sources of secrets would find.
func examineSecrets() finding {
	f := finding{Check: "secrets"}
	d, err := findDirs()
	if err == nil {
		err = harden()
	}
	cwd, wd := os.Getwd()
	if err = errors.Join(err, wd); err != nil {
		f.Found = err.Error()
		return f
	}
	programs := newHostPrograms(cwd, nil, d.home)
	var there []string
	for _, name := range []string{"gh", "databricks", "aws", "vault"} {
		if at, err := programs.find(name); err == nil {
			there = append(there, at)
		}
	}
	f.OK, f.Found = true, "egressd leaves no core dump and shows its memory to nobody"
	if len(there) > 0 {
		f.Found += "; sources can run " + strings.Join(there, ", ")
	}
	return f
}
