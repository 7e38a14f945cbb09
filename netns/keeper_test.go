//go:build linux

package netns

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/netns/mount"
)

// What is hidden or read-only stays so when the host replaces the file, as
// editors do, removes it and makes it anew, or puts a folder or a link there.
func TestKept(t *testing.T) {
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			r := run{As: uid, Shell: `
echo ready; while [ ! -e go ]; do sleep 0.02; done; sleep 0.2
cat .env .made | wc -c; ls -A .dir | wc -l; readlink .file || echo hidden
sh -c 'echo x >> conf/p.yaml' 2>/dev/null && echo wrote; cat conf/p.yaml; mv conf c2 2>/dev/null && echo moved; touch conf/free && echo free`}
			r.prepare(t)
			for _, path := range []string{".env", ".made", ".dir", ".file", "conf/p.yaml"} {
				r.put(t, "proj/"+path, "old\n")
			}
			r.Grants = []mount.Grant{{Path: r.Cwd, Write: true}}
			r.Keep = []string{r.Cwd + "/conf/p.yaml"}
			cmd := r.command(t)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan()
			replace(t, r.Cwd)
			var got []string
			for lines.Scan() {
				got = append(got, lines.Text())
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			if want := "0 0 hidden new free"; strings.Join(got, " ") != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// replace does to a folder what the host's programs do.
func replace(t *testing.T, dir string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".env", "conf/p.yaml"} {
		do(os.WriteFile(at(name+".new"), []byte("new\n"), 0o644))
		do(os.Rename(at(name+".new"), at(name)))
	}
	do(os.Remove(at(".made")))
	do(os.WriteFile(at(".made"), []byte("new\n"), 0o644))
	do(os.Remove(at(".dir")))
	do(os.Mkdir(at(".dir"), 0o755))
	do(os.WriteFile(at(".dir/x"), []byte("new\n"), 0o644))
	do(os.Remove(at(".file")))
	do(os.Symlink("../vault", at(".file")))
	do(os.WriteFile(at("go"), nil, 0o644))
}

// Where nobody can put a cover back the sandbox ends: in the fallback, and when
// a folder above it is taken away. The move of the root itself takes nothing
// off.
func TestUncovered(t *testing.T) {
	for name, tc := range map[string]struct {
		capture Capture
		change  func(dir string) error
	}{
		"fallback": {CaptureExplicit, func(dir string) error { return os.Rename(dir+"/other", dir+"/.env") }},
		"folder":   {CaptureAuto, func(dir string) error { return os.Rename(dir+"/a", dir+"/a.old") }},
		"root":     {CaptureAuto, func(dir string) error { return os.Rename(dir, dir+".old") }},
	} {
		t.Run(name, func(t *testing.T) {
			r := run{As: user(), Network: Captured, Capture: tc.capture, Shell: "echo ready; sleep 1; [ $(wc -c < .env) = 0 ] && exit 6; sleep 9"}
			r.prepare(t)
			r.put(t, "proj/.env", "S")
			r.put(t, "proj/other", "S")
			r.put(t, "proj/a/b/p.yaml", "P")
			r.Grants = []mount.Grant{{Path: r.Cwd, Write: true}}
			r.Keep = []string{r.Cwd + "/a/b/p.yaml"}
			cmd := r.command(t)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 16)); err != nil {
				t.Fatal(err)
			}
			if name == "root" {
				// Before it is watched, a folder that is no longer there ends it too.
				time.Sleep(2 * watchAfter)
			}
			start := time.Now()
			if err := tc.change(r.Cwd); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its status is looked at
			code := cmd.ProcessState.ExitCode()
			if name == "root" {
				if code != 6 {
					t.Errorf("status %d, want 6", code)
				}
				return
			}
			if code != 137 || time.Since(start) > 800*time.Millisecond {
				t.Errorf("status %d after %v, want 137 at once", code, time.Since(start))
			}
			if !strings.Contains(stderr.String(), "event: uncovered") {
				t.Errorf("stderr %q does not say why", stderr.String())
			}
		})
	}
}

// The keeper, which is the helper, holds nothing that leads to the sandbox or to
// egressd but its own control: a descriptor of the launcher's would keep its end
// from being seen, and a mount's what it shows.
func TestKeeperHoldsNothing(t *testing.T) {
	r := run{As: user(), Network: Captured, Shell: "echo ready; while [ ! -e go ]; do sleep 0.02; done"}
	r.prepare(t)
	r.put(t, "proj/.env", "S")
	cmd := r.command(t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() {
		t.Fatal("it says nothing")
	}
	keepers := 0
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if line, err := os.ReadFile(path); err != nil || string(line) != helperName+"\x00" {
			continue
		}
		keepers++
		sockets := 0
		fds, err := filepath.Glob(filepath.Join(filepath.Dir(path), "fd", "*"))
		if err != nil || len(fds) == 0 {
			t.Fatalf("looking at %s: %d descriptors, %v", path, len(fds), err)
		}
		for _, fd := range fds {
			to, err := os.Readlink(fd)
			switch n := filepath.Base(fd); {
			case err != nil:
				t.Error(err)
			case n == "0", n == "1", n == "2", to == "anon_inode:[eventpoll]", to == "anon_inode:[eventfd]":
			case strings.HasPrefix(to, "/sys/fs/cgroup/"): // Go reads there how many processors it has
			case strings.HasPrefix(to, "socket:"):
				sockets++
			default:
				t.Errorf("descriptor %s is %s", n, to)
			}
		}
		if sockets != 1 {
			t.Errorf("%d sockets, want the control alone", sockets)
		}
	}
	if keepers == 0 {
		t.Error("there is no keeper")
	}
	r.put(t, "proj/go", "")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
