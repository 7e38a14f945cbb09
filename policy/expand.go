package policy

import (
	"path"
	"strings"
)

// Expand spells a path of a policy out: ~ and ~/ are home, a relative path is
// below base, $VAR is left as it is. It is cleaned lexically; symbolic links
// are not looked at. Where home or base is "" that part stays as written.
func Expand(written, base, home string) string {
	if rest, ok := homely(written); ok {
		if home == "" {
			return path.Clean(written)
		}
		return path.Join(home, rest)
	}
	if path.IsAbs(written) || base == "" {
		return path.Clean(written)
	}
	return path.Join(base, written)
}

// homely takes the ~ off a path that begins with it. ~user is a plain name.
func homely(p string) (rest string, ok bool) {
	if p == "~" {
		return "", true
	}
	return strings.CutPrefix(p, "~/")
}

// within says that p is dir or lies below it, both cleaned.
func within(p, dir string) bool {
	if p == dir || dir == "/" && path.IsAbs(p) {
		return true
	}
	if dir == "." {
		return !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") && p != "~" && !strings.HasPrefix(p, "~/")
	}
	return strings.HasPrefix(p, dir+"/")
}

// path gives a key's path, expanded against the policy file's folder.
func (m *mapping) path(name string) string {
	s := m.filled(name)
	if s == "" {
		return ""
	}
	return m.d.expand(s)
}

func (d *doc) expand(written string) string {
	return Expand(written, path.Dir(d.file), d.opts.Home)
}

// paths gives the texts of a list of paths as written. A plain ~ is YAML's
// null, but in a list of paths nobody means that.
func (m *mapping) paths(name string) (list []string, at []spot) {
	v, ok := m.get(name)
	if !ok {
		return nil, nil
	}
	items, ok := m.d.list(v, "a list of paths")
	if !ok {
		return nil, nil
	}
	list = []string{}
	for _, item := range items {
		s := item.node.Value
		if !(item.node.Kind == scalarKind && item.node.Style == 0 && s == "~") {
			if s, ok = m.d.text(item); !ok {
				continue
			}
		}
		if why := notEmpty(s); why != "" {
			m.d.fail(item.spot(), KindValue, "%s where a path belongs", why)
			continue
		}
		list, at = append(list, s), append(at, item.spot())
	}
	return list, at
}
