//go:build linux

package seccomp

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// insideMark is the argument of the test binary that lives under the filter.
const insideMark = "under-the-filter"

// TestKernel installs the filter in a copy of the test binary, which needs no
// right, and tries the calls there.
func TestKernel(t *testing.T) {
	if slices.Contains(flag.Args(), insideMark) {
		install(t)
		tryRefused(t)
		tryModes(t)
		tryAllowed(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKernel$", "-test.v", "--", insideMark)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestKernel") {
		t.Fatalf("under the filter: %v\n%s", err, out)
	}
}

// install puts every thread of this process under the filter.
func install(t *testing.T) {
	t.Helper()
	filter := filterOf(t, runtime.GOARCH)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); e != 0 {
		t.Fatalf("installing the filter: %v", e)
	}
}

// tryRefused makes each call that is refused whatever its arguments, with ones
// that would do nothing without a filter.
func tryRefused(t *testing.T) {
	const nothing = ^uintptr(0)
	tried := 0
	for _, r := range rules() {
		n := numbers[r.call].of(runtime.GOARCH)
		// vhangup takes no argument that could keep it from doing its work.
		if n == absent || len(r.refusals[0].when) > 0 || r.call == "vhangup" {
			continue
		}
		tried++
		if _, _, e := unix.Syscall6(uintptr(n), nothing, nothing, nothing, nothing, nothing, nothing); e != r.refusals[0].errno {
			t.Errorf("%s gives %v, want %v", r.call, e, r.refusals[0].errno)
		}
	}
	if tried < 60 {
		t.Errorf("only %d calls were tried", tried)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const high = 1 << 32
	for _, tt := range []struct {
		what string
		nr   uintptr
		args [3]uintptr
		want syscall.Errno
	}{
		{"TIOCSTI", unix.SYS_IOCTL, [3]uintptr{null.Fd(), unix.TIOCSTI}, unix.EPERM},
		{"TIOCSTI with a bit above", unix.SYS_IOCTL, [3]uintptr{null.Fd(), unix.TIOCSTI + high}, unix.EPERM},
		{"TIOCLINUX", unix.SYS_IOCTL, [3]uintptr{null.Fd(), unix.TIOCLINUX}, unix.EPERM},
		{"another ioctl", unix.SYS_IOCTL, [3]uintptr{null.Fd(), unix.TCGETS}, unix.ENOTTY},
		{"AF_PACKET", unix.SYS_SOCKET, [3]uintptr{unix.AF_PACKET, unix.SOCK_RAW}, unix.EAFNOSUPPORT},
		{"AF_VSOCK", unix.SYS_SOCKET, [3]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
		{"SOCK_PACKET", unix.SYS_SOCKET, [3]uintptr{unix.AF_INET, sockPacket}, unix.EAFNOSUPPORT},
		{"netfilter's netlink", unix.SYS_SOCKET, [3]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, unix.EAFNOSUPPORT},
		{"a pair of AF_TIPC", unix.SYS_SOCKETPAIR, [3]uintptr{30, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
		{"a user namespace", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWUSER}, unix.EPERM},
		{"a time namespace", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWTIME}, unix.EPERM},
		{"memory without random places", unix.SYS_PERSONALITY, [3]uintptr{0x0040000}, unix.EPERM},
		{"a call of tomorrow", newest + 1, [3]uintptr{}, unix.ENOSYS},
	} {
		if _, _, e := unix.Syscall(tt.nr, tt.args[0], tt.args[1], tt.args[2]); e != tt.want {
			t.Errorf("%s gives %v, want %v", tt.what, e, tt.want)
		}
	}
	err = exec.Command("/bin/true").Run()
	if err != nil {
		t.Errorf("an ordinary child: %v", err)
	}
	spaces := exec.Command("/bin/true")
	spaces.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
	if err := spaces.Run(); !errors.Is(err, unix.EPERM) {
		t.Errorf("a child in new namespaces: %v", err)
	}
}

// tryModes makes files with the bits that raise, in every way there is.
func tryModes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := func(s string) string { return filepath.Join(dir, s) }
	open := func(path string, flags int, mode uint32) error {
		fd, err := unix.Open(path, flags, mode)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	for _, bits := range []uint32{0o4000, 0o2000, 0o6000} {
		mode := bits | 0o755
		for what, err := range map[string]error{
			"chmod":         unix.Chmod(path, mode),
			"fchmod":        unix.Fchmod(int(f.Fd()), mode),
			"fchmodat":      unix.Fchmodat(unix.AT_FDCWD, path, mode, 0),
			"fchmodat2":     unix.Fchmodat(unix.AT_FDCWD, path, mode, unix.AT_SYMLINK_NOFOLLOW),
			"open":          open(name("made"), unix.O_CREAT|unix.O_WRONLY, mode),
			"O_TMPFILE":     open(dir, unix.O_TMPFILE|unix.O_RDWR, mode),
			"mkdir":         unix.Mkdir(name("folder"), mode),
			"mkdirat":       unix.Mkdirat(unix.AT_FDCWD, name("folder"), mode),
			"mknod":         unix.Mknod(name("node"), unix.S_IFREG|mode, 0),
			"mknodat":       unix.Mknodat(unix.AT_FDCWD, name("node"), unix.S_IFREG|mode, 0),
			"os.Chmod":      os.Chmod(path, 0o755|os.ModeSetuid),
			"with sticky":   unix.Chmod(path, mode|unix.S_ISVTX),
			"bits above":    unix.Chmod(path, mode|1<<20),
			"an old openat": open(path, unix.O_CREAT|unix.O_RDWR, mode),
		} {
			if !errors.Is(err, unix.EPERM) {
				t.Errorf("%s with mode %#o: %v", what, mode, err)
			}
		}
	}
	for what, err := range map[string]error{
		"chmod":   unix.Chmod(path, 0o1755),
		"open":    open(name("made"), unix.O_CREAT|unix.O_WRONLY, 0o755),
		"mkdir":   unix.Mkdir(name("folder"), 0o1777),
		"fifo":    unix.Mkfifo(name("fifo"), 0o600),
		"reading": open(path, unix.O_RDONLY, 0o6755),
	} {
		if err != nil {
			t.Errorf("%s without the bits: %v", what, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

func tryAllowed(t *testing.T) {
	for _, family := range [][3]int{{unix.AF_UNIX, unix.SOCK_STREAM, 0}, {unix.AF_INET, unix.SOCK_STREAM, 0}, {unix.AF_INET6, unix.SOCK_DGRAM, 0}, {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}} {
		fd, err := unix.Socket(family[0], family[1]|unix.SOCK_CLOEXEC, family[2])
		if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) || err != nil && family[0] != unix.AF_INET6 { // a host may be without IPv6
			t.Errorf("socket %v: %v", family, err)
			continue
		}
		unix.Close(fd)
	}
	root, err := os.OpenRoot(t.TempDir()) // falls back from openat2
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("a", []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
}

// tools are programs that have to go on working, with what they print.
var tools = []struct {
	name, install string
	args          []string
	want          string
}{
	{"sh", "dash", []string{"-c", "echo $(echo hello) | cat; umask 022; mkdir /tmp/d; : > /tmp/d/f; chmod 4755 /tmp/d/f 2> /dev/null || ls -l /tmp/d/f | cut -c1-10"}, "hello\n-rw-r--r--"},
	{"python3", "python3", []string{"-c", "import socket,subprocess,threading,tempfile,multiprocessing as m\ntempfile.TemporaryFile().write(b'x')\ns=socket.create_server(('127.0.0.1',0)); socket.create_connection(s.getsockname())\nt=threading.Thread(target=print,args=('he',),kwargs={'end':'','flush':True}); t.start(); t.join()\np=m.get_context('fork').Process(target=print,args=('llo',)); p.start(); p.join()"}, "hello"},
	{"python3", "python3", []string{"-c", "import fcntl,termios,os\ntry: fcntl.ioctl(0,termios.TIOCSTI,b'x')\nexcept OSError as e: print(e.errno)\ntry: os.open('/tmp/s',os.O_CREAT|os.O_WRONLY,0o4755)\nexcept OSError as e: print(e.errno)\ntry: os.mkdir('/tmp/g',0o2775)\nexcept OSError as e: print(e.errno)"}, "1\n1\n1"},
	{"node", "nodejs", []string{"-e", "const fs=require('fs'),{Worker}=require('worker_threads'),cp=require('child_process');fs.promises.writeFile('/tmp/n','x').then(()=>require('net').createServer().listen(0,'127.0.0.1',function(){this.close();new Worker('require(\"worker_threads\").parentPort.postMessage(1)',{eval:true}).on('message',()=>console.log(cp.execSync('echo hello').toString().trim()))}))"}, "hello"},
	{"git", "git", []string{"-c", "init.defaultBranch=main", "init", "-q", "/tmp/r"}, ""},
	{"curl", "curl", []string{"-sS", "--noproxy", "*", "file:///proc/sys/kernel/ostype"}, "Linux"},
	{"go", "golang-go", []string{"run", "/tmp/src/hello.go"}, "hello"},
	{"java", "openjdk-17-jdk-headless", []string{"-cp", "/tmp/src", "Hello"}, "hello"},
}

// TestBubblewrap runs tools behind bwrap --seccomp, as netns does.
func TestBubblewrap(t *testing.T) {
	bwrap := find(t, "bwrap", "bubblewrap")
	program, err := Program(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	src := t.TempDir()
	hello := "package main\n\nfunc main() { c := make(chan string); go func() { c <- \"hello\\n\" }(); print(<-c) }\n"
	if err := os.WriteFile(filepath.Join(src, "hello.go"), []byte(hello), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), find(t, "javac", "openjdk-17-jdk-headless"), "-d", src, "testdata/Hello.java").CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	goCache := strings.TrimSpace(string(cache))
	if err := os.MkdirAll(goCache, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, tt := range tools {
		t.Run(fmt.Sprint(i, " ", tt.name), func(t *testing.T) {
			find(t, tt.name, tt.install)
			out, err := behind(t, bwrap, program, []string{"--bind", goCache, goCache, "--ro-bind", src, "/tmp/src", "--setenv", "HOME", "/tmp", "--setenv", "GOCACHE", goCache}, append([]string{tt.name}, tt.args...))
			if err != nil || strings.TrimSpace(out) != tt.want {
				t.Errorf("%v: %q, want %q", err, out, tt.want)
			}
		})
	}
}

// TestInt80 calls the kernel by the numbers of another architecture.
func TestInt80(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		return // arm64's other architecture needs another processor mode: the interpreter's test stands for it
	}
	program, err := Program(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "int80")
	if out, err := exec.CommandContext(t.Context(), find(t, "gcc", "gcc libc6-dev"), "-O0", "-o", bin, "testdata/int80.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := behind(t, find(t, "bwrap", "bubblewrap"), program, []string{"--ro-bind", bin, "/tmp/int80"}, []string{"/tmp/int80"})
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 128+int(unix.SIGSYS) || strings.Contains(out, "pid") {
		t.Errorf("%v: %q", err, out)
	}
}

// behind runs a command in bwrap with the filter as descriptor 3.
func behind(t *testing.T, bwrap string, program []byte, options, command []string) (string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.Write(program); err != nil { // less than a pipe holds
		t.Fatal(err)
	}
	w.Close()
	args := []string{"--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--seccomp", "3"}
	cmd := exec.CommandContext(t.Context(), bwrap, slices.Concat(args, options, []string{"--"}, command)...)
	cmd.ExtraFiles = []*os.File{r}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func find(t *testing.T, name, install string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: apt-get install %s", name, install)
	}
	return path
}
