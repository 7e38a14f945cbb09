//go:build linux

package netns

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// A published port leads from the host's loopback to the sandbox's, both ways
// and to the end of both streams.
func TestPublish(t *testing.T) {
	r := run{As: user(), Network: NoNetwork, Publish: []Publish{{Port: 8000, HostPort: 18000}}, Argv: []string{"python3", "-c", `
import socket
s = socket.create_server(("127.0.0.1", 8000))
c, _ = s.accept()
data = b""
while True:
    part = c.recv(65536)
    if not part: break
    data += part
c.sendall(b"got %d" % len(data))`}}
	cmd := r.command(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it has ended, if all is well
		_ = cmd.Wait()
	}()
	var answer []byte
	for range 100 {
		time.Sleep(30 * time.Millisecond)
		c, err := net.Dial("tcp", "127.0.0.1:18000")
		if err != nil {
			continue
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			t.Fatal("not TCP")
		}
		_, err = tcp.Write(make([]byte, 1<<20))
		if err == nil {
			err = tcp.CloseWrite()
		}
		if err == nil {
			answer, err = io.ReadAll(tcp)
		}
		_ = tcp.Close()
		if err == nil && len(answer) > 0 {
			break
		}
	}
	if string(answer) != "got 1048576" {
		t.Errorf("answer %q", answer)
	}
}

// Explicit capture that was asked for is the fallback, and says nothing.
func TestCaptureExplicit(t *testing.T) {
	r := run{As: user(), Network: Captured, Capture: CaptureExplicit, Check: true, Shell: "curl -s http://a.test/; curl -s --noproxy '*' http://203.0.113.9/ || echo none"}
	if got := r.expect(t, "explicit 127.0.0.1:3128\nnone\n"); got.Stderr != "" {
		t.Errorf("stderr %q", got.Stderr)
	}
}

// A grant of everything keeps the sandbox's own devices, and the home private.
func TestGrantOfEverything(t *testing.T) {
	r := run{As: user(), Shell: "echo x > /dev/null && ls /run; ls -A ~; touch ~/x && echo y > /dev/null && wc -l < /etc/passwd; " +
		"touch /usr/x /etc/x 2>/dev/null || echo refused; ls -d /var/lib"}
	r.prepare(t)
	r.put(t, "secret", "S")
	r.Grants = []mount.Grant{{Path: "/"}, {Path: "/dev", Write: true}}
	r.expect(t, "egressd\nproj\n3\nrefused\n/var/lib\n")
}

// Where the working folder is the home, it is what shows there.
func TestHomeAsWorkingFolder(t *testing.T) {
	r := run{As: user(), Shell: "cat f; cat ~/.netrc | wc -c; touch ~/x 2>/dev/null || echo refused; touch $TMPDIR/x && echo temp"}
	r.prepare(t)
	r.put(t, "f", "F\n")
	r.put(t, ".netrc", "N\n")
	r.Cwd = r.Home
	r.expect(t, "F\n0\nrefused\ntemp\n")
}

