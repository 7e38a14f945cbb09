package mount

import "slices"

// few is how many masks and pins bwrap may meet on the roots that it binds: it
// compares each mount with each other one beside it, for every bind of its own,
// so a thousand would cost it seconds.
const few = 16

// postpone leaves for [Late] what nothing else is mounted in: masks without
// holes, and pins that lead to such masks only. What bwrap binds comes before
// and must not be covered again.
func postpone(roots []Root) {
	count := 0
	for i := range roots {
		count += len(roots[i].Masks) + len(roots[i].Pins)
	}
	if count <= few {
		return
	}
	for i := range roots {
		r := &roots[i]
		early := map[string]bool{}
		keep := func(name string) {
			for _, folder := range between(name) {
				early[folder] = true
			}
		}
		for _, part := range r.Parts {
			keep(part)
		}
		for _, o := range roots {
			if o.Path != r.Path && Below(o.Path, r.Path) {
				keep(rel(o.Path, r.Path))
			}
		}
		for n := range r.Masks {
			if k := &r.Masks[n]; len(k.Holes) > 0 {
				keep(k.Path)
			} else {
				k.Late = true
			}
		}
		r.LatePins = slices.DeleteFunc(slices.Clone(r.Pins), func(p string) bool { return early[p] })
		r.Pins = slices.DeleteFunc(r.Pins, func(p string) bool { return !early[p] })
	}
}

// HasLate reports whether there is something for [Late] to do.
func (p *Plan) HasLate() bool {
	return slices.ContainsFunc(p.Roots, func(r Root) bool {
		return len(r.LatePins) > 0 || slices.ContainsFunc(r.Masks, func(k Mask) bool { return k.Late })
	})
}
