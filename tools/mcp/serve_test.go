package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/shell"
	"github.com/egressd/egressd/tools"
	"github.com/egressd/egressd/tools/mcp"
)

// slow is a place whose commands take until they are given up.
type slow struct{ began chan struct{} }

func (s slow) Start(context.Context) error   { return nil }
func (s slow) Dispose(context.Context) error { return nil }
func (s slow) Exec(ctx context.Context, _ shell.Command) (shell.Result, error) {
	s.began <- struct{}{}
	<-ctx.Done()
	return shell.Result{ExitCode: shell.Ended(ctx)}, nil
}

func newSet(t *testing.T, dir string, e shell.Executor) *tools.Set {
	t.Helper()
	files, err := safepath.Open(safepath.Config{Cwd: dir, Access: safepath.Write})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	log, err := audit.Open(audit.Config{State: t.TempDir(), Session: audit.NewSession()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close("exit") })
	set, err := tools.New(tools.Config{Grants: tools.Grants{Allow: []string{"file_read", "shell"}}, Files: files, Shell: e, Record: log})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// What is said in lines is answered in lines, whatever it is, and the end of
// input does not swallow an answer.
func TestLines(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	call := func(name, args string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", name, args)
	}
	for in, want := range map[string]string{
		call("file_read", `{"path":"f"}`):                           `"text":"text\n"`,
		call("file_read", `{"path":"f","path":"g"}`):                `path is there twice`,
		call("file_read", `{"Path":"f"}`):                           `there is no argument`,
		call("file_read", `{"path":"../f"}`):                        `leaves cwd`,
		call("file_write", `{"path":"f","content":""}`):             `not granted`,
		call("nothing", `{}`):                                       `not granted`,
		call("file_read", `[]`):                                     `"isError":true`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call"}` + "\n":     `"id":2,"error"`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/list"}` + "\n": `"id":2,`,
	} {
		var out strings.Builder
		server := mcp.Server{Tools: newSet(t, dir, slow{make(chan struct{}, 9)}), Version: "1"}
		if err := server.Serve(t.Context(), strings.NewReader(hello+in), &out); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[len(lines)-1], want) {
			t.Errorf("%s: %q lacks %q", in, lines, want)
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: %q is not JSON", in, line)
			}
		}
	}
}

// A call that is given up is cancelled; the end of ctx ends all of it.
func TestEnds(t *testing.T) {
	e := slow{make(chan struct{}, 9)}
	server := mcp.Server{Tools: newSet(t, t.TempDir(), e), Version: "1"}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, inR, outW) }()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "x", Version: "1"}, nil).
		Connect(t.Context(), &sdk.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call, cancel := context.WithCancel(t.Context())
	go func() { <-e.began; cancel() }()
	if _, err := client.CallTool(call, &sdk.CallToolParams{Name: "shell", Arguments: map[string]any{"script": "x"}}); err == nil {
		t.Error("a call that was given up has an answer")
	}
	go func() {
		_, _ = client.CallTool(t.Context(), &sdk.CallToolParams{Name: "shell", Arguments: map[string]any{"script": "x"}})
	}()
	<-e.began
	stop()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it serves on")
	}
	_ = inW.Close()
	_ = outR.Close()
}