// Thousands of masks start as one does.
func TestManyMasks(t *testing.T) {
	r := run{As: user(), Shell: "cat .f4999 | wc -c; ls -A | wc -l"}
	r.prepare(t)
	for i := range 5000 {
		if err := os.WriteFile(filepath.Join(r.Cwd, fmt.Sprintf(".f%d", i)), []byte("S"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.own(t)
	start := time.Now()
	r.expect(t, "0\n5000\n")
	t.Logf("took %v", time.Since(start))
}

// egressd's binary may be one that only root can reach and read.
func TestClosedBinary(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is root's path")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "egressd")
	data, err := os.ReadFile(testBinary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := run{Binary: binary, Shell: "echo ok"}
	r.expect(t, "ok\n")
}

// A binary that was replaced since egressd started is copied, not the new one
// run.
func TestReplacedBinary(t *testing.T) {
	r := run{As: user(), Shell: "echo ok"}
	r.prepare(t)
	r.Binary = filepath.Join(r.Home, "egressd")
	copyBinary(t, r.Binary)
	// The shell removes the file between the exec and the start of the sandbox.
	r.Binary = wrapper(t, r.Home, "exec 9<"+r.Binary+"; rm "+r.Binary+"; exec /proc/self/fd/9 \"$@\"")
	r.expect(t, "ok\n")
}

func copyBinary(t *testing.T, path string) {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(path, self, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func wrapper(t *testing.T, dir, script string) string {
	t.Helper()
	path := filepath.Join(dir, "wrapper")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// What egressd's parent left open is open nowhere inside, in the fallback too.
func TestInheritedDescriptors(t *testing.T) {
	for _, capture := range []Capture{CaptureAuto, CaptureExplicit} {
		r := run{As: user(), Network: Captured, Capture: capture, Shell: "ls /proc/$$/fd; ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c outside"}
		r.prepare(t)
		r.put(t, "outside.txt", "x")
		binary := testBinary
		if os.Geteuid() != 0 {
			binary = self(t)
		}
		r.Binary = wrapper(t, r.Home, "exec 3<>"+r.Home+"/outside.txt 7<>"+r.Home+"/outside.txt; exec "+binary+" \"$@\"")
		r.expect(t, "0\n1\n2\n0\n")
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A link that is to stay as it is stays, and so does what it points to if that
// is named.
func TestKeptLink(t *testing.T) {
	r := run{As: user(), Shell: "rm -f egressd.yaml 2>/dev/null; mv egressd.yaml e 2>/dev/null; ln -sf other egressd.yaml 2>/dev/null; readlink egressd.yaml; cat egressd.yaml"}
	r.prepare(t)
	r.put(t, "proj/real/p.yaml", "P\n")
	if err := os.Symlink("real/p.yaml", filepath.Join(r.Cwd, "egressd.yaml")); err != nil {
		t.Fatal(err)
	}
	r.Grants = []mount.Grant{{Path: r.Cwd, Write: true}}
	r.Keep = []string{r.Cwd + "/egressd.yaml", r.Cwd + "/real/p.yaml"}
	r.expect(t, "real/p.yaml\nP\n")
}

// A socket that comes from inside must be of the namespace and kind asked for.
func TestCheckSocket(t *testing.T) {
	s := &Session{}
	open := func(domain, kind int) int {
		fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	if err := s.checkSocket(open(unix.AF_INET, unix.SOCK_STREAM), unix.AF_INET, unix.SOCK_STREAM); err != nil {
		t.Fatal(err)
	}
	for name, fd := range map[string]int{
		"another kind":   open(unix.AF_INET, unix.SOCK_DGRAM),
		"another family": open(unix.AF_INET6, unix.SOCK_STREAM),
		"a unix socket":  open(unix.AF_UNIX, unix.SOCK_STREAM),
	} {
		if err := s.checkSocket(fd, unix.AF_INET, unix.SOCK_STREAM); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	listening := open(unix.AF_INET, unix.SOCK_STREAM)
	if err := unix.Listen(listening, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.checkSocket(listening, unix.AF_INET, unix.SOCK_STREAM); err == nil {
		t.Error("a listening socket passes")
	}
	s.cookie++
	if err := s.checkSocket(open(unix.AF_INET, unix.SOCK_STREAM), unix.AF_INET, unix.SOCK_STREAM); err == nil {
		t.Error("a socket of another namespace passes")
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := s.checkSocket(int(file.Fd()), unix.AF_INET, unix.SOCK_STREAM); err == nil {
		t.Error("a file passes")
	}
	if err := checkMaster(file); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("/dev/null as a terminal: %v", err)
	}
}

// A start that is called off leaves nothing.
func TestCalledOff(t *testing.T) {
	before := procs(t)
	r := run{As: user(), Network: Captured, Shell: "echo ran"}
	for i := range 10 {
		cmd := r.command(t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 3 * time.Millisecond)
		_ = exec.Command("kill", fmt.Sprint(cmd.Process.Pid)).Run() // it may have ended
		_ = cmd.Wait()                                              // its status depends on the moment
		if stay := left(t, before, 3*time.Second); len(stay) > 0 {
			t.Fatalf("left: %s", stay)
		}
	}
}

// A helper that was started ahead is taken where it fits, and ends where it
// does not; the sandbox is the same.
func TestAhead(t *testing.T) {
	for _, as := range []int{0, 4242} {
		if os.Geteuid() != 0 && as != os.Geteuid() {
			as = os.Geteuid()
		}
		for _, how := range []string{"", "other", "unused"} {
			t.Run(fmt.Sprintf("%d %q", as, how), func(t *testing.T) {
				r := &run{As: as, Shell: "id -un; ls /proc | grep -c '^[0-9]'; ls -d /sys/class/net/* 2>/dev/null | wc -l", Network: Captured, Ahead: how, Check: true}
				if how == "unused" {
					r.Network = NoNetwork
				}
				before := procs(t)
				if out := r.do(t); out.Code != 0 || out.Stderr != "" {
					t.Errorf("%+v", out)
				}
				if os.Geteuid() != 0 {
					return // the host's other processes come and go
				}
				if stay := left(t, before, 2*time.Second); len(stay) > 0 {
					t.Errorf("left: %q", stay)
				}
			})
		}
	}
}

// What is tried before there is a launcher ends the start where it fails:
// nothing runs, and nothing is left.
func TestEarlyFails(t *testing.T) {
	for _, uid := range users() {
		for early, want := range map[string]int{"ok": 0, "the doors are open": 125} {
			before := procs(t)
			out := (&run{As: uid, Shell: "echo ran", Network: Captured, Early: early}).do(t)
			if ran := strings.Contains(out.Stdout, "ran"); out.Code != want || ran != (want == 0) || want != 0 && !strings.Contains(out.Stderr, early) {
				t.Errorf("%d %q: %+v", uid, early, out)
			}
			if os.Geteuid() != 0 {
				continue // the host's other processes come and go
			}
			if stay := left(t, before, 2*time.Second); len(stay) > 0 {
				t.Errorf("left: %q", stay)
			}
		}
	}
}
