package proxytest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideMark is the first argument of the test binary in namespaces of its own.
const insideMark = "proxytest-namespaced"

// Namespaced runs f in a copy of the test binary that has a mount, a pid and a
// network namespace of its own (and a user namespace, where the test is not
// root). There every file system is read-only but dir, a temporary folder that
// is also TMPDIR and HOME; /proc is the new pid namespace's; the only network
// is an empty loopback. So a sandbox under test that fails to hold harms
// nothing. The copy dies with the test.
//
// It must be the first thing that a top-level test does. A kernel that forbids
// it fails the test.
func Namespaced(t *testing.T, f func(t *testing.T, dir string)) {
	t.Helper()
	if args := flag.Args(); len(args) == 2 && args[0] == insideMark {
		if err := enclose(args[1]); err != nil {
			t.Fatalf("closing the namespaces: %v", err)
		}
		f(t, args[1])
		return
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatalf("making folder: %v", err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatalf("finding the test binary: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+regexp.QuoteMeta(t.Name())+"$",
		"-test.v=true", "-test.count=1", "--", insideMark, dir)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	if uid := os.Geteuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	// Pdeathsig follows the thread that started the process, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	switch {
	case err != nil:
		t.Fatalf("in its own namespaces: %v\n%s", err, text)
	case !strings.Contains(text, "--- PASS: "+t.Name()):
		t.Fatalf("in its own namespaces the test did not run:\n%s", text)
	}
	if testing.Verbose() {
		t.Log(text)
	}
}

// enclose makes everything but dir read-only and brings loopback up.
func enclose(dir string) error {
	if os.Getpid() != 1 {
		return errors.New("not in a pid namespace of its own")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s: %w", dir, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, readOnly); err != nil {
		return fmt.Errorf("making / read-only: %w", err)
	}
	for _, path := range []string{dir, "/proc"} {
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("making %s writable: %w", path, err)
		}
	}
	// The working folder is still the mount that dir was bound over.
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("entering %s: %w", dir, err)
	}
	return loopbackUp()
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bringing lo up: %w", err)
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("bringing lo up: %w", err)
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("bringing lo up: %w", err)
	}
	return nil
}
