package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/shell"
	"github.com/egressd/egressd/tools"
)

// Files and a shell for an agent, every call on the record.
func ExampleNew() {
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

	ctx := context.Background()
	set, err := tools.New(tools.Config{
		Grants: tools.Grants{Preset: "full", Deny: []string{"file_edit"}},
		Files:  files,
		Shell:  session,
		Record: log,
		OnCall: func(_ context.Context, r tools.Request) error {
			if r.Tool == "shell" && string(r.Arguments) == `{"script":"rm -rf ."}` {
				return errors.New("not that one")
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range set.List() {
		fmt.Println(tool.Name)
	}
	for _, call := range [][2]string{
		{"file_write", `{"path":"src/main.go","content":"package main\n"}`},
		{"shell", `{"argv":["cat","src/main.go"]}`},
		{"grep", `{"pattern":"^package"}`},
		{"file_edit", `{"path":"src/main.go","old_string":"main","new_string":"other"}`},
		{"shell", `{"script":"rm -rf ."}`},
	} {
		result, err := set.Call(ctx, call[0], json.RawMessage(call[1]))
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println(result.Text)
	}
	fmt.Println(session.Dispose(ctx), log.Counts()[audit.KindFile], log.Counts()[audit.KindExec], log.Close(""))
	// Output:
	// shell
	// file_read
	// file_write
	// grep
	// glob
	// wrote 13 bytes to src/main.go
	//
	// {"stdout":"package main\n","stderr":"","exit_code":0,"truncated":false,"isolator":"none"}
	// src/main.go:1:package main
	//
	// refused: not granted: tools.allow in the policy grants tools
	// refused: not that one
	// <nil> map[allow:2 deny:1] map[allow:1 deny:1] <nil>
}

// A command of the operator's decides each call.
func ExampleHook() {
	hook := tools.Hook{Argv: []string{"/bin/sh", "-c", `grep -q '"tool":"file_read"' || { echo only reading; exit 1; }`}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}
	var decide tools.OnCall = hook.Decide
	fmt.Println(decide(context.Background(), tools.Request{Tool: "file_read", Arguments: json.RawMessage(`{"path":"a"}`)}))
	fmt.Println(decide(context.Background(), tools.Request{Tool: "shell", Arguments: json.RawMessage(`{"script":"id"}`)}))
	// Output:
	// <nil>
	// only reading
}
