package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func trustCommand() *cobra.Command {
	var flags policyFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "trust [FILE]",
		Short: "show what a policy grants and runs, and accept it",
		Long: `Show what a policy that was found in a folder of work grants and which commands
it runs on this host, and accept it as it is now. Such a policy may have come
with a cloned repository, so it is not used before; when it changes, it is
looked at again.`,
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
				return errors.New("no policy was found here: there is nothing to trust")
			}
			return trust(cmd.InOrStdin(), cmd.OutOrStdout(), src, yes)
		},
	}
	cmd.Flags().StringVar(&flags.file, "policy", "", "policy `FILE` (default: as egressd run finds it)")
	cmd.Flags().StringVar(&flags.cwd, "cwd", "", "look from this `FOLDER`")
	cmd.Flags().BoolVar(&yes, "yes", false, "accept without asking")
	return cmd
}

func trust(in io.Reader, out io.Writer, src *source, yes bool) error {
	// What is shown and what is stored are one reading: a file that changes
	// while the user reads is not trusted by it.
	p, problems, err := src.load(false)
	if err != nil {
		return err
	}
	if err := whole(p, problems); err != nil {
		return fmt.Errorf("the policy does not load:\n%w", err)
	}
	fmt.Fprintf(out, "%s\n", src.path)
	for _, f := range p.Files[1:] {
		fmt.Fprintf(out, "  and %s (%s)\n", f.Path, f.Role)
	}
	for _, g := range p.Grants() {
		where := ""
		if g.Where != "" {
			where = " (" + g.Where + ")"
		}
		fmt.Fprintf(out, "  %-10s %s%s\n", g.What, g.Text, where)
	}
	if !yes {
		if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
			return errors.New("nobody is here to be asked: read the above, then egressd trust --yes")
		}
		fmt.Fprint(out, "Trust it? [y/N] ")
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		if a := strings.ToLower(strings.TrimSpace(line)); a != "y" && a != "yes" {
			return errors.New("not trusted")
		}
	}
	if err := src.dirs.own(src.dirs.state); err != nil {
		return err
	}
	if err := src.store().Trust(p); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "trusted, as it is now")
	return err
}
