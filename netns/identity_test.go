//go:build linux

package netns

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// Where the file system cannot show its files under another owner, root's
// sandbox is uid 0 of the host without a capability, and a line says so.
func TestRootWithoutIdmap(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is root's path")
	}
	r := run{Network: Captured, Check: true, Shell: "id -u; touch f && stat -c %u f; grep -E '^Cap(Eff|Prm|Amb|Bnd):' /proc/self/status | cut -f2 | sort -u"}
	r.prepare(t)
	if err := unix.Mount("ramfs", r.Cwd, "ramfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(r.Cwd, unix.MNT_DETACH) })
	r.Grants = []mount.Grant{{Path: r.Cwd, Write: true}}
	got := r.expect(t, "1000\n1000\n0000000000000000\n")
	if !strings.Contains(got.Stderr, "note: the sandbox runs with uid 0 of the host, without capabilities") {
		t.Errorf("stderr %q does not say so", got.Stderr)
	}
	owned(t, filepath.Join(r.Cwd, "f"), 0)
}

// In a container that maps 65536 ids the invented uid is one of those.
func TestRootInContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is root's path")
	}
	r := run{Network: Captured, Shell: "id -u; touch f && stat -c %u f"}
	r.prepare(t)
	r.Grants = []mount.Grant{{Path: r.Cwd, Write: true}}
	cmd := r.command(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}},
		GidMappingsEnableSetgroups: true,
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "1000\n1000\n") {
		t.Errorf("%v: %s", err, out)
	}
	if strings.Contains(string(out), "explicit") {
		t.Errorf("capture is lost: %s", out)
	}
	owned(t, filepath.Join(r.Cwd, "f"), 0)
}

// A host without IPv6 has the other half.
func TestWithoutIPv6(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace of the test's own needs root")
	}
	type result struct {
		ipv6  bool
		doors int
		err   error
	}
	done := make(chan result)
	var apart func()
	apart = func() {
		runtime.LockOSThread() // the thread, and its namespace, end here
		if unix.Gettid() == unix.Getpid() {
			// All but the first thread: it never ends, and /proc/self shows its
			// namespaces. While this one is held, the next gets another.
			go apart()
			runtime.Gosched()
			defer runtime.UnlockOSThread()
			time.Sleep(10 * time.Millisecond)
			return
		}
		var r result
		if r.err = unix.Unshare(unix.CLONE_NEWNET); r.err == nil {
			r.err = os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0o644)
		}
		if r.err == nil {
			r.ipv6, r.err = captureNetwork()
		}
		if r.err == nil {
			var files []*os.File
			files, r.err = openListeners(r.ipv6)
			r.doors = len(files)
			closeFiles(files)
		}
		done <- r
	}
	go apart()
	if r := <-done; r.err != nil || r.ipv6 || r.doors != 5 {
		t.Errorf("got %+v", r)
	}
}

// The parts of an id map, as the kernel shows it.
func TestIDsFrom0(t *testing.T) {
	for text, want := range map[string]int{
		"         0          0 4294967295\n": 4294967295, "0 100000 65536\n": 65536, "0 1000 1\n1 100000 65536\n": 1, "5 5 5\n": 0, "": 0,
	} {
		if got := idsFrom0(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
