//go:build linux

package seccomp

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write testdata anew")

// call is a system call as the filter sees it.
type call struct {
	arch uint32
	nr   uint32
	args [6]uint64
}

// verdict runs a filter over a call, as the kernel does.
func verdict(t *testing.T, filter []unix.SockFilter, c call) uint32 {
	t.Helper()
	words := map[uint32]uint32{offsetNumber: c.nr, offsetArch: c.arch}
	for i, a := range c.args {
		words[uint32(offsetArgs+8*i)], words[uint32(offsetArgs+8*i+4)] = uint32(a), uint32(a>>32)
	}
	var acc uint32
	for pc := 0; pc < len(filter); pc++ {
		f := filter[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(f.Jt)
			} else {
				pc += int(f.Jf)
			}
		}
		switch f.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			word, ok := words[f.K]
			if !ok {
				t.Fatalf("instruction %d loads offset %d", pc, f.K)
			}
			acc = word
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= f.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == f.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(acc > f.K)
		case unix.BPF_RET | unix.BPF_K:
			return f.K
		default:
			t.Fatalf("instruction %d: unknown code %#x", pc, f.Code)
		}
	}
	t.Fatal("the filter ends without a verdict")
	return 0
}

var arches = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

const allowed = unix.SECCOMP_RET_ALLOW

