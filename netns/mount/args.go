//go:build linux

package mount

import (
	"slices"
	"strconv"
	"strings"
)

// place is one thing at one path of the view, in bwrap's words.
type place struct {
	path string
	rank int // of two at one path the higher one stays
	args []string
}

const (
	rankBase = iota
	rankFresh
	rankRoot
	rankOwn
)

// sources says where bwrap finds what it binds, and how.
type sources struct {
	root     func(i int) string   // where a root is bound from
	spots    func(i int) []string // what is put on it
	file     func(i int) []string // the arguments that place a file
	empty    func(path string, dir bool) []string
	etc      []string // the arguments that make /etc
	launcher string
}

// view is the part of bwrap's arguments that builds the view, shallow first.
func (p *Plan) view(src sources) []string {
	places := []place{
		{"/proc", rankOwn, slices.Concat([]string{"--proc", "/proc"}, heldProc())},
		{"/dev", rankOwn, []string{"--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"}},
		{"/run", rankOwn, []string{"--tmpfs", "/run"}},
		{"/etc", rankOwn, src.etc},
		{"/var/run", rankFresh, []string{"--symlink", "/run", "/var/run"}},
	}
	for _, b := range p.Base {
		if b.Target != "" {
			places = append(places, place{b.Path, rankBase, []string{"--symlink", b.Target, b.Path}})
		} else {
			places = append(places, place{b.Path, rankBase, []string{"--ro-bind", b.Path, b.Path}})
		}
	}
	for _, l := range p.Links {
		places = append(places, place{l.Path, rankBase, []string{"--symlink", l.Target, l.Path}})
	}
	for _, f := range p.Fresh {
		args := []string{"--perms", strconv.FormatUint(uint64(f.Mode), 8), "--tmpfs", f.Path}
		places = append(places, place{f.Path, rankFresh, args})
	}
	if slices.ContainsFunc(p.Roots, func(r Root) bool { return r.Path == "/" }) {
		places = append(places, place{"/sys", rankOwn, []string{"--tmpfs", "/sys", "--remount-ro", "/sys"}})
	}
	for i, r := range p.Roots {
		bind := "--ro-bind"
		if r.Write {
			bind = "--bind"
		}
		if r.Empty {
			places = append(places, place{r.Path, rankRoot, src.empty(r.Path, r.Dir)})
			continue
		}
		places = append(places, place{r.Path, rankRoot, append([]string{bind, src.root(i), r.Path}, src.spots(i)...)})
	}
	places = p.settle(places)
	var out []string
	for _, pl := range places {
		out = append(out, pl.args...)
	}
	for i := range p.Files {
		out = append(out, src.file(i)...)
	}
	for _, c := range p.Covers {
		out = append(out, src.empty(c.Path, c.Dir)...)
	}
	out = append(out, "--ro-bind", src.launcher, LauncherPath, "--remount-ro", "/run")
	if !slices.ContainsFunc(p.Roots, func(r Root) bool { return r.Path == "/" && r.Write }) {
		out = append(out, "--remount-ro", "/")
	}
	return out
}

// kernelSettings are the parts of /proc that belong to the kernel, not to a
// process. No namespace divides them, and whoever is uid 0 of the host may
// write them without a capability, which a run of root can come to: writing
// core_pattern would be a program of root's. bwrap covers them only where it
// may write to the folder itself, which /proc/sys allows nobody.
var kernelSettings = []string{
	"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi",
	"/proc/mtrr", "/proc/dynamic_debug", "/proc/latency_stats", "/proc/asound", "/proc/driver",
}

// KernelSettings are the parts of /proc that no namespace divides; not every
// kernel has all of them.
func KernelSettings() []string { return slices.Clone(kernelSettings) }

// heldProc makes them read-only. Not every kernel has all of them, but each
// has /proc/sys: without it the sandbox does not start.
func heldProc() []string {
	out := []string{}
	for _, path := range kernelSettings {
		bind := "--ro-bind-try"
		if path == "/proc/sys" {
			bind = "--ro-bind"
		}
		out = append(out, bind, path, path)
	}
	return out
}

// settle sorts the places and keeps one for each path. A link is not made
// where a root above already shows the host's own.
func (p *Plan) settle(places []place) []place {
	slices.SortStableFunc(places, func(a, b place) int {
		if c := byDepth(a.path, b.path); c != 0 {
			return c
		}
		return b.rank - a.rank
	})
	places = slices.CompactFunc(places, func(a, b place) bool { return a.path == b.path })
	return slices.DeleteFunc(places, func(pl place) bool {
		return pl.args[0] == "--symlink" && slices.ContainsFunc(p.Roots, func(r Root) bool { return Below(pl.path, r.Path) })
	})
}

// isolation is the part of bwrap's arguments that does not look at the view.
func (p *Plan) isolation(network bool) []string {
	out := []string{"--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
		"--unshare-cgroup-try", "--cap-drop", "ALL", "--die-with-parent",
		"--uid", strconv.Itoa(p.UID), "--gid", strconv.Itoa(p.GID)}
	if network {
		out = append(out, "--unshare-net")
	}
	return out
}

// Arguments are bwrap's after [Apply] has laid everything out in the work
// folder. The program's own arguments are not among them: the launcher gets
// those by its socket, where no command line shows them.
func (p *Plan) Arguments() []string {
	src := sources{
		root:  func(i int) string { return workRoots + strconv.Itoa(i) },
		spots: func(int) []string { return nil }, // they are on it already
		file: func(i int) []string {
			return []string{"--ro-bind", workFiles + strconv.Itoa(i), p.Files[i].Path}
		},
		empty: func(path string, dir bool) []string {
			if dir {
				return []string{"--ro-bind", workEmpty + ".d", path}
			}
			return []string{"--ro-bind", workEmpty, path}
		},
		etc:      []string{"--ro-bind", workEtc, "/etc"},
		launcher: workLauncher,
	}
	return slices.Concat(p.isolation(false), p.view(src))
}

// Join writes arguments as bwrap's --args reads them.
func Join(args []string) []byte {
	return []byte(strings.Join(args, "\x00") + "\x00")
}
