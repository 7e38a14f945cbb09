//go:build linux

package netns

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/netns/mount"
)

// A terminal is made inside: it has a device, is the controlling one, and the
// program is in its foreground.
func TestTerminal(t *testing.T) {
	r := run{As: user(), Pty: true, Shell: "test -t 0 && test -t 1 && test -t 2 && tty && [ -c $(tty) ] && echo yes > /dev/tty; ps -o stat= -p $$ | grep -c +"}
	got := r.do(t)
	if want := "/dev/pts/0\r\nyes\r\n1\r\n"; got.Stderr != want || got.Code != 0 {
		t.Errorf("got %+v, want %q", got, want)
	}
}

// A stop and what follows it are told; a signal to the program reaches it.
func TestStop(t *testing.T) {
	r := run{As: user(), Shell: "(sleep 0.3; kill -CONT $$) & kill -STOP $$; sleep 0.3; echo on"}
	got := r.expect(t, "on\n")
	if !strings.Contains(got.Stderr, "event: stopped 19") || !strings.Contains(got.Stderr, "event: continued") {
		t.Errorf("stderr %q tells of no stop", got.Stderr)
	}
	r = run{As: user(), Leave: "SIGTERM", Argv: []string{"sleep", "30"}}
	if got := r.do(t); got.Code != 143 {
		t.Errorf("got %+v, want 143", got)
	}
	r = run{As: user(), Leave: "SIGUSR1", Argv: []string{"sh", "-c", "trap 'echo caught; exit 3' USR1; while :; do sleep 0.1; done"}}
	if got := r.do(t); got.Code != 3 || got.Stdout != "caught\n" {
		t.Errorf("got %+v, want 3 and caught", got)
	}
}

