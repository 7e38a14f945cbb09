package seatbelt

import (
	"fmt"
	"strings"
)

// writer collects the text.
type writer struct{ text strings.Builder }

func (w *writer) title(text string) { fmt.Fprintf(&w.text, "\n; %s\n", text) }

// rule writes one rule; where is its filters, empty for none.
func (w *writer) rule(action, operations, where string) {
	switch {
	case where == "":
		fmt.Fprintf(&w.text, "(%s %s)\n", action, operations)
	case strings.Contains(where, "\n"):
		fmt.Fprintf(&w.text, "(%s %s\n\t%s)\n", action, operations, where)
	default:
		fmt.Fprintf(&w.text, "(%s %s %s)\n", action, operations, where)
	}
}

// readable are the kernel's figures that loaders, runtimes and shells read.
// Neither other processes' arguments (kern.procargs2) nor the list of processes
// is among them.
var readable = []string{
	"hw.activecpu", "hw.busfrequency", "hw.busfrequency_compat", "hw.byteorder", "hw.cacheconfig", "hw.cachelinesize",
	"hw.cachelinesize_compat", "hw.cpufamily", "hw.cpufrequency", "hw.cpufrequency_compat", "hw.cpusubfamily",
	"hw.cpusubtype", "hw.cputype", "hw.cpu64bit_capable", "hw.l1dcachesize", "hw.l1dcachesize_compat", "hw.l1icachesize",
	"hw.l1icachesize_compat", "hw.l2cachesize", "hw.l2cachesize_compat", "hw.l3cachesize", "hw.l3cachesize_compat",
	"hw.logicalcpu", "hw.logicalcpu_max", "hw.machine", "hw.memsize", "hw.memsize_usable", "hw.model", "hw.ncpu",
	"hw.nperflevels", "hw.packages", "hw.pagesize", "hw.pagesize_compat", "hw.physicalcpu", "hw.physicalcpu_max",
	"hw.tbfrequency", "hw.tbfrequency_compat", "hw.targettype", "hw.vectorunit",
	"kern.argmax", "kern.boottime", "kern.clockrate", "kern.hostname", "kern.iossupportversion", "kern.maxfiles",
	"kern.maxfilesperproc", "kern.maxproc", "kern.maxprocperuid", "kern.monotonicclock", "kern.ngroups",
	"kern.osproductversion", "kern.osproductversioncompat", "kern.osrelease", "kern.ostype", "kern.osvariant_status",
	"kern.osversion", "kern.saved_ids", "kern.secure_kernel", "kern.securelevel", "kern.sysv.semmns", "kern.tcsm_available",
	"kern.tcsm_enable", "kern.usrstack64", "kern.version", "kern.willshutdown",
	"machdep.ptrauth_enabled", "security.mac.lockdown_mode_state", "sysctl.proc_cputype", "sysctl.proc_native",
	"sysctl.proc_translated", "vm.loadavg", "vm.pagesize",
}

// readableBelow are beginnings of more of them.
var readableBelow = []string{"hw.optional.", "hw.perflevel", "machdep.cpu.", "net.routetable."}

// services are those of launchd that a program is lost without: names of users
// and groups, and news of changes. None of them starts a program, opens a file
// or holds a secret.
var services = []string{
	"com.apple.system.notification_center",
	"com.apple.system.opendirectoryd.libinfo",
	"com.apple.system.opendirectoryd.membership",
}

// netServices find names and verify certificates. trustd loads what certificates
// point to, so it is there only where the network is open anyway.
var netServices = []string{
	"com.apple.SystemConfiguration.DNSConfiguration",
	"com.apple.SystemConfiguration.configd",
	"com.apple.dnssd.service",
	"com.apple.mDNSResponder",
	"com.apple.networkd",
	"com.apple.trustd",
	"com.apple.trustd.agent",
}

// start writes what a program needs to start at all.
func (w *writer) start() {
	w.text.WriteString("(version 1)\n(deny default)\n")
	w.title("processes: its own, and those that run in the same sandbox")
	w.rule("allow", "process-fork", "")
	w.rule("allow", "signal process-info*", "(target same-sandbox)")
	w.title("figures of the kernel")
	var names []string
	for _, n := range readable {
		names = append(names, "(sysctl-name "+quote(n)+")")
	}
	for _, n := range readableBelow {
		names = append(names, "(sysctl-name-prefix "+quote(n)+")")
	}
	w.rule("allow", "sysctl-read", strings.Join(names, "\n\t"))
	w.rule("allow", "sysctl-write", `(sysctl-name "kern.grade_cputype")`) // a question, asked as a write
	w.title("services of the system")
	w.rule("allow", "mach-lookup", named(services))
	w.rule("allow", "ipc-posix-shm-read*", `(ipc-posix-name "apple.shm.notification_center")`)
	w.rule("allow", "ipc-posix-sem", "")
}

func named(list []string) string {
	var out []string
	for _, n := range list {
		out = append(out, "(global-name "+quote(n)+")")
	}
	return strings.Join(out, "\n\t")
}

// devices writes the devices, and the terminals that are the program's: its own
// and those it makes. The kernel marks the latter. All others are the user's.
func (w *writer) devices(terminal string) {
	w.title("devices and terminals")
	w.rule("deny", reading+" "+writing, `(subpath "/dev")`)
	w.rule("allow", "file-read* file-test-existence", `(literal "/dev")`)
	w.rule("allow", "file-read* file-test-existence file-write-data file-ioctl", each("literal", []string{"/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx"}))
	w.rule("allow", "file-read* file-test-existence", each("literal", []string{"/dev/random", "/dev/urandom"}))
	w.rule("allow", "file-read* file-test-existence file-write-data", `(subpath "/dev/fd")`)
	w.rule("allow", "file-read* file-test-existence file-write-data", each("literal", []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"}))
	w.rule("allow", "pseudo-tty", "")
	const whole = "file-read* file-test-existence file-write* file-ioctl"
	w.rule("allow", whole, `(require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty"))`)
	if terminal != "" {
		w.rule("allow", whole, "(literal "+quote(terminal)+")")
	}
}

// network writes who may be talked to.
func (w *writer) network(p *Profile) {
	w.title("network")
	if len(p.Sockets) > 0 {
		w.rule("allow", "system-socket", "(socket-domain AF_UNIX)")
		for _, s := range sorted(p.Sockets) {
			w.rule("allow", "network-bind", "(local unix-socket (subpath "+quote(s)+"))")
			w.rule("allow", "network-inbound", "(local unix-socket (subpath "+quote(s)+"))")
			w.rule("allow", "network-outbound", "(remote unix-socket (subpath "+quote(s)+"))")
		}
	}
	loopback := func(side string, port int) string { return fmt.Sprintf(`(%s ip "localhost:%d")`, side, port) }
	switch p.Network {
	case Proxied:
		w.rule("allow", "network-outbound", loopback("remote", p.Proxy))
	case Unfiltered:
		w.rule("allow", "network-outbound", "(remote ip)")
		w.rule("allow", "network-bind network-inbound", "(local ip)")
		w.rule("allow", "network-outbound", `(remote unix-socket (path-literal "/private/var/run/mDNSResponder"))`)
		w.rule("allow", "file-read* file-test-existence", each("literal", []string{"/private/etc/resolv.conf", "/private/var/run/resolv.conf"}))
		w.rule("allow", "mach-lookup", named(netServices))
	}
	for _, port := range p.Publish {
		w.rule("allow", "network-bind network-inbound", loopback("local", port))
		w.rule("allow", "network-outbound", loopback("remote", port))
	}
}
