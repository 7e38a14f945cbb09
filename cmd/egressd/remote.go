package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// reloadCommand and caCommand talk to a running session.
func reloadCommand() *cobra.Command {
	return sessionCommand("reload", "reload", "make a running session read its policy again",
		`Make a running session read its policy again. A policy that does not load, or
that was found and is not trusted as it is now, changes nothing: the command
says why and exits 1.`)
}

func caCommand() *cobra.Command {
	return sessionCommand("ca", "ca", "print a running session's CA certificate, as PEM", "")
}

func sessionCommand(use, do, short, long string) *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := findDirs()
			if err != nil {
				return err
			}
			text, err := tell(d, session, do)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "the session, by a prefix of its `ID` (not needed where only one runs)")
	complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		d, err := findDirs()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ids, err := sessions(d)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("session", complete); err != nil {
		panic(err) // the flag stands two lines above
	}
	return cmd
}
