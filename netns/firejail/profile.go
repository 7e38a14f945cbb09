//go:build linux

package firejail

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/egressd/egressd/netns/mount"
)

// Host is what a profile needs to know of the host and of whose run it is.
type Host struct {
	Home    string   // of the account that firejail runs as, from passwd
	Root    bool     // that account is uid 0
	Network bool     // the program has the host's network; else none
	Names   []string // what lies in /, but for links
	Resolv  string   // where /etc/resolv.conf leads to
}

// RefusedError is a plan that firejail cannot carry out.
type RefusedError struct{ Path, Problem string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("making a sandbox of firejail: %s: %s", e.Path, e.Problem)
}

// Reason is the policy's word for it.
func (e *RefusedError) Reason() string { return "bad_value" }

// Hint is what to do about it.
func (e *RefusedError) Hint() string {
	return "use bwrap (sandbox.type: linux_bwrap), or do not grant it"
}

// nothing is a name that is not there: to allow only that in a folder empties
// the folder.
const nothing = "/egressd-shows-nothing-here"

// constant is what every sandbox has. The program's system calls are filtered
// by the launcher, with the filter that bwrap gets too.
var constant = []string{
	"quiet", "deterministic-exit-code", "deterministic-shutdown",
	"caps.drop all", "nonewprivs", "nogroups", "restrict-namespaces", "ipc-namespace", "machine-id",
	"private-dev", "disable-mnt", "dbus-user none", "dbus-system none",
	"noinput", "nosound", "noautopulse", "nodvd", "notv", "nou2f", "novideo", "no3d", "noprinters",
}

// made are the folders in / that every view has, whatever the host shows.
var made = []string{"dev", "proc", "etc", "tmp", "run", "var"}

// Profile is the plan as the text of a firejail profile. The notes are lines
// for the operator: what is less than the plan says.
func Profile(p mount.Plan, h Host) (text []byte, notes []string, err error) {
	w := writer{plan: p, host: h}
	for _, line := range constant {
		w.add(line)
	}
	if !h.Root { // of root's there is nobody else to leave out
		w.add("noroot")
	}
	if !h.Network {
		w.add("net none")
	}
	w.etc()
	w.tops()
	w.forRoot()
	for _, b := range p.Base {
		if b.Target == "" {
			w.path("read-only", b.Path)
		}
	}
	for i := range p.Roots {
		w.root(&p.Roots[i])
	}
	for _, c := range p.Covers {
		w.masks++
		w.path("blacklist", c.Path)
	}
	if w.err != nil {
		return nil, nil, w.err
	}
	return []byte(strings.Join(w.lines, "\n") + "\n"), w.notes(), nil
}

// writer collects lines, and the first error of many small steps.
type writer struct {
	plan  mount.Plan
	host  Host
	lines []string
	masks int
	err   error
}

func (w *writer) add(line string) { w.lines = append(w.lines, line) }

func (w *writer) refuse(path, problem string) {
	if w.err == nil {
		w.err = &RefusedError{path, problem}
	}
}

// path adds a line about one path, which must mean itself to firejail.
func (w *writer) path(word, path string) {
	if !plain(path) {
		w.refuse(path, "firejail would read this name as a pattern, or not at all")
	}
	w.add(word + " " + path)
}

// plain reports whether firejail takes a path for what it says: profiles have
// no quoting, and patterns and macros are read in every path.
func plain(path string) bool {
	for _, c := range []byte(path) {
		if c < ' ' || c == 0x7f || strings.IndexByte("\\&!?\"'<>%^{};,*[]#$~", c) >= 0 {
			return false
		}
	}
	return strings.HasPrefix(path, "/") && strings.TrimSpace(path) == path && !strings.Contains(path, "..")
}

// notes say in few words what the user would wonder about.
func (w *writer) notes() []string {
	out := "firejail shows the names of the host's folders in /, a copy of its /etc, and an empty /var"
	if w.masks > 0 {
		out += "; what is hidden cannot be read, but does not read as empty"
	}
	return []string{out}
}

// etc lists what of the host's /etc is shown: the names that every sandbox
// shares, and what stands in for the files that are made new elsewhere.
func (w *writer) etc() {
	names := []string{"passwd", "group", "hosts", "nsswitch.conf", "ssl/certs", "ssl/openssl.cnf", "pki", "ca-certificates"}
	if w.host.Network {
		names = append(names, "resolv.conf")
	}
	for _, e := range w.plan.Etc {
		if name, ok := strings.CutPrefix(e.Path, "/etc/"); ok && (e.Host != "" || e.Target != "") && e.Path != "/etc/mtab" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return !plain("/" + n) })
	w.add("private-etc " + strings.Join(names, ","))
}

