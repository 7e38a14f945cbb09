package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

const shellPolicy = "sandbox: {write_paths: [.], egress_rules: []}\ntools: [shell]\n"

// What clients and programs do to end a call, a sandbox or all of it.
func TestMCPEnds(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		t.Run("a call that is cancelled", func(t *testing.T) {
			a := newAgent(t, r, shellPolicy)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(500*time.Millisecond, cancel)
			begin := time.Now()
			_, _, err := a.say(ctx, "shell", map[string]any{"script": "setsid sleep 1000 & echo up > started; sleep 1000"})
			if err == nil || time.Since(begin) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
			a.want(t, "cat started; left() { ps -e -o args= | grep -cx 'sleep 1000'; }; for i in $(seq 100); do left >/tmp/n || break; sleep 0.1; done; left", "up\n0\n", 1)
			a.atEnd(t)
			if i := slices.IndexFunc(r.record(t), func(rec map[string]any) bool { return rec["exit_code"] == 130.0 }); i < 0 {
				t.Error("no record tells of the command that was cancelled")
			}
		})
		t.Run("calls side by side", func(t *testing.T) {
			a := newAgent(t, r, shellPolicy)
			begin := time.Now()
			var wg sync.WaitGroup
			for n := range 8 {
				wg.Go(func() { a.want(t, fmt.Sprintf("sleep 0.7; echo %d", n), fmt.Sprintf("%d\n", n), 0) })
			}
			wg.Wait()
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("eight calls of 0.7 s took %v", took)
			}
			a.atEnd(t)
		})
		for name, script := range map[string]string{
			"kills the launcher": "kill -9 $PPID; sleep 100",
			"kills everything":   "kill -9 -1; sleep 100",
		} {
			t.Run("a program that "+name, func(t *testing.T) {
				a := newAgent(t, r, shellPolicy)
				a.want(t, "echo $PPID > /tmp/t", "", 0)
				text, refused, err := a.say(t.Context(), "shell", map[string]any{"script": script})
				if !refused || err != nil || !strings.Contains(text, "the next command starts a new one") {
					t.Errorf("%q %v %v", text, refused, err)
				}
				a.want(t, "ls /tmp; echo again", "again\n", 0)
				a.want(t, "curl -s -o /dev/null -w '%{http_code}' http://no.test/", "403", 0)
				a.atEnd(t)
			})
		}
		t.Run("a program that stops the launcher", func(t *testing.T) {
			a := newAgent(t, r, shellPolicy)
			a.want(t, "sleep 0.3; kill -STOP $PPID; sleep 100", "", 124, "timeout_ms", 900)
			a.want(t, "echo again", "again\n", 0)
			a.atEnd(t)
		})
		t.Run("a program that keeps its parent from opening files", func(t *testing.T) {
			a := newAgent(t, r, shellPolicy)
			a.want(t, "prlimit --nofile=1:1 --pid $PPID", "", 0)
			if text, refused, err := a.say(t.Context(), "shell", map[string]any{"script": "echo"}); err != nil || !refused {
				t.Logf("%q %v %v", text, refused, err) // what was ready beforehand may still run it
			}
			a.want(t, "echo again", "again\n", 0)
			a.atEnd(t)
		})
		for script, want := range map[string]string{
			"touch runs; exec sleep 1000": `"exit_code\":130`,
			"touch runs; exec sleep 0.5":  `"exit_code\":0`,
		} {
			t.Run("the end of input while a command runs: "+script, func(t *testing.T) {
				_ = os.Remove(r.path("proj/runs"))
				cmd := r.command(t, "mcp", "--policy", r.write(t, "mcp-policy.yaml", shellPolicy))
				var out lockedText
				cmd.Stdout, cmd.Stderr = &out, &out
				in, err := cmd.StdinPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shell","arguments":{"script":%q}}}
`, script)
				for tries := 0; tries < 500; tries++ {
					if _, err := os.Stat(r.path("proj/runs")); err == nil {
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				in.Close()
				begin := time.Now()
				if err := cmd.Wait(); err != nil || time.Since(begin) > 10*time.Second || !strings.Contains(out.String(), want) {
					t.Errorf("the end after %v: %v\n%s", time.Since(begin), err, &out)
				}
				nothingRuns(t)
			})
		}
		t.Run("SIGTERM", func(t *testing.T) {
			a := newAgent(t, r, shellPolicy)
			go func() { _, _, _ = a.say(t.Context(), "shell", map[string]any{"script": "sleep 1000"}) }()
			time.Sleep(500 * time.Millisecond)
			if err := a.server.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			a.atEnd(t)
			if records := r.record(t); records[len(records)-1]["kind"] != "session_end" {
				t.Error("the record is cut short")
			}
		})
		t.Run("SIGKILL", func(t *testing.T) {
			a := newAgent(t, r, shellPolicy)
			a.want(t, "true", "", 0)
			if err := a.server.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			nothingRuns(t)
		})
	})
}

// A thousand calls leave nothing: no descriptor, process, mount or byte.
func TestMCPThousand(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		a := newAgent(t, r, shellPolicy)
		// What the chain has open, as root sees it from outside.
		state := func() string {
			var out strings.Builder
			total := 0
			lines, err := filepath.Glob("/proc/[0-9]*/fd")
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range lines {
				text, _ := os.ReadFile(filepath.Join(filepath.Dir(dir), "cmdline"))
				if strings.Contains(string(text), "\x00stage\x00") || filepath.Base(filepath.Dir(dir)) == fmt.Sprint(os.Getpid()) {
					continue // one that waits for its command, and this test
				}
				names, err := os.ReadDir(dir)
				if err == nil && len(text) > 0 {
					total++
					fmt.Fprintln(&out, strings.ReplaceAll(string(text), "\x00", " "), len(names))
				}
			}
			inside, _ := a.sh(t, "cat /proc/self/mountinfo; find /tmp /var/tmp /dev/shm ~ /proc/sys/kernel/random/boot_id; df --output=used /tmp ~ /dev/shm")
			return fmt.Sprintln(total) + out.String() + inside
		}
		a.want(t, "true", "", 0)
		// The watch of the policy's file begins a moment after the start.
		before := state()
		for calm := 0; calm < 10; calm++ {
			time.Sleep(200 * time.Millisecond)
			if now := state(); now != before {
				before, calm = now, 0
			}
		}
		took := make([]time.Duration, 1000)
		for n := range took {
			begin := time.Now()
			if text, refused, err := a.say(t.Context(), "shell", map[string]any{"argv": []string{"true"}}); err != nil || refused || !strings.Contains(text, `"exit_code":0`) {
				t.Fatalf("call %d: %s %v", n, text, err)
			}
			took[n] = time.Since(begin)
		}
		slices.Sort(took)
		t.Logf("a call of true: median %v, best %v", took[500], took[0])
		if took[0] > 5*time.Millisecond {
			t.Errorf("no warm call took under 5 ms: the best of a thousand %v", took[0])
		}
		after := state()
		for tries := 0; after != before && tries < 20; tries++ {
			time.Sleep(200 * time.Millisecond)
			after = state()
		}
		if after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		a.atEnd(t)
		if left, _ := filepath.Glob(r.path("proj/*")); len(left) > 0 {
			t.Errorf("left in the folder: %q", left)
		}
	})
}
