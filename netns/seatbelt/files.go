package seatbelt

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// What is asked of a file. Each rule names all of a kind, so that none is left to
// an earlier rule.
const (
	reading = "file-read* file-test-existence file-map-executable process-exec*"
	writing = "file-write*"
)

// step is one rule of the order from shallow to deep.
type step struct {
	depth int
	dots  bool // before a place of the same depth, which beats it
	place Place
	match string // of dots
}

func depth(p string) int {
	if p == "/" {
		return 0
	}
	return strings.Count(p, "/")
}

// files writes what is seen of the host's files, and what stays in its place.
func (w *writer) files(p *Profile) error {
	var steps []step
	for _, x := range p.Places {
		if !x.Over {
			steps = append(steps, step{depth: depth(x.Path), place: x})
		}
	}
	for _, d := range p.Dots {
		match, err := d.pattern()
		if err != nil {
			return err
		}
		steps = append(steps, step{depth: depth(d.Path) + 1, dots: true, match: match})
	}
	slices.SortStableFunc(steps, compare)
	w.title("files, from shallow to deep: the last rule that matches decides")
	for _, s := range steps {
		if s.dots {
			w.rule("deny", reading+" "+writing, "(regex "+raw(s.match)+")")
		} else {
			w.place(s.place)
		}
	}
	var over []step
	for _, x := range p.Places {
		if x.Over {
			over = append(over, step{depth: depth(x.Path), place: x})
		}
	}
	slices.SortStableFunc(over, compare)
	for _, s := range over {
		w.place(s.place)
	}
	w.way(p)
	w.stay(p)
	return nil
}

// compare sorts shallow first. Of two rules for one path the stricter one comes
// last and so wins.
func compare(a, b step) int {
	before := func(s step) int {
		if s.dots {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(before(a), before(b)), cmp.Compare(a.place.Path, b.place.Path),
		cmp.Compare(b.place.Access, a.place.Access), strings.Compare(a.match, b.match))
}

func (w *writer) place(x Place) {
	at := "(subpath " + quote(x.Path) + ")"
	switch x.Access {
	case Write:
		w.rule("allow", reading+" "+writing, at)
	case Read:
		w.rule("allow", reading, at)
		w.rule("deny", writing, at)
	default:
		w.rule("deny", reading+" "+writing, at)
	}
}

// way lets the folders be looked up, and not listed, that lead to what is shown.
func (w *writer) way(p *Profile) {
	var above []string
	add := func(at string) {
		for at != "/" {
			at = path.Dir(at)
			above = append(above, at)
		}
	}
	for _, x := range p.Places {
		if x.Access != Hidden && !p.beaten(x.Path) {
			add(x.Path)
		}
	}
	for _, l := range p.Links {
		add(l)
	}
	w.title("the way there")
	w.rule("allow", "file-read-metadata file-test-existence", each("literal", above))
	w.rule("allow", "file-read-metadata file-test-existence", each("literal", append([]string{"/tmp", "/var", "/etc"}, p.Links...)))
	w.rule("allow", "file-read-data", `(literal "/")`) // the loader lists it
}

// beaten says that a place which beats those below it hides a path.
func (p *Profile) beaten(at string) bool {
	return slices.ContainsFunc(p.Places, func(o Place) bool {
		_, ok := below(at, o.Path)
		return ok && o.Over && o.Access == Hidden
	})
}

// stay keeps names in their place: what lies deeper is guarded by its path alone,
// so no folder on that path may be another one tomorrow.
func (w *writer) stay(p *Profile) {
	if len(p.Pins)+len(p.Absent) > 0 {
		w.title("what stays as it is")
	}
	if len(p.Pins) > 0 {
		w.rule("deny", "file-write-unlink", each("literal", p.Pins))
	}
	for _, name := range sorted(p.Absent) {
		w.rule("deny", writing, "(regex "+raw("^"+pattern(name, true)+"(/.*)?$")+")")
	}
	w.title("names that would lead past a path, and rights that would outlive the run")
	w.rule("deny", "file-link file-clone", "")
	w.rule("deny", "file-write-setugid", "")
}

// each is a filter for each of some paths, sorted, on lines of their own.
func each(filter string, paths []string) string {
	var out []string
	for _, p := range sorted(paths) {
		out = append(out, "("+filter+" "+quote(p)+")")
	}
	return strings.Join(out, "\n\t")
}

func sorted(paths []string) []string {
	out := slices.Clone(paths)
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(depth(a), depth(b)), strings.Compare(a, b)) })
	return slices.Compact(out)
}
