package source_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker/source"
)

func sh(script string) source.Source { return source.Source{Command: []string{"sh", "-c", script}} }

func TestCommand(t *testing.T) {
	t.Setenv("LEAK93", "x")
	cfg := at(t, nil)
	write(t, cfg.Home+"/bin/get-token", "#!/bin/sh\necho tok-home\n", 0o755)
	write(t, cfg.Home+"/tok", "tok-file\n", 0o600)
	write(t, cfg.Home+"/bin/no-program", "#!/bin/sh\necho tok-home\n", 0o644)
	write(t, cfg.Home+"/bin/broken", "#!/no/such/shell\n", 0o755)
	for _, c := range []struct {
		name string
		src  source.Source
		want string
		has  []string
	}{
		{"loses its newline", source.Source{Command: []string{"printf", `cmd-93kd\n`}}, "cmd-93kd", nil},
		{"no shell", source.Source{Command: []string{"printf", "%s", "$HOME"}}, "$HOME", nil},
		{"home", source.Source{Command: []string{"~/bin/get-token"}}, "tok-home", nil},
		{"home in any word", source.Source{Command: []string{"cat", "~/tok"}}, "tok-file", nil},
		{"home nowhere else", source.Source{Command: []string{"printf", "%s ", "a~/tok", "~", "~root/tok", "--f=~/tok"}}, "a~/tok ~ ~root/tok --f=~/tok", nil},
		{"root folder", sh("pwd"), "/", nil},
		{"no other variables", sh("echo ${LEAK93:-none}"), "none", nil},
		{"fixed variables", sh("env | grep -v -e ^_= -e ^PWD= -e ^SHLVL= -e ^OLDPWD= | cut -d= -f1 | sort | tr '\\n' ' '"), "HOME LANG PATH", nil},
		{"empty stdin", sh("cat; echo end"), "end", nil},
		{"no terminal", sh("(: </dev/tty) 2>/dev/null && echo terminal || echo none"), "none", nil},
		{"its own name", sh("echo $0"), "sh", nil},
		{"stderr of one that succeeds", sh("echo warning >&2; echo tok"), "tok", nil},
		{"nothing", source.Source{Command: []string{"true"}}, "", []string{"reading the output of true: it is not there or empty"}},
		{"two lines", sh("echo hush; echo 93kd"), "", []string{"reading the output of sh", "line break"}},
		{"fails", sh("echo login first >&2; exit 7"), "", []string{"running sh: it ended with exit status 7, and said: login first"}},
		{"dies", sh("kill -TERM $$"), "", []string{"signal: terminated"}},
		{"not there", source.Source{Command: []string{"no-such-program"}}, "", []string{"running no-such-program: ", "no such program"}},
		{"no absolute one", source.Source{Command: []string{"/no/such/program"}}, "", []string{"no such file"}},
		{"relative", source.Source{Command: []string{"bin/get-token"}}, "", []string{"neither a name nor an absolute path"}},
		{"no program", source.Source{Command: []string{"~/bin/no-program"}}, "", []string{"no program"}},
		{"a folder", source.Source{Command: []string{"~/bin"}}, "", []string{"no program"}},
		{"broken", source.Source{Command: []string{"~/bin/broken"}}, "", []string{"~/bin/broken", "no such file"}},
		{"too much", sh("head -c 2000000 /dev/zero | tr '\\0' x"), "", []string{"it wrote more than 1 MiB"}},
		{"too much for ever", sh("yes hush"), "", []string{"it wrote more than 1 MiB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			read(t, cfg, c.src, source.Options{}, c.want, c.has...)
		})
	}
	t.Run("no arguments in errors", func(t *testing.T) {
		read(t, cfg, source.Source{Command: []string{"false", "--token=hush"}}, source.Options{}, "", "running false")
	})
	t.Run("no environment", func(t *testing.T) {
		cfg := cfg
		cfg.Env = nil
		read(t, cfg, sh("echo ${LEAK93:-none}"), source.Options{}, "none")
	})
}

