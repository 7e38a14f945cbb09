//go:build linux

// Package seccomp writes the system call filter of a sandbox, as the bytes that
// bwrap --seccomp reads: a program in classic BPF, an array of struct
// sock_filter.
//
// What it refuses, with EPERM where nothing else is said:
//
//   - what container engines refuse a container without capabilities: modules,
//     kexec, clocks, swap, mounts, other namespaces, bpf, perf, userfaultfd, the
//     placement of memory, and their kin;
//   - what they let through and this sandbox does not: ptrace and reads of other
//     processes' memory, io_uring, the key rings, typing into a terminal
//     (TIOCSTI, TIOCLINUX);
//   - set-uid and set-gid bits in whatever makes or changes a file, so that
//     nothing a sandbox leaves behind can raise anybody;
//   - new namespaces;
//   - sockets of any family but UNIX, INET, INET6 and NETLINK_ROUTE
//     (EAFNOSUPPORT, as from a kernel without them);
//   - clone3 and openat2, whose arguments lie in memory, where a filter cannot
//     look, and every call newer than the filter: ENOSYS, so that libraries fall
//     back to older calls;
//   - the calls of another architecture, such as int 0x80: the process is killed
//     by SIGSYS, since numbers mean other calls there. x32's are ENOSYS.
//
// Arguments that the kernel takes as int are compared in their low 32 bits: it
// ignores the others, and so a filter that looked at all 64 would let TIOCSTI
// with a bit set above through.
package seccomp

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// newest is the last call of the tables that the filter was written by (Linux
// 6.18). Old kernels do not have all of them, new ones have more.
const newest = 471

// Program returns the filter for an architecture, by Go's name for it: amd64 or
// arm64. The error says that it is neither.
func Program(arch string) ([]byte, error) {
	filter, err := assemble(arch)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, f := range filter {
		// Both architectures are little-endian as Linux runs on them here.
		out = binary.LittleEndian.AppendUint16(out, f.Code)
		out = append(out, f.Jt, f.Jf)
		out = binary.LittleEndian.AppendUint32(out, f.K)
	}
	return out, nil
}

// assemble writes the filter: the architecture, the newest call, then each call
// that the rules name, and what is left is allowed. The calls that are looked
// into come first: the kernel remembers which calls are always allowed
// (Linux 5.11), so those are what each run of the filter is for.
func assemble(arch string) ([]unix.SockFilter, error) {
	var a assembler
	var auditArch uint32
	switch arch {
	case "amd64":
		auditArch = unix.AUDIT_ARCH_X86_64
	case "arm64":
		auditArch = unix.AUDIT_ARCH_AARCH64
	default:
		return nil, fmt.Errorf("writing the seccomp filter: architecture %q has none", arch)
	}
	a.load(offsetArch)
	a.jump(unix.BPF_JEQ, auditArch, 1, 0)
	a.ret(unix.SECCOMP_RET_KILL_PROCESS)
	a.load(offsetNumber)
	a.jump(unix.BPF_JGT, newest, 0, 1) // x32's numbers have bit 30 set
	a.ret(errno(unix.ENOSYS))
	for _, r := range rules() {
		n := numbers[r.call].of(arch)
		if n == absent {
			continue
		}
		a.rule(uint32(n), r)
	}
	a.ret(unix.SECCOMP_RET_ALLOW)
	return a.out, nil
}

func (n number) of(arch string) int {
	if arch == "arm64" {
		return n.arm64
	}
	return n.amd64
}

func errno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
