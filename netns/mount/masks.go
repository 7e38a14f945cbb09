package mount

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// errNotFolder is a path that leads through what is no folder.
const errNotFolder = syscall.ENOTDIR

// masked reports whether a path is, or lies in, what is hidden whatever is
// granted.
func (m *maker) masked(path string) bool {
	return slices.ContainsFunc(m.Masks, func(k string) bool { return Below(path, k) })
}

// settleGrants takes what is hidden out of the grants. A grant that is hidden
// itself is an empty folder or file: by the mask of a root that it lies in, else
// as a root of its own. What lies deeper in a mask is not there, but for the
// working folder and HOME, which a program must have.
func (m *maker) settleGrants(roots []Root) []Root {
	for i := range roots {
		if r := &roots[i]; m.masked(r.Source) || m.masked(r.Path) {
			r.Empty, r.Write = true, false
		}
	}
	return slices.DeleteFunc(slices.Clone(roots), func(r Root) bool {
		if !r.Empty {
			return false
		}
		if !slices.Contains(m.Masks, r.Path) {
			return r.Path != m.Cwd && r.Path != m.Home
		}
		return slices.ContainsFunc(roots, func(o Root) bool {
			return !o.Empty && o.Dir && o.Path != r.Path && Below(r.Path, o.Path)
		})
	})
}

// covers are the masks of what no root shows: the host's system, and what of
// its /etc is shown. A link there is not covered, which nothing can do that
// mounts by path; what it leads to is among the masks as well.
func (m *maker) covers(p *Plan) []Cover {
	var out []Cover
	for _, path := range m.Masks {
		if !p.inSystem(path) {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 || slices.ContainsFunc(m.Masks, func(k string) bool { return k != path && Below(path, k) }) {
			continue
		}
		out = append(out, Cover{path, info.IsDir()})
	}
	slices.SortFunc(out, func(a, b Cover) int { return byDepth(a.Path, b.Path) })
	return slices.Compact(out)
}

// inSystem reports whether a path is shown by one of the system's folders or by
// the new /etc, and by no root that lies deeper.
func (p *Plan) inSystem(path string) bool {
	best := ""
	for _, b := range p.Base {
		if b.Target == "" && Below(path, b.Path) {
			best = b.Path
		}
	}
	for _, e := range p.Etc {
		if e.Target == "" && (path == e.Path || e.Host != "" && e.Dir && Below(path, e.Path)) {
			best = e.Path
		}
	}
	return best != "" && !slices.ContainsFunc(p.Roots, func(r Root) bool {
		return Below(path, r.Path) && depth(r.Path) >= depth(best)
	})
}

// systemFolder is the part of the view that a cover lies in.
func systemFolder(path string) string {
	if i := slices.IndexFunc(system, func(s string) bool { return Below(path, s) }); i >= 0 {
		return system[i]
	}
	return "/etc"
}
