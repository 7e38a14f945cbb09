package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Request is what a plan is made from. Paths are absolute, clean and, where
// they name something on the host, without links.
type Request struct {
	Cwd         string
	Grants      []Grant
	AllowHidden []string // dot names that stay; nil is .venv alone
	Hidden      []string // folders that show empty in every grant; one missing below a writable grant is made
	Masks       []string // files, folders, links and sockets that are hidden whatever is granted; what is not there is left out
	Dots        []string // dot names below the top of a grant that are hidden but where they are granted
	ReadOnly    []string // files and folders nothing inside may write or move
	Names       []string // paths that lead to grants by links, which are made inside where no grant shows them
	Home        string   // HOME inside: private, but where a grant shows it
	HomeSource  string   // host folder that HOME is; empty for a private one
	Scratch     bool     // the program starts in TMPDIR, not in Cwd
	// Forked is the folder whose throw-away copy ForkAt is: what is granted at or
	// below it is shown from there. Hidden and ReadOnly speak of both. Empty for
	// none.
	Forked, ForkAt string
	Launcher       string  // path of egressd's own binary
	Files          []Entry // more files: trust bundles and their kin
	User           User
	HostNetwork    bool // names are looked up as the host does
	Hostname       string
	Owner          *Owner // who is to own what is made on the host; nil: whoever runs
}

// Grant opens one path.
type Grant struct {
	Path  string
	Write bool
}

// User is who the sandboxed program is, inside.
type User struct {
	UID, GID    int
	Name, Group string
	Shell       string
}

// Owner is a user and group of the host.
type Owner struct{ UID, GID int }

// RefusedError is a request for what a sandbox cannot or must not show.
type RefusedError struct{ Path, Problem string }

func (e *RefusedError) Error() string { return fmt.Sprintf("granting %s: %s", e.Path, e.Problem) }

// Reason is the policy's word for it.
func (e *RefusedError) Reason() string { return "bad_value" }

// Make looks at the host and decides. The notes are lines for the operator:
// what was granted but cannot be shown.
func Make(r Request) (Plan, []string, error) {
	m := maker{Request: r}
	if m.AllowHidden == nil {
		m.AllowHidden = []string{".venv"}
	}
	m.Files = slices.Clone(m.Files)
	for i := range m.Files {
		if m.Files[i].Mode == 0 {
			m.Files[i].Mode = 0o444
		}
	}
	p := Plan{UID: r.User.UID, GID: r.User.GID, Cwd: r.Cwd, Home: r.Home, Launcher: r.Launcher}
	var err error
	if p.Roots, err = m.roots(); err != nil {
		return Plan{}, nil, err
	}
	if err := m.homePlaces(p.Roots); err != nil {
		return Plan{}, nil, err
	}
	if err := m.spots(p.Roots); err != nil {
		return Plan{}, nil, err
	}
	p.Base = base()
	p.Fresh, p.Temp = m.fresh(p.Roots)
	if r.Scratch {
		p.Cwd = p.Temp
	}
	p.Links = links(append([]string{r.Home}, r.Names...))
	p.Etc = m.etc()
	p.Covers = m.covers(&p)
	if p.Files, err = m.files(&p); err != nil {
		return Plan{}, nil, err
	}
	return p, m.notes, nil
}

type maker struct {
	Request
	notes []string
}

func (m *maker) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// shown reports why a path cannot be a root, or "".
func (m *maker) shown(path string) string {
	for _, o := range own {
		if path == o || o != "/etc" && Below(path, o) && !slices.ContainsFunc(open, func(p string) bool { return path != p && Below(path, p) }) {
			return "it shows empty or made new in every sandbox"
		}
	}
	for _, h := range m.Hidden {
		if Below(path, h) {
			return "it lies in a folder of egressd's own or one that is always hidden"
		}
	}
	return ""
}

