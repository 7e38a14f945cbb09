//go:build man

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// forPackagers has the hidden command that packages are made with: it writes a
// page for each command, egressd.1, egressd-run.1 and so on. What it is written
// with would cost each start of a sandbox half a millisecond, so it is in a
// build of its own (make man).
func forPackagers() []*cobra.Command {
	return []*cobra.Command{{
		Use: "man FOLDER", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "write the manual pages",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("making the folder of the manual pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			root.InitDefaultCompletionCmd()
			header := &doc.GenManHeader{Section: "1", Source: "egressd " + version(), Manual: "egressd"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("writing the manual pages: %w", err)
			}
			return nil
		},
	}}
}