func TestCallsThatAreLookedInto(t *testing.T) {
	eperm, efamily, enosys := errno(unix.EPERM), errno(unix.EAFNOSUPPORT), errno(unix.ENOSYS)
	const high = 1 << 32 // a bit that the kernel does not see
	tests := []struct {
		call string
		args [6]uint64
		want uint32
	}{
		{"ioctl", [6]uint64{0, unix.TCGETS}, allowed},
		{"ioctl", [6]uint64{0, unix.TIOCSTI}, eperm},
		{"ioctl", [6]uint64{0, unix.TIOCSTI + high}, eperm},
		{"ioctl", [6]uint64{0, unix.TIOCLINUX}, eperm},
		{"ioctl", [6]uint64{0, unix.TIOCLINUX + 0xdeadbeef<<32}, eperm},
		{"ioctl", [6]uint64{unix.TIOCSTI, unix.TIOCSWINSZ, unix.TIOCSTI}, allowed},
		{"chmod", [6]uint64{0, 0o755}, allowed},
		{"chmod", [6]uint64{0, 0o1777}, allowed},
		{"chmod", [6]uint64{0, 0o4755}, eperm},
		{"chmod", [6]uint64{0, 0o2755 + high}, eperm},
		{"chmod", [6]uint64{0o6000, 0o644}, allowed},
		{"fchmod", [6]uint64{3, 0o6755}, eperm},
		{"fchmod", [6]uint64{3, 0o600}, allowed},
		{"fchmodat", [6]uint64{0, 0, 0o4000}, eperm},
		{"fchmodat", [6]uint64{0, 0, 0o777}, allowed},
		{"fchmodat2", [6]uint64{0, 0, 0o2000, 0}, eperm},
		{"fchmodat2", [6]uint64{0, 0, 0o700, 0o4000}, allowed},
		{"creat", [6]uint64{0, 0o4755}, eperm},
		{"creat", [6]uint64{0, 0o644}, allowed},
		{"mkdir", [6]uint64{0, 0o2775}, eperm},
		{"mkdir", [6]uint64{0, 0o1777}, allowed},
		{"mkdirat", [6]uint64{0, 0, 0o2775}, eperm},
		{"mkdirat", [6]uint64{0, 0, 0o755}, allowed},
		{"mknod", [6]uint64{0, unix.S_IFREG | 0o4755}, eperm},
		{"mknod", [6]uint64{0, unix.S_IFIFO | 0o600}, allowed},
		{"mknodat", [6]uint64{0, 0, unix.S_IFREG | 0o2755}, eperm},
		{"mknodat", [6]uint64{0, 0, unix.S_IFSOCK | 0o600}, allowed},
		{"open", [6]uint64{0, unix.O_CREAT | unix.O_WRONLY, 0o4755}, eperm},
		{"open", [6]uint64{0, unix.O_CREAT | unix.O_WRONLY, 0o644}, allowed},
		{"open", [6]uint64{0, unix.O_TMPFILE | unix.O_RDWR, 0o4755}, eperm},
		{"open", [6]uint64{0, unix.O_RDONLY, 0o4755}, allowed}, // no file is made: the argument holds anything
		{"open", [6]uint64{0, unix.O_DIRECTORY | unix.O_CLOEXEC, ^uint64(0)}, allowed},
		{"openat", [6]uint64{0, 0, unix.O_CREAT + high, 0o2755 + high}, eperm},
		{"openat", [6]uint64{0, 0, oTmpfile, 0o6000}, eperm},
		{"openat", [6]uint64{0, 0, unix.O_CREAT, 0o1777}, allowed},
		{"openat", [6]uint64{0, 0, unix.O_RDWR, 0o4755}, allowed},
		{"mq_open", [6]uint64{0, unix.O_CREAT, 0o4600}, eperm},
		{"mq_open", [6]uint64{0, unix.O_CREAT, 0o600}, allowed},
		{"mq_open", [6]uint64{0, unix.O_RDONLY, ^uint64(0)}, allowed},
		{"clone", [6]uint64{uint64(unix.SIGCHLD)}, allowed},
		{"clone", [6]uint64{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM | unix.CLONE_SETTLS}, allowed},
		{"clone", [6]uint64{unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD | uint64(unix.SIGCHLD)}, allowed},
		{"clone", [6]uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, eperm},
		{"clone", [6]uint64{unix.CLONE_NEWNS + high}, eperm},
		{"clone", [6]uint64{unix.CLONE_NEWNET}, eperm},
		{"clone", [6]uint64{unix.CLONE_NEWPID}, eperm},
		{"clone", [6]uint64{unix.CLONE_NEWIPC}, eperm},
		{"clone", [6]uint64{unix.CLONE_NEWUTS}, eperm},
		{"clone", [6]uint64{unix.CLONE_NEWCGROUP}, eperm},
		{"unshare", [6]uint64{unix.CLONE_FS | unix.CLONE_FILES}, allowed},
		{"unshare", [6]uint64{unix.CLONE_NEWUSER}, eperm},
		{"unshare", [6]uint64{unix.CLONE_NEWTIME}, eperm},
		{"unshare", [6]uint64{unix.CLONE_FS | unix.CLONE_NEWNS + high}, eperm},
		{"socket", [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allowed},
		{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK}, allowed},
		{"socket", [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM}, allowed},
		{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, allowed},
		{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, efamily},
		{"socket", [6]uint64{unix.AF_NETLINK + high, unix.SOCK_RAW, unix.NETLINK_AUDIT + high}, efamily},
		{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE + high}, allowed},
		{"socket", [6]uint64{unix.AF_PACKET, unix.SOCK_RAW}, efamily},
		{"socket", [6]uint64{unix.AF_INET, sockPacket}, efamily},
		{"socket", [6]uint64{unix.AF_INET, sockPacket | unix.SOCK_CLOEXEC + high}, efamily},
		{"socket", [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, efamily},
		{"socket", [6]uint64{unix.AF_VSOCK + high, unix.SOCK_STREAM}, efamily},
		{"socket", [6]uint64{unix.AF_ALG}, efamily},
		{"socket", [6]uint64{unix.AF_BLUETOOTH}, efamily},
		{"socket", [6]uint64{0}, efamily},
		{"socketpair", [6]uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, allowed},
		{"socketpair", [6]uint64{unix.AF_TIPC, unix.SOCK_SEQPACKET}, efamily},
		{"personality", [6]uint64{0}, allowed},
		{"personality", [6]uint64{0xffffffff}, allowed},
		{"personality", [6]uint64{0x20008}, allowed},
		{"personality", [6]uint64{0x0040000}, eperm}, // ADDR_NO_RANDOMIZE
		{"personality", [6]uint64{0x0400000}, eperm}, // READ_IMPLIES_EXEC
		{"clone3", [6]uint64{}, enosys},
		{"openat2", [6]uint64{}, enosys},
	}
	for arch, audit := range arches {
		filter := filterOf(t, arch)
		for _, tt := range tests {
			n := numbers[tt.call].of(arch)
			if n == absent {
				continue
			}
			if got := verdict(t, filter, call{audit, uint32(n), tt.args}); got != tt.want {
				t.Errorf("%s: %s %#x: got %#x, want %#x", arch, tt.call, tt.args, got, tt.want)
			}
		}
	}
}

