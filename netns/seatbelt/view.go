package seatbelt

import (
	"path"
	"slices"

	"github.com/egressd/egressd/netns/mount"
)

// View is what a profile is made from where a plan says what is seen: the same
// plan that is mounted on Linux. Nothing can be laid over anything here, so each
// path means the host's own.
type View struct {
	Plan mount.Plan
	// ReadOnly are files that stay as they are. One that is missing where the
	// sandbox may write is kept from being made.
	ReadOnly []string
	// AllowHidden are dot names that stay at the top of a read-only grant; there
	// all others are hidden, those that the host will make too.
	AllowHidden []string
	Scratch     []string // folders of the session, to write
	Shown       []string // files and folders of egressd's own, to read
	// Exists tells whether a name is there.
	Exists func(path string) bool
	// Name is a path as the kernel names it; nil: as it is.
	Name func(path string) string
}

// Profile is the view's: its files, and nothing of a network or terminal.
func (v View) Profile() Profile {
	name := v.Name
	if name == nil {
		name = func(p string) string { return p }
	}
	var p Profile
	add := func(at string, a Access) { p.Places = append(p.Places, Place{Path: name(at), Access: a}) }
	for _, b := range v.Plan.Base {
		if b.Target == "" {
			add(b.Path, Read)
		} else {
			p.Links = append(p.Links, b.Path)
		}
	}
	for _, e := range v.Plan.Etc {
		if e.Host != "" {
			add(e.Host, Read)
		}
	}
	for _, l := range v.Plan.Links {
		p.Links = append(p.Links, l.Path)
	}
	for _, c := range v.Plan.Covers {
		add(c.Path, Hidden)
	}
	for _, r := range v.Plan.Roots {
		v.root(r, name, &p)
	}
	for _, s := range v.Scratch {
		add(s, Write)
		p.Pins, p.Sockets = append(p.Pins, name(s)), append(p.Sockets, name(s))
	}
	for _, s := range v.Shown {
		add(s, Read)
	}
	for _, file := range v.ReadOnly {
		if v.writable(file) && !v.Exists(file) && v.Exists(path.Dir(file)) {
			p.Absent = append(p.Absent, name(file))
		}
	}
	return p
}

func (v View) root(r mount.Root, name func(string) string, p *Profile) {
	add := func(rel string, a Access) {
		p.Places = append(p.Places, Place{Path: name(path.Join(r.Source, rel)), Access: a})
	}
	// A grant can be moved by whoever may write at both ends, and may lie in
	// another.
	p.Pins = append(p.Pins, name(r.Source))
	switch {
	case r.Empty:
		add("", Hidden)
		return
	case r.Write:
		add("", Write)
	default:
		add("", Read)
		if r.Dir && r.Source == r.Path {
			p.Dots = append(p.Dots, Dots{Path: name(r.Source), Except: v.AllowHidden})
		}
	}
	for _, x := range r.Parts {
		add(x, Read)
	}
	for _, x := range r.Masks {
		add(x.Path, Hidden)
	}
	for _, x := range slices.Concat(r.Pins, r.LatePins) {
		p.Pins = append(p.Pins, name(path.Join(r.Source, x)))
	}
}

// writable says whether the deepest root that holds a path may be written.
func (v View) writable(at string) bool {
	best, write := -1, false
	for _, r := range v.Plan.Roots {
		if mount.Below(at, r.Source) && len(r.Source) > best {
			best, write = len(r.Source), r.Write
		}
	}
	return write && !slices.ContainsFunc(v.Plan.Roots, func(r mount.Root) bool {
		return r.Empty && mount.Below(at, r.Source)
	})
}
