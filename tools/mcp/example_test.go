package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/shell"
	"github.com/egressd/egressd/tools"
	"github.com/egressd/egressd/tools/mcp"
)

// Tools served to an agent in the same process. A pair of streams takes the
// place of the standard ones: whatever speaks the protocol can be at their
// other end.
func ExampleServer() {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	work := filepath.Join(dir, "work")
	log, err := audit.Open(audit.Config{State: filepath.Join(dir, "state"), Session: audit.NewSession()})
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := safepath.Open(safepath.Config{Cwd: work, Access: safepath.Write})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer files.Close()
	session := &shell.Session{Executor: &shell.Local{Cwd: work, Env: os.Environ(), Warn: func(string) {}}}
	set, err := tools.New(tools.Config{
		Grants: tools.Grants{Preset: "readwrite", Allow: []string{"shell"}},
		Files:  files, Shell: session, Record: log,
		OnCall: func(_ context.Context, r tools.Request) error { // asked for each call that is granted
			var args struct{ Argv []string }
			if r.Tool != "shell" {
				return nil
			}
			if err := json.Unmarshal(r.Arguments, &args); err != nil || len(args.Argv) == 0 || args.Argv[0] != "wc" {
				return errors.New("only wc may be run")
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	here, there := net.Pipe()
	server := mcp.Server{Tools: set, Version: "1.0"}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, here, here) }()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1.0"}, nil).
		Connect(ctx, &sdk.IOTransport{Reader: there, Writer: there}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []sdk.CallToolParams{
		{Name: "file_write", Arguments: map[string]any{"path": "a.txt", "content": "one\ntwo\n"}},
		{Name: "shell", Arguments: map[string]any{"argv": []string{"wc", "-l", "a.txt"}}},
		{Name: "shell", Arguments: map[string]any{"argv": []string{"rm", "a.txt"}}},
		{Name: "browser", Arguments: map[string]any{}},
	} {
		result, err := client.CallTool(ctx, &call)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, _ := result.Content[0].(*sdk.TextContent)
		fmt.Println(result.IsError, text.Text)
	}
	fmt.Println(client.Close(), <-served, session.Dispose(ctx))
	fmt.Println(log.Counts()[audit.KindExec], log.Counts()[audit.KindFile], log.Close("exit"))
	// Output:
	// false wrote 8 bytes to a.txt
	//
	// false {"stdout":"2 a.txt\n","stderr":"","exit_code":0,"truncated":false,"isolator":"none"}
	// true only wc may be run
	// true not granted: tools.allow in the policy grants tools
	// <nil> <nil> <nil>
	// map[allow:1 deny:2] map[allow:1] <nil>
}
