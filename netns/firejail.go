//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/firejail"
	"github.com/egressd/egressd/netns/seccomp"
)

// FindFirejail looks firejail up in path as FindProgram does.
func FindFirejail(path string, avoid []string) (string, error) {
	if at, ok := FindProgram("firejail", path, avoid); ok {
		return at, nil
	}
	return "", &Unavailable{Problem: "firejail is not installed", Advice: "install the package firejail"}
}

// FirejailVersion asks firejail for its version.
func FirejailVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.Dir = []string{}, "/"
	out, err := cmd.Output()
	if err != nil {
		return "", &Unavailable{Problem: path + " does not run", Advice: "reinstall the package firejail", Err: err}
	}
	first, _, _ := strings.Cut(string(out), "\n")
	version := strings.TrimPrefix(strings.TrimSpace(first), "firejail version ")
	if olderThan(version, oldestFirejail) {
		return version, &Unavailable{
			Problem: fmt.Sprintf("firejail %s is too old, 0.9.72 is needed", version),
			Advice:  "install a newer package firejail",
		}
	}
	return version, nil
}

// oldestFirejail is the first version with restrict-namespaces.
var oldestFirejail = []int{0, 9, 72}

// Descriptors of firejail and, but for the last, of the launcher in it.
const (
	firejailHail    = 3 // the launcher's control
	firejailImage   = 4 // egressd's own binary
	firejailProfile = 5
)

// startFirejail lets firejail build the view, for a policy without rules. The
// launcher in it is the same as bwrap's, but that it brings its filter itself.
func (s *Session) startFirejail(ctx context.Context) error {
	if s.cfg.Network == Captured {
		return &Unavailable{Problem: "firejail filters no network", Advice: "use bwrap (sandbox.type: linux_bwrap)"}
	}
	if s.id.invented {
		s.id = s.id.asRoot("firejail knows no users but the host's")
	}
	profile, err := s.firejailProfile()
	if err != nil {
		return err
	}
	hail, hailEnd, err := controlPair()
	if err != nil {
		return err
	}
	s.chain.launcher = hail
	files := []*os.File{hailEnd}
	defer func() { closeFiles(files) }()
	image, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("opening egressd's own file: %w", err)
	}
	files = append(files, image)
	text, err := memoryFile("profile", profile)
	if err != nil {
		return err
	}
	files = append(files, text)
	at := func(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
	argv := []string{s.cfg.Firejail, "--quiet", "--profile=" + at(firejailProfile),
		fmt.Sprintf("--keep-fd=%d,%d", firejailHail, firejailImage), "--", at(firejailImage), jailedWord, strconv.Itoa(firejailHail)}
	cmd := &exec.Cmd{Path: s.cfg.Firejail, Args: argv, Env: []string{"PATH=/usr/bin:/bin", "SHELL=/bin/sh"}, Dir: "/",
		Stdout: s.chain.said, Stderr: s.chain.said, ExtraFiles: files, SysProcAttr: &syscall.SysProcAttr{Setsid: true}, WaitDelay: time.Second}
	if s.id.root && s.id.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.id.uid), Gid: uint32(s.id.gid), Groups: []uint32{}}
	}
	if s.group != nil {
		s.group.Into(cmd.SysProcAttr)
	}
	if s.chain.child, err = startChild(cmd); err != nil {
		return firejailFailed(ctx, s.cfg.Firejail, err.Error())
	}
	return nil
}

// firejailProfile looks at the host and says the plan in firejail's words.
func (s *Session) firejailProfile() ([]byte, error) {
	account := entry("/etc/passwd", strconv.Itoa(s.id.uid), 7)
	if account == nil {
		return nil, &Unavailable{Problem: fmt.Sprintf("firejail serves users of the host alone, and uid %d is not in /etc/passwd", s.id.uid),
			Advice: "use bwrap (sandbox.type: linux_bwrap)"}
	}
	h := firejail.Host{Home: account[5], Root: s.id.uid == 0, Network: s.cfg.Network == HostNetwork}
	names, err := os.ReadDir("/")
	if err != nil {
		return nil, fmt.Errorf("listing /: %w", err)
	}
	for _, n := range names {
		if n.Type()&os.ModeSymlink == 0 {
			h.Names = append(h.Names, n.Name())
		}
	}
	if h.Resolv, err = filepath.EvalSymlinks("/etc/resolv.conf"); err != nil {
		h.Resolv = "" // without one names are not found, as on the host
	}
	text, notes, err := firejail.Profile(s.plan, h)
	s.notes = append(s.notes, notes...)
	return text, err
}

// firejailFailed explains a firejail that ended before the launcher was there.
func firejailFailed(ctx context.Context, path, said string) error {
	if _, err := FirejailVersion(ctx, path); err != nil {
		return err
	}
	var lines []string
	for l := range strings.Lines(said) {
		if l = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(l), "Error: "), "."); l != "" {
			lines = append(lines, l)
		}
	}
	if said = strings.Join(lines, "; "); said == "" {
		said = "it said nothing"
	}
	return &Unavailable{Problem: "firejail failed", Advice: "install bwrap (the package bubblewrap), which needs no root", Err: errors.New(said)}
}

// jailed is the launcher in firejail: it puts itself under the filter first.
// firejail that finds no thread of the kernel among the first processes takes
// itself for one in a sandbox, as in every container, and then starts programs
// without one.
func jailed(fd int) {
	if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || set != 1 {
		fmt.Fprintln(os.Stderr, "it takes this host for a sandbox and adds none, as in every container")
		return
	}
	if err := filterSelf(); err != nil {
		fmt.Fprintf(os.Stderr, "filtering system calls: %v\n", err)
		return
	}
	launcher(fd)
}

// filterSelf puts every thread of this process under the filter.
func filterSelf() error {
	program, err := seccomp.Program(runtime.GOARCH)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	filter := unsafe.Slice((*unix.SockFilter)(unsafe.Pointer(&program[0])), len(program)/int(unsafe.Sizeof(unix.SockFilter{})))
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d cannot be filtered", thread)
	}
	return nil
}
