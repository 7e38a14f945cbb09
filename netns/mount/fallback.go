//go:build linux

package mount

import (
	"path/filepath"
	"slices"
	"strconv"
)

// Fallback is the plan in bwrap's words alone, for a host where only bwrap may
// mount. Every text is a descriptor of bwrap's: data makes one and says its
// number. A link cannot be hidden there; a plan that has to is an error.
// network gives the sandbox a network namespace of its own.
func (p *Plan) Fallback(network bool, data func([]byte) (int, error)) ([]string, error) {
	w := words{data: data}
	src := sources{
		root:     func(i int) string { return p.Roots[i].Source },
		launcher: p.Launcher,
		etc:      w.etc(p),
		empty:    w.empty,
		spots:    func(i int) []string { return w.spots(&p.Roots[i]) },
		file: func(i int) []string {
			return []string{"--ro-bind-data", w.text(p.Files[i].Data), p.Files[i].Path}
		},
	}
	args := slices.Concat(p.isolation(network), p.view(src))
	return args, w.err
}

// words collects the first error of many small steps.
type words struct {
	data func([]byte) (int, error)
	err  error
}

func (w *words) text(data []byte) string {
	fd, err := w.data(data)
	if err != nil && w.err == nil {
		w.err = err
	}
	return strconv.Itoa(fd)
}

func (w *words) etc(p *Plan) []string {
	out := []string{"--tmpfs", "/etc"}
	for _, e := range p.Etc {
		switch {
		case e.Target != "":
			out = append(out, "--symlink", e.Target, e.Path)
		case e.Host != "":
			out = append(out, "--ro-bind", e.Host, e.Path)
		case e.Dir:
			out = append(out, "--dir", e.Path)
		default:
			out = append(out, "--perms", strconv.FormatUint(uint64(e.Mode), 8), "--file", w.text(e.Data), e.Path)
		}
	}
	return append(out, "--remount-ro", "/etc")
}

// spots are a root's pins, parts and masks.
func (w *words) spots(r *Root) []string {
	var out []string
	for _, pin := range slices.Concat(r.Pins, r.LatePins) {
		out = append(out, "--bind", filepath.Join(r.Source, pin), filepath.Join(r.Path, pin))
	}
	for _, part := range r.Parts {
		out = append(out, "--ro-bind", filepath.Join(r.Source, part), filepath.Join(r.Path, part))
	}
	for _, k := range r.Masks {
		out = append(out, w.mask(r, k)...)
	}
	return out
}

func (w *words) empty(path string, dir bool) []string {
	if dir {
		return []string{"--tmpfs", path, "--remount-ro", path}
	}
	return []string{"--ro-bind-data", w.text(nil), path}
}

func (w *words) mask(r *Root, k Mask) []string {
	path := filepath.Join(r.Path, k.Path)
	switch {
	case k.Link && w.err == nil:
		w.err = &RefusedError{path, "it is a link that must be hidden, and this host lets only bwrap mount, which cannot hide a link"}
		return nil
	case len(k.Holes) == 0:
		return w.empty(path, k.Dir)
	}
	out := []string{"--tmpfs", path}
	for _, h := range k.Holes {
		at := filepath.Join(path, h.Path)
		if h.Dir {
			out = append(out, "--dir", at)
		} else {
			out = append(out, "--file", w.text(nil), at)
		}
	}
	return append(out, "--remount-ro", path)
}