// tops decides for each folder in / whether it is the system's, shows only what
// is granted in it, or cannot be entered.
func (w *writer) tops() {
	granted := map[string][]string{} // by the first name of a grant
	for _, r := range w.plan.Roots {
		top := first(r.Path)
		switch {
		case r.Path == "/":
			w.refuse(r.Path, "it cannot be granted as a whole")
		case r.Source != r.Path:
			w.refuse(r.Path, "a folder of the host cannot be shown under another name (home, fork)")
		case slices.Contains([]string{"dev", "proc", "sys", "etc", "run"}, top):
			w.refuse(r.Path, "a grant there cannot be told apart from what is firejail's")
		}
		granted[top] = append(granted[top], r.Path)
	}
	w.home(granted)
	names := append(slices.Clone(w.host.Names), made...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		w.top(name, granted[name])
	}
}

func (w *writer) top(name string, granted []string) {
	path := "/" + name
	switch {
	case mount.InBase(path), slices.Contains([]string{"dev", "proc", "etc"}, name):
	case slices.Contains(granted, path):
		if w.plan.Temp == "/var/tmp" || w.plan.Temp == "/dev/shm" {
			w.refuse(path, "with it there is no temporary folder")
		}
	case len(granted) > 0:
		for _, g := range granted {
			if mount.Below(g, "/var/tmp") {
				w.add("keep-var-tmp") // else it is covered before anything in it is allowed
			}
			if !slices.ContainsFunc(granted, func(o string) bool { return o != g && mount.Below(g, o) }) {
				w.path("whitelist", g)
			}
		}
	case name == "tmp":
		w.add("private-tmp")
	case name == "run" && w.host.Network && mount.Below(w.host.Resolv, "/run"):
		w.path("whitelist", w.host.Resolv)
	case name == "run", name == "var":
		w.add("whitelist " + path + nothing)
	case w.plan.Home == w.host.Home && mount.Below(w.host.Home, path): // private, see home
	default:
		w.path("blacklist", path)
	}
}

// home makes HOME private where no grant shows it. firejail can do that to the
// account's own home alone.
func (w *writer) home(granted map[string][]string) {
	home := w.plan.Home
	if slices.ContainsFunc(w.plan.Roots, func(r mount.Root) bool { return mount.Below(home, r.Path) }) {
		return
	}
	if len(w.plan.Links) > 0 {
		w.refuse(home, "it, or a grant, is reached by a link")
	}
	inHome := slices.ContainsFunc(granted[first(home)], func(g string) bool { return mount.Below(g, home) })
	switch {
	case home == w.host.Home && inHome: // what is allowed in it leaves the rest out
	case home == w.host.Home:
		w.add("private")
	case w.host.Root && inHome:
	default:
		w.refuse(home, fmt.Sprintf("HOME can only be private where it is the account's own, %s", w.host.Home))
	}
}

// forRoot makes the host read-only for a program with uid 0 of the host, which
// needs no capability to write to what is root's: /, firejail's own folder, in
// which the files of other sandboxes lie, and the kernel's settings in /proc.
// What is this sandbox's own is made writable again.
func (w *writer) forRoot() {
	if !w.host.Root {
		return
	}
	w.add("read-only /")
	w.add("read-only /run/firejail")
	w.add("read-write /run/firejail/mnt")
	for _, path := range mount.KernelSettings() {
		w.add("read-only " + path)
	}
	for _, f := range w.plan.Fresh {
		if f.Path != "/var/tmp" {
			w.path("read-write", f.Path)
		}
	}
	w.add("read-write /dev/shm")
}

// root says one grant, and what is read-only or hidden in it. The order is that
// of mount.Apply: pins, parts, masks, each shallow first.
func (w *writer) root(r *mount.Root) {
	switch {
	case r.Empty:
		w.masks++
		w.path("blacklist", r.Path)
		return
	case r.Write:
		w.write(r)
	default:
		w.path("read-only", r.Path)
	}
	for _, pin := range slices.Concat(r.Pins, r.LatePins) {
		// A mount cannot be renamed, nor what leads to it.
		w.path("read-only", filepath.Join(r.Path, pin))
		w.path("read-write", filepath.Join(r.Path, pin))
	}
	for _, part := range r.Parts {
		w.path("read-only", filepath.Join(r.Path, part))
	}
	for _, m := range r.Masks {
		at := filepath.Join(r.Path, m.Path)
		switch {
		case m.Link:
			w.refuse(at, "it is a link that must be hidden, and firejail would hide what it leads to")
		case len(m.Holes) > 0:
			w.refuse(filepath.Join(at, m.Holes[0].Path), "it is granted below a hidden folder")
		}
		w.masks++
		w.path("blacklist", at)
	}
}

// write makes a grant writable again where what holds it is read-only.
func (w *writer) write(r *mount.Root) {
	inside := mount.InBase(r.Path)
	for _, o := range w.plan.Roots {
		inside = inside || o.Path != r.Path && !o.Write && mount.Below(r.Path, o.Path)
	}
	if w.host.Root || inside || first(r.Path) == "var" { // firejail's own /var is read-only
		w.path("read-write", r.Path)
	}
}

// first is the first name of an absolute path.
func first(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name
}
