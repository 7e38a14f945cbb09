package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func local(t *testing.T) *Local {
	t.Helper()
	return &Local{Cwd: t.TempDir(), Env: append(os.Environ(), "API_TOKEN=bad", "LANG=C.UTF-8", "TMPDIR=/tmp", "BASH_ENV=/bad", "LD_PRELOAD="), Warn: func(string) {}}
}

func run(t *testing.T, e Executor, cmd Command) Result {
	t.Helper()
	r, err := e.Exec(t.Context(), cmd)
	if err != nil {
		t.Fatalf("%+v: %v", cmd, err)
	}
	return r
}

func TestLocal(t *testing.T) {
	l := local(t)
	if err := os.WriteFile(l.Cwd+"/plain", []byte("echo x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(l.Cwd+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		cmd    Command
		code   int
		out    string
		stderr string
	}{
		{Command{Script: "echo out; echo err >&2; exit 3"}, 3, "out\n", "err\n"},
		{Command{Argv: []string{"printf", "%s|", "a b", "$HOME", "`id`", ";", "", "*"}}, 0, "a b|$HOME|`id`|;||*|", ""},
		{Command{Argv: []string{"bash", "-c", `echo "$0 $1"`, "x", "y"}}, 0, "x y\n", ""},
		{Command{Script: "kill -TERM $$"}, 143, "", ""},
		{Command{Script: "kill -KILL $$"}, 137, "", ""},
		{Command{Script: "cat; echo end"}, 0, "end\n", ""},
		{Command{Script: "pwd", Cwd: "sub"}, 0, l.Cwd + "/sub\n", ""},
		{Command{Script: "pwd", Cwd: "/"}, 0, "/\n", ""},
		{Command{Script: "echo kept; sleep 60", Timeout: 300 * time.Millisecond}, ExitTimeout, "kept\n", ""},
		{Command{Argv: []string{"no-such-program"}}, ExitNoStart, "", `starting "no-such-program": file does not exist`},
		{Command{Argv: []string{"./plain"}}, ExitNoStart, "", "permission denied"},
		{Command{Argv: []string{"./nothing"}}, ExitNoStart, "", "no such file"},
		{Command{Argv: []string{"true"}, Cwd: "nowhere"}, ExitNoStart, "", "no such file"},
		{Command{Argv: []string{"echo", "a\x00b"}}, ExitNoStart, "", "invalid argument"},
		{Command{Script: "no-such-program"}, 127, "", "not found"},
		{Command{Script: "exit 124"}, 124, "", ""},
		{Command{Script: "sleep 60 & echo started"}, 0, "started\n", ""},
	} {
		r := run(t, l, tc.cmd)
		if r.ExitCode != tc.code || string(r.Stdout) != tc.out || !strings.Contains(string(r.Stderr), tc.stderr) || r.Truncated() || r.Isolator != "none" {
			t.Errorf("%+v: %d %q %q", tc.cmd, r.ExitCode, r.Stdout, r.Stderr)
		}
	}
}

func TestLocalRefuses(t *testing.T) {
	no := false
	for _, cmd := range []Command{{}, {Argv: []string{"true"}, Script: "true"}, {Argv: []string{""}}, {Script: "true", Timeout: -1}, {Script: "true", AllowNetwork: &no}} {
		if r, err := local(t).Exec(t.Context(), cmd); err == nil {
			t.Errorf("%+v ran: %+v", cmd, r)
		}
	}
	for _, l := range []*Local{{Cwd: "/"}, {Warn: func(string) {}}} {
		if _, err := l.Exec(t.Context(), Command{Script: "true"}); err == nil {
			t.Error("it ran without a warning or a place")
		}
	}
	var told []string
	l := local(t)
	l.Warn = func(s string) { told = append(told, s) }
	run(t, l, Command{Script: "true"})
	run(t, l, Command{Script: "true"})
	if len(told) != 2 || !strings.Contains(told[0], "NO SANDBOX") {
		t.Errorf("warnings: %q", told)
	}
}

func TestEnvironment(t *testing.T) {
	l := local(t)
	names := []string{}
	for line := range strings.Lines(string(run(t, l, Command{Argv: []string{"env"}}).Stdout)) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
		if !slices.Contains(passed, name) {
			t.Errorf("%s was passed on", name)
		}
	}
	if !slices.Contains(names, "PATH") || !slices.Contains(names, "LANG") {
		t.Errorf("got %q", names)
	}
	for name, secret := range map[string]bool{"API_TOKEN": true, "AWS_SECRET_ACCESS_KEY": true, "PGPASSWORD": true, "gh_auth": true, "HOME": false, "TMPDIR": false, "LC_ALL": false, "LOGNAME": false} {
		if secretName(name) != secret {
			t.Errorf("%s: %v", name, !secret)
		}
	}
	// A program is looked up in the PATH it gets, and never in a folder that
	// is relative.
	l.Env = []string{"PATH=.:" + l.Cwd + "/bin", "HOME=/h"}
	if err := os.MkdirAll(l.Cwd+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/prog", "/bin/prog2"} {
		if err := os.WriteFile(l.Cwd+p, []byte("#!/bin/sh\necho $HOME\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, l, Command{Argv: []string{"prog"}}); r.ExitCode != ExitNoStart {
		t.Errorf("%+v", r)
	}
	if r := run(t, l, Command{Argv: []string{"prog2"}}); string(r.Stdout) != "/h\n" {
		t.Errorf("%+v", r)
	}
	l.Env = nil
	if r := run(t, l, Command{Argv: []string{"/usr/bin/env"}}); len(r.Stdout) != 0 {
		t.Errorf("with nothing to pass on it got %q", r.Stdout)
	}
}

// Nothing of the group outlives the command, however that ends.
func TestGroup(t *testing.T) {
	l := local(t)
	for name, script := range map[string]string{
		"exit":    `sleep 300 & echo $! > %[1]s; (sleep 300 & echo $! >> %[1]s); trap "" TERM`,
		"timeout": `trap "" TERM HUP INT; sleep 300 & echo $! > %[1]s; sleep 300`,
		"cancel":  `sleep 300 & echo $! > %[1]s; sleep 300`,
	} {
		file := filepath.Join(l.Cwd, name)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if name == "cancel" {
			time.AfterFunc(500*time.Millisecond, cancel)
		}
		begin := time.Now()
		cmd := Command{Script: fmt.Sprintf(script, file), Timeout: 20 * time.Second}
		if name == "timeout" {
			cmd.Timeout = 500 * time.Millisecond
		}
		r, err := l.Exec(ctx, cmd)
		want := map[string]int{"exit": 0, "timeout": ExitTimeout, "cancel": ExitCancelled}[name]
		if err != nil || r.ExitCode != want || time.Since(begin) > 10*time.Second {
			t.Errorf("%s: %d after %v: %v", name, r.ExitCode, time.Since(begin), err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			for n := 0; alive(pid); n++ {
				if n == 200 {
					t.Fatalf("%s: process %d lives", name, pid)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
}

// alive says that a process runs: one that waits to be reaped does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && os.IsExist(err)
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// What leaves the group and holds the output open does not hold the command up.
func TestHeldOutput(t *testing.T) {
	begin := time.Now()
	r := run(t, local(t), Command{Script: "setsid sleep 5 & echo done"})
	if string(r.Stdout) != "done\n" || r.ExitCode != 0 || time.Since(begin) > 4*time.Second {
		t.Errorf("%+v after %v", r, time.Since(begin))
	}
}

func TestOutput(t *testing.T) {
	l := local(t)
	r := run(t, l, Command{Script: "yes | head -c 5000000; yes é | head -c 5000000 >&2; echo x"})
	if len(r.Stdout) != MaxOutput || !r.StdoutCut || !r.StderrCut || !r.Truncated() || r.ExitCode != 0 {
		t.Errorf("%d %d %v", len(r.Stdout), len(r.Stderr), r.Truncated())
	}
	for _, pad := range []int{0, 1, 2, 3} {
		r = run(t, l, Command{Script: fmt.Sprintf("printf %%0%dd 0; for i in {1..30000}; do printf 😀; done", pad+1)})
		if !utf8.Valid(r.Stdout) || len(r.Stdout) > MaxOutput || len(r.Stdout) < MaxOutput-3 || !r.StdoutCut {
			t.Errorf("pad %d: %d bytes, valid %v", pad, len(r.Stdout), utf8.Valid(r.Stdout))
		}
	}
	// What is no UTF-8 is kept to the byte.
	r = run(t, l, Command{Script: `printf '\xff\xc3'`})
	if string(r.Stdout) != "\xff\xc3" || r.Truncated() {
		t.Errorf("%+v", r)
	}
	if r = run(t, l, Command{Script: "head -c 100000 /dev/zero"}); len(r.Stdout) != MaxOutput || r.Truncated() {
		t.Errorf("%d bytes, cut %v", len(r.Stdout), r.Truncated())
	}
}

func TestConcurrent(t *testing.T) {
	l := local(t)
	before := descriptors(t)
	var wait sync.WaitGroup
	for n := range 20 {
		wait.Go(func() {
			r, err := l.Exec(t.Context(), Command{Script: fmt.Sprintf("echo %d", n)})
			if err != nil || string(r.Stdout) != fmt.Sprintln(n) {
				t.Errorf("%d: %q %v", n, r.Stdout, err)
			}
		})
	}
	wait.Wait()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}

func descriptors(t *testing.T) int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
