package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script: the binary as a person calls it, for what
// needs no sandbox and no origin. Each script has a home of its own, $HOME, and
// works in a folder below it that is no repository.
func TestScripts(t *testing.T) {
	bin, err := filepath.Abs(os.Getenv(binaryVariable))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			tools := filepath.Join(e.WorkDir, ".bin")
			if err := os.Mkdir(tools, 0o755); err != nil {
				return err
			}
			if err := os.Symlink(bin, filepath.Join(tools, "egressd")); err != nil {
				return err
			}
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
			for _, name := range []string{"SUDO_UID", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
				e.Setenv(name, "")
			}
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

// status runs a command that must end with exactly this status:
//
//	status 125 egressd run -- true
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit status %d, not %d", code, want)
	}
}