// What a program that fails writes to stderr is shown, but no secret.
func TestSaid(t *testing.T) {
	cfg := at(t, nil)
	cfg.Env = append(cfg.Env, "VAULT_TOKEN=hvs-short-93kd", "VAULT_ADDR=https://vault.test")
	for _, c := range []struct{ name, script, want string }{
		{"lines", `printf 'one\r\n\n  two\tx\n' >&2`, "one; two x"},
		{"what stdout had", `echo pa55-93kd; echo "cannot check pa55-93kd!" >&2`, "cannot check [hidden]!"},
		{"each word of it", `echo '{"token": "hush", "x": 1}'; echo 'bad: "hush", ok' >&2`, "bad: [hidden] ok"},
		{"a token of the environment", `echo "https://vault.test refused $VAULT_TOKEN" >&2`, "https://vault.test refused [hidden]"},
		{"a key", `echo "+ curl -H 'Authorization: Bearer ghp_0123456789abcdefghijklmnopqrst93kd' https://api.test/a" >&2`,
			"+ curl -H 'Authorization: Bearer [hidden]' https://api.test/a"},
		{"a JWT", `echo eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0hush.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9 >&2`, "[hidden].[hidden].[hidden]"},
		{"names of hosts and errors", `echo "adb-1234567890123456.12.azuredatabricks.net: InvalidAuthenticationTokenTenantException /usr/lib/python3/dist-packages/a.py" >&2`,
			"adb-1234567890123456.12.azuredatabricks.net: InvalidAuthenticationTokenTenantException /usr/lib/python3/dist-packages/a.py"},
		{"a terminal's codes", `printf 'a\033[31mb\233c\000d\342\200\256e' >&2`, `a\u{1b}[31mb\x9bc\u{0}d\u{202e}e`},
		{"nothing", ``, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := source.Read(t.Context(), cfg, sh(c.script+"\nexit 1"), source.Options{})
			var e *source.CommandError
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Said != c.want {
				t.Errorf("said %q, want %q", e.Said, c.want)
			}
		})
	}
	t.Run("the end of much", func(t *testing.T) {
		_, err := source.Read(t.Context(), cfg, sh(`for i in $(seq 1 9000); do echo "line number $i"; done >&2; echo last >&2; exit 1`), source.Options{})
		var e *source.CommandError
		if !errors.As(err, &e) {
			t.Fatalf("error %v", err)
		}
		if len(e.Said) > 1000 || !strings.HasSuffix(e.Said, "line number 9000; last") {
			t.Errorf("said %d bytes: %q", len(e.Said), e.Said)
		}
	})
	t.Run("a secret that is cut", func(t *testing.T) {
		// One endless line: its beginning is lost, so none of it is shown.
		_, err := source.Read(t.Context(), cfg, sh(`head -c 40000 /dev/zero | tr '\0' k >&2; exit 1`), source.Options{})
		if text := source.Explain(err); strings.Contains(text, "kk") {
			t.Errorf("shown: %.200s", text)
		}
	})
}

// Nothing that a program started is left, however it ends.
func TestCommandLeavesNothing(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"ended", "sleep 300 & echo $! > $HOME/pid; echo tok"},
		{"failed", "sleep 300 & echo $! > $HOME/pid; exit 1"},
		{"too much", "sleep 300 & echo $! > $HOME/pid; yes"},
		{"cancelled", "sleep 300 & echo $! > $HOME/pid; : > $HOME/ready; wait"},
		{"deaf", "trap '' TERM INT HUP; sleep 300 & echo $! > $HOME/pid; : > $HOME/ready; wait"},
		{"stopped", "sleep 300 & echo $! > $HOME/pid; : > $HOME/ready; kill -STOP $$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := at(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(cfg.Home + "/ready"); err == nil {
						cancel()
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			began := time.Now()
			_, err := cfg.Run(ctx, []string{"sh", "-c", c.script})
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if c.name == "cancelled" && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			gone(t, pidIn(t, cfg.Home+"/pid"))
		})
	}
}

func pidIn(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// gone waits until a process is dead; a zombie is, whoever has to bury it.
func gone(t *testing.T, pid string) {
	t.Helper()
	for range 400 {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %s is still there", pid)
}

// A grandchild in a session of its own does not keep the answer.
func TestCommandThatIsHeldOpen(t *testing.T) {
	cfg := at(t, nil)
	began := time.Now()
	out, err := cfg.Run(t.Context(), []string{"sh", "-c", "setsid sleep 7 & echo tok; sleep 0.2"})
	if err != nil || string(out) != "tok\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// An end that came before the start starts nothing.
func TestCommandTooLate(t *testing.T) {
	cfg := at(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cfg.Run(ctx, []string{"sh", "-c", ": > $HOME/ran"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Home, "ran")); err == nil {
		t.Error("it ran")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := cfg.Run(ctx, []string{"sleep", "60"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// quiet fails a test that leaves goroutines behind.
func quiet(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 400 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		buf := make([]byte, 1<<20)
		t.Errorf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
	})
}

func TestCommandLeavesNoGoroutine(t *testing.T) {
	cfg := at(t, nil)
	quiet(t)
	for _, script := range []string{"echo tok", "exit 1", "yes"} {
		cfg.Run(t.Context(), []string{"sh", "-c", script})
	}
}

// A program does not outlive egressd, even one that is killed.
func TestCommandDiesWithUs(t *testing.T) {
	if home := os.Getenv("EGRESSD_TEST_HOME"); home != "" { // the process that is killed
		path := "/usr/bin:/bin"
		cfg := source.Config{Env: source.Environment([]string{"HOME=" + home}, path), LookPath: source.Finder(path, nil)}
		cfg.Run(t.Context(), []string{"sh", "-c", "echo $$ > $HOME/new; mv $HOME/new $HOME/pid; exec sleep 300"})
		return
	}
	home := t.TempDir()
	us := exec.Command(os.Args[0], "-test.run=^TestCommandDiesWithUs$")
	us.Env = append(os.Environ(), "EGRESSD_TEST_HOME="+home)
	if err := us.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		if _, err := os.Stat(home + "/pid"); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	us.Process.Kill()
	us.Wait()
	gone(t, pidIn(t, home+"/pid"))
}
