package tools

import (
	"path/filepath"
	"slices"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/safepath"
)

// own are folders of the host in whose place every sandbox has others.
var own = []string{"/etc", "/run", "/var/run"}

// Files are the files of the host that a program in a sandbox of this plan
// sees, with what it may do with them: what is hidden there is refused, what is
// read-only is read, a granted file is written in place. The folders that are
// the sandbox's alone (/tmp, a private HOME, /etc) are not among them.
func Files(plan mount.Plan) safepath.Config {
	cfg := safepath.Config{Cwd: source(plan, plan.Cwd)}
	grant := func(path string, a safepath.Access) {
		cfg.Grants = append(cfg.Grants, safepath.Grant{Path: path, Access: a})
	}
	for _, path := range own {
		grant(path, safepath.Hidden)
	}
	for _, f := range plan.Fresh {
		grant(f.Path, safepath.Hidden)
	}
	for _, b := range plan.Base {
		if b.Target == "" || !rooted(plan, filepath.Join("/", b.Target)) {
			grant(b.Path, safepath.Read)
		}
	}
	for _, r := range plan.Roots {
		access := safepath.Read
		switch {
		case r.Empty:
			access = safepath.Masked
		case r.Write && r.Dir:
			access = safepath.Write
		case r.Write:
			access = safepath.InPlace
		}
		cfg.Grants = append(cfg.Grants, safepath.Grant{Path: r.Source, As: as(r), Access: access})
		for _, part := range r.Parts {
			grant(filepath.Join(r.Source, part), safepath.Read)
		}
		for _, m := range r.Masks {
			// Below a mask with a hole another root shows.
			access := safepath.Masked
			if len(m.Holes) > 0 {
				access = safepath.Hidden
			}
			grant(filepath.Join(r.Source, m.Path), access)
		}
	}
	for _, c := range plan.Covers {
		grant(c.Path, safepath.Masked)
	}
	// What lies over a file of the host there is not the host's.
	for _, f := range plan.Files {
		grant(f.Path, safepath.Hidden)
	}
	return cfg
}

// rooted says that a root shows path, so that the root says what may be done.
func rooted(plan mount.Plan, path string) bool {
	return slices.ContainsFunc(plan.Roots, func(r mount.Root) bool { return mount.Below(path, r.Path) })
}

// source is where a path of the sandbox lies on the host.
func source(plan mount.Plan, path string) string {
	for _, r := range slices.Backward(plan.Roots) { // the deepest first
		if rel, err := filepath.Rel(r.Path, path); err == nil && mount.Below(path, r.Path) {
			return filepath.Join(r.Source, rel)
		}
	}
	return path
}

// as is where a root shows inside, if that is elsewhere.
func as(r mount.Root) string {
	if r.Path == r.Source {
		return ""
	}
	return r.Path
}
