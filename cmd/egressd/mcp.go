package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/egressd/egressd/tools"
	"github.com/egressd/egressd/tools/mcp"
)

func mcpCommand() *cobra.Command {
	f := runFlags{lazy: true}
	cmd := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "serve the granted tools to an agent, by the Model Context Protocol on stdio",
		Args:  atMost(0),
		Long: `Serve the tools that the policy grants (tools.allow, tools.preset) to an agent, by
the Model Context Protocol on standard input and output: shell, file_read,
file_write, file_edit, grep, glob. Commands run in the sandbox that the policy
describes, behind the proxy; it is made for the first one and stays up until the
end. The file tools see the files that the sandbox sees. Every call is recorded.

It ends with standard input, or by SIGTERM. What there is to say goes to stderr.
Exit status: 0; 125 when egressd itself fails.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			code, err := f.mcp(ctx, cmd.InOrStdin(), os.Stdout)
			if err != nil {
				return failCode{exitEgressd, err}
			}
			return exitStatus(code)
		},
	}
	f.registerAll(cmd)
	return cmd
}

// mcp serves the tools that the policy grants.
func (f *runFlags) mcp(ctx context.Context, in io.Reader, out io.Writer) (int, error) {
	return f.stand(ctx, func(ctx context.Context, s *standing) error {
		t := s.policy.Tools
		set, done, err := s.toolset(tools.Grants{Preset: t.Preset, Allow: t.Allow, Deny: t.Deny})
		if err != nil {
			return err
		}
		defer done()
		if len(set.List()) == 0 {
			s.say("no tool is granted, so every call is refused: tools.allow or tools.preset in the policy grants some")
		}
		server := mcp.Server{Tools: set, Version: version()}
		if f.verbose {
			server.Log = s.sess.logger
		}
		return server.Serve(ctx, in, out)
	})
}
