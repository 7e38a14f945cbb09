package audit

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// roleVariable makes the test binary play another process.
const roleVariable = "EGRESSD_AUDIT_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "writer":
		os.Exit(writerRole(os.Args[1]))
	case "disk":
		os.Exit(diskRole(os.Args[1], os.Args[2]))
	}
	os.Exit(2)
}

// roleCommand runs this binary in a role.
func roleCommand(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// ownMounts gives a command a mount namespace of its own, in which it may mount.
func ownMounts(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
}
