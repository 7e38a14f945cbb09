//go:build linux

package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// rule is what is refused of one call: it is, with the errno of the first of the
// refusals that fits, and allowed if none does.
type rule struct {
	call     string
	refusals []refusal
}

// refusal fits if all of its conditions hold; without any, always.
type refusal struct {
	errno unix.Errno
	when  []condition
}

// condition looks at the low 32 bits of an argument, counted from 0, that mask
// leaves: they are one of values, or none of them.
type condition struct {
	arg    int
	mask   uint32
	values []uint32
	none   bool
}

func has(arg int, bits uint32) condition { return condition{arg, bits, []uint32{0}, true} }

func is(arg int, values ...uint32) condition { return condition{arg, ^uint32(0), values, false} }

func isNone(arg int, values ...uint32) condition { return condition{arg, ^uint32(0), values, true} }

const (
	raising = unix.S_ISUID | unix.S_ISGID
	// creates are the flags of open with which the kernel looks at the mode
	// (WILL_CREATE); without them that argument holds anything. O_TMPFILE's own
	// bit is its value without O_DIRECTORY, which differs by architecture.
	creates = unix.O_CREAT | oTmpfile
	// oTmpfile is __O_TMPFILE of the kernel.
	oTmpfile = 0o20000000
	// spaces are the flags of clone that make namespaces. CLONE_NEWTIME lies in
	// the bits of the exit signal there; only unshare and clone3 take it.
	spaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	sockPacket = 10 // SOCK_PACKET: with AF_INET it makes a socket of AF_PACKET
	typeMask   = 0xf
)

// looked are the rules that look at arguments.
var looked = []rule{
	{"openat", []refusal{{unix.EPERM, []condition{has(2, creates), has(3, raising)}}}},
	{"open", []refusal{{unix.EPERM, []condition{has(1, creates), has(2, raising)}}}},
	{"ioctl", []refusal{{unix.EPERM, []condition{is(1, unix.TIOCSTI, unix.TIOCLINUX)}}}},
	{"socket", families},
	{"socketpair", families},
	{"clone", []refusal{{unix.EPERM, []condition{has(0, spaces)}}}},
	{"unshare", []refusal{{unix.EPERM, []condition{has(0, spaces|unix.CLONE_NEWTIME)}}}},
	{"creat", mode(1)},
	{"chmod", mode(1)},
	{"fchmod", mode(1)},
	{"fchmodat", mode(2)},
	{"fchmodat2", mode(2)},
	{"mkdir", mode(1)},
	{"mkdirat", mode(2)},
	{"mknod", mode(1)},
	{"mknodat", mode(2)},
	{"mq_open", []refusal{{unix.EPERM, []condition{has(1, creates), has(2, raising)}}}},
	// The personalities that engines allow: Linux's own, with the 32-bit uname
	// and with 2.6 as its number, and the question which one it is. Others turn
	// off the protections of memory.
	{"personality", []refusal{{unix.EPERM, []condition{isNone(0, 0, 0x8, 0x20000, 0x20008, 0xffffffff)}}}},
}

var families = []refusal{
	{unix.EAFNOSUPPORT, []condition{isNone(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)}},
	{unix.EAFNOSUPPORT, []condition{is(0, unix.AF_NETLINK), isNone(2, unix.NETLINK_ROUTE)}},
	{unix.EAFNOSUPPORT, []condition{is(0, unix.AF_INET), {1, typeMask, []uint32{sockPacket}, false}}},
}

func mode(arg int) []refusal {
	return []refusal{{unix.EPERM, []condition{has(arg, raising)}}}
}

// blind are the calls whose arguments lie in memory: a library that meets ENOSYS
// uses clone and openat.
var blind = []string{"clone3", "openat2"}

// rules lists a rule for each call in numbers, those that look at arguments
// first, the rest by name.
func rules() []rule {
	out := slices.Clone(looked)
	named := map[string]bool{}
	for _, r := range looked {
		named[r.call] = true
	}
	for _, call := range blind {
		out = append(out, rule{call, []refusal{{errno: unix.ENOSYS}}})
		named[call] = true
	}
	var rest []string
	for call := range numbers {
		if !named[call] {
			rest = append(rest, call)
		}
	}
	slices.Sort(rest)
	for _, call := range rest {
		out = append(out, rule{call, []refusal{{errno: unix.EPERM}}})
	}
	return out
}