func filterOf(t *testing.T, arch string) []unix.SockFilter {
	t.Helper()
	filter, err := assemble(arch)
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// Every call of the kernel's table is either one of numbers or allowed whatever
// its arguments; numbers are the kernel's.
func TestNumbers(t *testing.T) {
	for arch, audit := range arches {
		filter, table := filterOf(t, arch), kernelTable(t, arch)
		last := slices.Max(slices.Collect(maps.Values(table)))
		if last != newest {
			t.Errorf("%s: the newest call of x/sys is %d, the filter's %d: look at those between", arch, last, newest)
		}
		for name, n := range numbers {
			want, ok := table[name]
			if !ok {
				want = absent
			}
			if got := n.of(arch); got != want {
				t.Errorf("%s: %s is %d, here %d", arch, name, want, got)
			}
		}
		for name, n := range table {
			if _, ok := numbers[name]; ok {
				continue
			}
			for _, args := range [][6]uint64{{}, {^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}} {
				if got := verdict(t, filter, call{audit, uint32(n), args}); got != allowed {
					t.Errorf("%s: %s gives %#x", arch, name, got)
				}
			}
		}
		for _, c := range []struct {
			call
			want uint32
		}{
			{call{arch: unix.AUDIT_ARCH_I386, nr: 20}, unix.SECCOMP_RET_KILL_PROCESS},
			{call{arch: unix.AUDIT_ARCH_ARM, nr: 20}, unix.SECCOMP_RET_KILL_PROCESS},
			{call{arch: 0, nr: 39}, unix.SECCOMP_RET_KILL_PROCESS},
			{call{arch: audit, nr: newest + 1}, errno(unix.ENOSYS)},
			{call{arch: audit, nr: 39 | 1<<30}, errno(unix.ENOSYS)}, // x32's getpid
			{call{arch: audit, nr: ^uint32(0)}, errno(unix.ENOSYS)},
		} {
			if got := verdict(t, filter, c.call); got != c.want {
				t.Errorf("%s: call %d of architecture %#x: got %#x, want %#x", arch, c.nr, c.arch, got, c.want)
			}
		}
	}
	if _, err := Program("riscv64"); err == nil {
		t.Error("a filter for an architecture whose numbers nobody looked up")
	}
}

// kernelTable reads an architecture's calls from x/sys, which has them from the
// kernel's headers.
func kernelTable(t *testing.T, arch string) map[string]int {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatalf("finding x/sys: %v", err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"))
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+= (\d+)$`).FindAllStringSubmatch(string(source), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if m[1] != "ARCH_SPECIFIC_SYSCALL" { // the first of sixteen that arm64 leaves free
			table[strings.ToLower(m[1])] = n
		}
	}
	if len(table) < 300 {
		t.Fatalf("%d calls of %s in x/sys", len(table), arch)
	}
	return table
}

// The filter as a person reads it. go test -update writes it anew.
func TestListing(t *testing.T) {
	for arch := range arches {
		got := listing(filterOf(t, arch), arch)
		path := filepath.Join("testdata", arch+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != got {
			t.Errorf("%s differs (%v): read the difference after go test -update", path, err)
		}
	}
}

func listing(filter []unix.SockFilter, arch string) string {
	names := map[uint32]string{}
	for name, n := range numbers {
		names[uint32(n.of(arch))] = name
	}
	var b strings.Builder
	what := "" // what stands in the accumulator
	for pc, f := range filter {
		fmt.Fprintf(&b, "%3d  ", pc)
		switch f.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			switch {
			case f.K == offsetNumber:
				what = "number"
			case f.K == offsetArch:
				what = "arch"
			default:
				what = fmt.Sprintf("arg%d", (f.K-offsetArgs)/8)
			}
			fmt.Fprintf(&b, "load %s\n", what)
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			fmt.Fprintf(&b, "and %#o\n", f.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			op := "=="
			if f.Code&0xf0 == unix.BPF_JGT {
				op = ">"
			}
			k := fmt.Sprintf("%#x", f.K)
			if name := names[f.K]; what == "number" && name != "" {
				k = name
			}
			fmt.Fprintf(&b, "if %s %s %s then %d else %d\n", what, op, k, pc+1+int(f.Jt), pc+1+int(f.Jf))
		default:
			switch f.K {
			case allowed:
				b.WriteString("allow\n")
			case unix.SECCOMP_RET_KILL_PROCESS:
				b.WriteString("kill\n")
			default:
				fmt.Fprintf(&b, "%s\n", unix.ErrnoName(unix.Errno(f.K&0xffff)))
			}
			what = "number" // the next instruction is another call's
		}
	}
	return b.String()
}

func TestProgramBytes(t *testing.T) {
	for arch := range arches {
		out, err := Program(arch)
		filter := filterOf(t, arch)
		if err != nil || len(out) != 8*len(filter) || len(filter) > 4096 {
			t.Fatalf("%s: %d bytes, %d instructions, %v", arch, len(out), len(filter), err)
		}
		for i, f := range filter {
			b := out[8*i:]
			if uint16(b[0])|uint16(b[1])<<8 != f.Code || b[2] != f.Jt || b[3] != f.Jf || uint32(b[4])|uint32(b[5])<<8|uint32(b[6])<<16|uint32(b[7])<<24 != f.K {
				t.Fatalf("%s: instruction %d is %x", arch, i, b[:8])
			}
		}
	}
}