// What cannot be executed has the shell's status for it, and words.
func TestNotStarted(t *testing.T) {
	for _, tc := range []struct {
		argv  []string
		code  int
		words string
	}{
		{[]string{"none-such"}, 127, "none-such: not found in the sandbox"},
		{[]string{"./none"}, 127, "./none: not found in the sandbox"},
		{[]string{"./text"}, 126, "./text: not a program: the file has no #! line"},
		{[]string{"./plain"}, 126, "./plain: permission denied"},
		{[]string{"./badscript"}, 127, "./badscript: not found"},
		{[]string{"/usr"}, 126, "/usr: a folder is no program"},
		{[]string{""}, 127, "not found"},
	} {
		r := run{As: user(), Argv: tc.argv}
		r.prepare(t)
		r.put(t, "proj/text", "echo ran\n")
		r.put(t, "proj/plain", "#!/bin/sh\n")
		r.put(t, "proj/badscript", "#!/no/such/interpreter\n")
		for _, x := range []string{"text", "badscript"} {
			if err := os.Chmod(filepath.Join(r.Cwd, x), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		got := r.do(t)
		if got.Code != tc.code || !strings.Contains(got.Stderr, tc.words) {
			t.Errorf("%q: got %+v, want %d and %q", tc.argv, got, tc.code, tc.words)
		}
	}
}

// Limits hold for the program, and the launcher's own threads are not counted.
func TestLimits(t *testing.T) {
	r := run{As: user(), Limits: Limits{OpenFiles: 64, Processes: 32, CPUSeconds: 7, Memory: 256 << 20},
		Shell: "ulimit -n; ulimit -t; ulimit -d; exec python3 -c '" + `
import os, time
n = 0
try:
    while n < 200:
        if os.fork() == 0:
            time.sleep(5); os._exit(0)
        n += 1
except OSError:
    print(30 <= n <= 48)
'`}
	r.expect(t, "64\n7\n262144\nTrue\n")
}

// The host's network is the host's, as are the files that say how names are
// found; none is a loopback alone.
func TestNetworks(t *testing.T) {
	host, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	r := run{As: user(), Network: HostNetwork, Shell: "cat /etc/resolv.conf; readlink /proc/self/ns/net"}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	r.expect(t, string(host)+own+"\n")
	r = run{As: user(), Network: NoNetwork, Check: true, Shell: "cat /etc/resolv.conf; curl -s -m 2 http://203.0.113.1/ || echo none; " +
		"python3 -c \"import socket; print([n for _, n in socket.if_nameindex()])\"; curl -s http://127.0.0.1:3128/ || echo none"}
	r.expect(t, "nameserver 127.0.0.1\nnone\n['lo']\nnone\n")
}

// Files lie where they are put: in /etc anywhere, elsewhere over a file of the
// host, and nothing inside can write them.
func TestFiles(t *testing.T) {
	text := func(path, data string) mount.Entry { return mount.Entry{Path: path, Mode: 0o444, Data: []byte(data)} }
	r := run{As: user(), Files: []mount.Entry{text("/etc/ssl/certs/ca-certificates.crt", "A\n"), text("/etc/pki/tls/cert.pem", "B\n"),
		text("/run/egressd/ca.pem", "C\n"), text("/usr/share/common-licenses/BSD", "D\n"), text("/usr/no/such/file", "E\n")}}
	r.Shell = "for f in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/cert.pem /run/egressd/ca.pem /usr/share/common-licenses/BSD; do " +
		"cat $f; sh -c \"echo x >> $f\" 2>/dev/null && echo wrote; done"
	got := r.expect(t, "A\nB\nC\nD\n")
	if !strings.Contains(got.Stderr, "/usr/no/such/file is not placed") {
		t.Errorf("stderr %q does not tell what is not placed", got.Stderr)
	}
}

// SIGTERM before the program runs, and a program that stops the launcher, end
// like anything else.
func TestEnds(t *testing.T) {
	before := procs(t)
	r := run{As: user(), Network: Captured, Shell: "kill -STOP $PPID; sleep 0.5; kill -CONT $PPID; exit 4"}
	if got := r.do(t); got.Code != 4 {
		t.Errorf("got %+v, want 4", got)
	}
	r = run{As: user(), Network: Captured, Shell: "kill -9 $PPID; sleep 5; echo on"}
	start := time.Now()
	if got := r.do(t); got.Code != 137 || got.Stdout != "" || time.Since(start) > 4*time.Second {
		t.Errorf("a launcher that was killed: got %+v after %v, want 137", got, time.Since(start))
	}
	r = run{As: user(), Network: Captured, Shell: "sleep 5"}
	cmd := r.command(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if stay := left(t, before, time.Second); len(stay) > 0 {
		t.Errorf("left: %s", stay)
	}
}

// A program that signals all it can see does not end its own run, and it
// starts with no signal ignored or blocked. (Signal 32 is the C library's own: a
// test with the race detector is linked with one, which blocks it now and then.)
func TestSignals(t *testing.T) {
	r := run{As: user(), Shell: "grep -E '^Sig(Ign|Blk):' /proc/self/status | cut -f2 | sed s/80000000$/00000000/ | sort -u; trap '' TERM HUP USR1; " +
		"kill -TERM -1; kill -HUP -1; kill -USR1 -1; sleep 0.2; exit 5"}
	if got := r.expect(t, "0000000000000000\n"); got.Code != 5 {
		t.Errorf("got %+v, want 5", got)
	}
}

// A program is found in the sandbox's PATH, never by way of the working folder.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a/run": 0o644, "b/run": 0o755, "plain/only": 0o644} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(dir, "b"))
	for _, tc := range []struct {
		name, path string
		want       string
		code       int
	}{
		{"run", dir + "/a:" + dir + "/b", dir + "/b/run", 0},
		{"only", dir + "/a:" + dir + "/plain", "", 126},
		{"run", ":.", "", 127},
		{"none", dir + "/a", "", 127},
		{"./run", "", "./run", 0},
	} {
		got, err := find(tc.name, []string{"X=1", "PATH=" + tc.path})
		code := 0
		if e, ok := err.(*execError); ok {
			code = e.Code
		}
		if got != tc.want || code != tc.code {
			t.Errorf("%s in %s: %s and %d, want %s and %d", tc.name, tc.path, got, code, tc.want, tc.code)
		}
	}
}

// The program's PATH has the entries that exist inside, and no others.
func TestLivePath(t *testing.T) {
	dir := t.TempDir()
	got := livePath([]string{"A=1", "PATH=" + dir + "/none:" + dir + "::." + ":/dev/null:" + dir, "B=2"})
	if want := []string{"A=1", "PATH=" + dir + ":" + dir, "B=2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is read of a parcel is what was put in, and nothing that was cut short.
func FuzzParcel(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}rest"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := memoryFile("fuzz", data)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		var p program
		blobs, err := unparcel(file, &p)
		if err == nil && len(blobs) > len(data)-8 {
			t.Errorf("%d bytes of %d", len(blobs), len(data))
		}
	})
}

// Versions of bwrap before 0.8 are too old.
func TestOlderThan(t *testing.T) {
	var old []string
	for _, v := range []string{"0.7.0", "0.8", "0.8.0", "0.10.1", "1.0", "0", "x", ""} {
		if olderThan(v, oldestBwrap) {
			old = append(old, v)
		}
	}
	if want := []string{"0.7.0", "0", "x", ""}; !slices.Equal(old, want) {
		t.Errorf("too old: %q, want %q", old, want)
	}
}
