package tools_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/shell"
	"github.com/egressd/egressd/tools"
)

// Commands in a sandbox without a network that stays up between them, and the
// files that they see. The sandbox's own processes are the program itself, so
// main needs nothing for them but the import.
func ExampleSandbox() {
	work, err := os.MkdirTemp("", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(work)
	if work, err = filepath.EvalSymlinks(work); err != nil {
		fmt.Println(err)
		return
	}
	config := netns.Config{
		Cwd: work, Grants: []mount.Grant{{Path: work, Write: true}}, Home: "/home/agent", Network: netns.NoNetwork,
		Env: []string{"PATH=/usr/bin:/bin"}, Path: os.Getenv("PATH"),
	}
	session := &shell.Session{Executor: &tools.Sandbox{
		Open: func(ctx context.Context, network bool) (*netns.Session, error) { return netns.Start(ctx, config) },
		Cwd:  work, Isolator: "linux_bwrap",
	}}
	ctx := context.Background()
	defer session.Dispose(ctx)
	for _, script := range []string{"echo text > file; echo kept > /tmp/note", "cat file /tmp/note; exit 3", "setsid sleep 1000 &", "ps -e -o comm= | grep -c sleep"} {
		r, err := session.Exec(ctx, shell.Command{Script: script})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q %d\n", r.Stdout, r.ExitCode)
	}
	view, err := netns.Look(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := safepath.Open(tools.Files(view.Plan))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer files.Close()
	text, err := files.ReadFile("file", 100)
	fmt.Printf("%q %v\n", text, err)
	// Output:
	// "" 0
	// "text\nkept\n" 3
	// "" 0
	// "0\n" 1
	// "text\n" <nil>
}
