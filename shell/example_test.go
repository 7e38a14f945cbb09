package shell_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/egressd/egressd/shell"
)

func ExampleSession() {
	ctx := context.Background()
	session := &shell.Session{Executor: &shell.Local{
		Cwd:  os.TempDir(),
		Env:  os.Environ(),
		Warn: func(text string) { fmt.Println(text) },
	}}
	result, err := session.Exec(ctx, shell.Command{Script: "echo hello; exit 3"})
	fmt.Printf("%s%d %v\n", result.Stdout, result.ExitCode, err)
	fmt.Println(session.Dispose(ctx))
	// Output:
	// NO SANDBOX: a command runs on the host with all that this user can do
	// hello
	// 3 <nil>
	// <nil>
}

func ExampleNewShare() {
	ctx := context.Background()
	share := shell.NewShare(&shell.Local{Cwd: "/", Env: os.Environ(), Warn: func(string) {}})
	one, two := share.Use(), share.Use()
	result, err := one.Exec(ctx, shell.Command{Argv: []string{"echo", "$HOME; not seen by a shell"}})
	fmt.Printf("%s%v\n", result.Stdout, err)
	fmt.Println(one.Dispose(ctx))
	result, err = two.Exec(ctx, shell.Command{Script: "pwd"})
	fmt.Printf("%s%v\n", result.Stdout, err)
	fmt.Println(two.Dispose(ctx)) // the last
	// Output:
	// $HOME; not seen by a shell
	// <nil>
	// <nil>
	// /
	// <nil>
	// <nil>
}

// container is how an executor of one's own looks: three methods around
// whatever runs commands elsewhere.
type container struct{ log []string }

func (c *container) Start(context.Context) error { c.log = append(c.log, "start"); return nil }

func (c *container) Exec(_ context.Context, cmd shell.Command) (shell.Result, error) {
	c.log = append(c.log, "exec "+strings.Join(cmd.Argv, " "))
	return shell.Result{Isolator: "container"}, nil
}

func (c *container) Dispose(context.Context) error { c.log = append(c.log, "dispose"); return nil }

func ExampleExecutor() {
	ctx := context.Background()
	c := &container{}
	session := &shell.Session{Executor: c}
	_, err := session.Exec(ctx, shell.Command{Argv: []string{"make", "test"}})
	fmt.Println(err, session.Dispose(ctx))
	fmt.Println(strings.Join(c.log, ", "))
	// Output:
	// <nil> <nil>
	// start, exec make test, dispose
}
