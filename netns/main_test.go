//go:build linux

package netns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// The tests start real sandboxes. As root they first put the whole test run
// into namespaces of its own in which everything but a temporary folder is
// read-only: a fault of the code under test must not reach the host's files.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "sandbox" {
		os.Exit(beEgressd(os.Args[2]))
	}
	if os.Geteuid() == 0 && os.Getenv("EGRESSD_TEST_APART") == "" {
		os.Exit(runApart())
	}
	if os.Geteuid() == 0 {
		if err := apart(); err != nil {
			fmt.Fprintln(os.Stderr, "setting the tests apart:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// runApart runs the tests again in their own namespaces.
func runApart() int {
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile") })
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "EGRESSD_TEST_APART=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "setting the tests apart:", err)
		return 1
	}
	return 0
}

// testBinary is a copy of the test's binary that every user may execute.
const testBinary = "/tmp/netns.test"

// apart makes every mount read-only, /tmp new, and the namespace's loopback
// work.
func apart() error {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	// The checkout may lie below /tmp, which is about to be new.
	if caseLines, err = readCases(); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	for _, m := range [][3]string{{"proc", "/proc", ""}, {"tmpfs", "/tmp", "mode=1777"}, {"tmpfs", "/dev/shm", "mode=1777"}} {
		if err := unix.Mount(m[0], m[1], m[0], 0, m[2]); err != nil {
			return err
		}
	}
	if err := os.WriteFile(testBinary, self, 0o755); err != nil {
		return err
	}
	return loopbackUp()
}

// run is one sandbox of a test. The zero value of most members is a plain one.
type run struct {
	As      int    // uid to run egressd as; 0 is root
	Shell   string // what to run, by sh -c
	Argv    []string
	Grants  []mount.Grant
	Config  func(*Config) `json:"-"`
	Network Network
	Capture Capture
	Hidden  []string
	Keep    []string // read-only
	Limits  Limits
	Pty     bool
	Path    string
	Files   []mount.Entry
	Texts   [][]byte // of Files, which JSON leaves out
	Invoker Invoker
	Check   bool // run every check before the program
	Names   *names
	Reload  *names // in force 300 ms after the start
	Forbid  bool   // the kernel refuses open_tree, as a host that forbids mounts
	Publish []Publish
	Binary  string // what to run instead of the test's binary
	Ahead   string // how a helper was started ahead: "", "other" (for another folder) or "unused"
	Early   string // what Config.Early fails with, or "ok"
	Stand   string // what of stands is done in a session without a program
	Leave   string // a signal to send the program 300 ms after the start

	Home, Cwd string // made by prepare
}

// outcome is what came of it.
type outcome struct {
	Stdout, Stderr string
	Code           int
}

// prepare makes a home with proj in it that belongs to the run's user.
func (r *run) prepare(t *testing.T) {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	r.Home, r.Cwd = base, filepath.Join(base, "proj")
	if err := os.Mkdir(r.Cwd, 0o755); err != nil {
		t.Fatal(err)
	}
	r.own(t)
}

// own gives everything below home to the run's user.
func (r *run) own(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(r.Home, func(path string, _ os.DirEntry, err error) error {
		if err != nil || os.Geteuid() != 0 {
			return err
		}
		return os.Lchown(path, r.As, r.As)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file below home, with the folders above it.
func (r *run) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(r.Home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r.own(t)
}

// command is a process of the run's user that is egressd as far as a sandbox
// can tell.
func (r *run) command(t *testing.T) *exec.Cmd {
	t.Helper()
	if r.Home == "" {
		r.prepare(t)
	}
	if r.Argv == nil && r.Stand == "" {
		r.Argv = []string{"sh", "-c", r.Shell}
	}
	for _, f := range r.Files {
		r.Texts = append(r.Texts, f.Data)
	}
	spec, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	binary := testBinary
	if os.Geteuid() != 0 {
		binary = "/proc/self/exe"
	}
	if r.Binary != "" {
		binary = r.Binary
	}
	cmd := exec.CommandContext(t.Context(), binary, "sandbox", string(spec))
	cmd.Dir = r.Cwd
	if os.Geteuid() == 0 && r.As != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.As), Gid: uint32(r.As)}}
	}
	return cmd
}

// do runs to the end.
func (r *run) do(t *testing.T) outcome {
	t.Helper()
	cmd := r.command(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// beEgressd is the process that do starts: it serves every door with a word
// about where the connection was going.
func beEgressd(spec string) int {
	var r run
	if err := json.Unmarshal([]byte(spec), &r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	for i := range r.Files {
		r.Files[i].Data = r.Texts[i]
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	path := r.Path
	if path == "" {
		path = "/usr/bin:/bin"
	}
	cfg := Config{Argv: r.Argv, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "USER=other"},
		Cwd: r.Cwd, Home: r.Home, Grants: r.Grants, Network: r.Network, Capture: r.Capture, Hidden: r.Hidden, ReadOnly: r.Keep,
		Limits: r.Limits, Files: r.Files, Invoker: r.Invoker, Path: path, Publish: r.Publish,
		Streams: Streams{Pty: r.Pty, Stdin: null, Stdout: os.Stdout, Stderr: dup(os.Stderr)},
		Event:   func(e Event) { fmt.Fprintln(os.Stderr, "event:", e.Kind, e.Signal, e.Name, e.At) }}
	if r.Pty {
		cfg.Streams = Streams{Pty: true}
	}
	if r.Stand != "" {
		cfg.Streams = Streams{}
	}
	if r.Network == Captured {
		for _, v := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			cfg.Env = append(cfg.Env, v+"=http://127.0.0.1:3128")
		}
		cfg.Env = append(cfg.Env, "NO_PROXY=localhost,127.0.0.1", "no_proxy=localhost,127.0.0.1")
	}
	if r.Names != nil {
		cfg.Names = r.Names
	}
	if r.Early != "" {
		cfg.Early = func(ctx context.Context, s *Session) error {
			if err := s.Refuses(ctx, "tcp", "203.0.113.7:9"); err != nil || r.Early == "ok" {
				return err
			}
			return errors.New(r.Early)
		}
	}
	if r.Forbid {
		if err := forbidMounts(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 125
		}
	}
	return serveRun(cfg, r)
}

// names are the rules of a test.
type names struct {
	Of   map[string][]int
	Bare []netip.AddrPort
}

func (n *names) Knows(host string) bool      { _, ok := n.Of[host]; return ok }
func (n *names) Ports(host string) []int     { return n.Of[host] }
func (n *names) Addresses() []netip.AddrPort { return n.Bare }

// forbidMounts makes the calling process one that may not clone mounts.
func forbidMounts() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPEN_TREE, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const allThreads = 1
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, 1, allThreads, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	return nil
}

func dup(f *os.File) *os.File {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return f
	}
	return os.NewFile(uintptr(fd), f.Name())
}

func serveRun(cfg Config, r run) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "egressd:", err)
		return 125
	}
	ctx, stop := signal.NotifyContext(testContext(), syscall.SIGTERM)
	defer stop()
	if cfg.Network == Captured || r.Ahead != "" {
		cwd := cfg.Cwd
		if r.Ahead == "other" {
			cwd = filepath.Dir(cwd)
		}
		cfg.Ahead = Begin(cwd, cfg.Invoker)
		defer cfg.Ahead.Close()
	}
	s, err := Start(ctx, cfg)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = s.Close() }()
	for _, n := range s.Notes() {
		fmt.Fprintln(os.Stderr, "note:", n)
	}
	if s.Explicit() != nil {
		go serveDoor("explicit", s)
		go serveDoor("captured", s)
	}
	if s.Terminal() != nil {
		go func() { _, _ = io.Copy(os.Stderr, s.Terminal()) }()
	}
	if r.Check {
		if err := selfTest(ctx, s, cfg); err != nil {
			return fail(err)
		}
	}
	if r.Stand != "" {
		return doStand(ctx, s, r.Stand)
	}
	if err := s.Go(ctx); err != nil {
		var no *NotStarted
		if errors.As(err, &no) {
			fmt.Fprintln(os.Stderr, "egressd:", err)
			return no.Code
		}
		return fail(err)
	}
	time.AfterFunc(300*time.Millisecond, func() {
		if r.Reload != nil {
			if err := s.SetNames(r.Reload); err != nil {
				fmt.Fprintln(os.Stderr, "reload:", err)
			}
		}
		if sig := unix.SignalNum(r.Leave); sig != 0 {
			_ = s.Signal(sig, false)
		}
	})
	code, err := s.Wait()
	if err != nil {
		return fail(err)
	}
	return code
}

// serveDoor answers HTTP with the door's name and the address that was
// dialled.
func serveDoor(name string, s *Session) {
	l := s.Captured()
	if name == "explicit" {
		l = s.Explicit()
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		local, _ := req.Context().Value(http.LocalAddrContextKey).(interface{ String() string })
		at, err := netip.ParseAddrPort(local.String())
		if err != nil {
			return
		}
		if host, pool := s.Lookup(at.Addr()); pool {
			_, _ = fmt.Fprintf(w, "%s %s:%d\n", name, host, at.Port())
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s\n", name, local)
	})}
	_ = server.Serve(l)
}