// roots turns cwd and the grants into roots. The same path granted twice is
// writable if one of the grants says so; cwd is read-only on its own.
func (m *maker) roots() ([]Root, error) {
	if why := m.shown(m.Cwd); why != "" {
		return nil, &RefusedError{m.Cwd, "as working folder: " + why}
	}
	write := map[string]bool{m.Cwd: false}
	for _, g := range m.Grants {
		if why := m.shown(g.Path); why != "" {
			m.note("%s is granted but not shown: %s", g.Path, why)
			continue
		}
		write[g.Path] = write[g.Path] || g.Write
	}
	var roots []Root
	var err error
	for path, w := range write {
		source := m.source(path)
		info, err := os.Lstat(source)
		if errors.Is(err, fs.ErrNotExist) && path != m.Cwd {
			m.note("%s does not exist", path)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking at a granted path: %w", err)
		}
		if info.Mode()&(fs.ModeSymlink|fs.ModeSocket) != 0 {
			return nil, &RefusedError{path, "it is a link or a socket"}
		}
		kept := slices.ContainsFunc(m.ReadOnly, func(k string) bool { return Below(path, k) })
		roots = append(roots, Root{Source: source, Path: path, Write: w && !kept, Dir: info.IsDir()})
	}
	if m.HomeSource != "" {
		if roots, err = m.keepHome(roots); err != nil {
			return nil, err
		}
	}
	roots = m.settleGrants(roots)
	slices.SortFunc(roots, func(a, b Root) int { return byDepth(a.Path, b.Path) })
	return roots, nil
}

// source is where the host has what is shown at a path.
func (m *maker) source(path string) string {
	if m.Forked != "" && Below(path, m.Forked) {
		return filepath.Join(m.ForkAt, rel(path, m.Forked))
	}
	return path
}

// fresh are the writable folders of the sandbox's own, and which of them is
// TMPDIR: one that no root covers.
func (m *maker) fresh(roots []Root) ([]Fresh, string) {
	at := func(path string) bool {
		return slices.ContainsFunc(roots, func(r Root) bool { return r.Path == path })
	}
	var out []Fresh
	temp := "/dev/shm"
	for _, f := range []Fresh{{"/var/tmp", 0o1777}, {"/tmp", 0o1777}} {
		if !at(f.Path) {
			out, temp = append(out, f), f.Path
		}
	}
	if m.Home != "" && m.HomeSource == "" && !at(m.Home) && m.Home != "/" {
		out = append(out, Fresh{m.Home, 0o700})
	}
	slices.SortFunc(out, func(a, b Fresh) int { return byDepth(a.Path, b.Path) })
	return out, temp
}

// InBase reports whether a path lies in one of the system's folders, which are
// read-only in every sandbox but where a grant lies in them.
func InBase(path string) bool {
	return slices.ContainsFunc(system, func(s string) bool { return Below(path, s) })
}

// base lists the host's system folders. A merged-usr link stays a link, so
// that a path such as /bin/sh reads inside as it does outside.
func base() []Base {
	var out []Base
	for _, path := range system {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if target, err := os.Readlink(path); err == nil {
				out = append(out, Base{path, target})
			}
		} else if info.IsDir() {
			out = append(out, Base{Path: path})
		}
	}
	return out
}

// linkLimit is how many links a path may lead through, as the kernel has it.
const linkLimit = 40

// links are the links that paths lead through on the host, such as /home on a
// system that keeps it in /var/home. What lies in the view's own parts or the
// system's folders is there already.
func links(paths []string) []Link {
	var out []Link
	for _, path := range paths {
		at, names := "/", strings.Split(strings.TrimPrefix(path, "/"), "/")
		for left := linkLimit; len(names) > 0; {
			next := filepath.Join(at, names[0])
			names = names[1:]
			target, err := os.Readlink(next)
			if err != nil {
				at = next
				continue
			}
			if left--; left == 0 {
				break
			}
			made := InBase(next) || slices.ContainsFunc(own, func(o string) bool { return Below(next, o) })
			if l := (Link{next, target}); !made && !slices.Contains(out, l) {
				out = append(out, l)
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			names = slices.Concat(strings.Split(strings.Trim(target, "/"), "/"), names)
		}
	}
	return out
}
