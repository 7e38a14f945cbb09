package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Access is what may be done with a path. Of two grants of one path the
// greater holds.
type Access int

// The kinds of access, from nothing to everything and back to nothing.
const (
	// Hidden is not there. A more specific grant below opens its own path.
	Hidden Access = iota
	// Read may be read.
	Read
	// InPlace is a single file that may be read, and written where it lies: it
	// is never replaced, so such a write is not atomic. A mount lies over it.
	InPlace
	// Write may be read, written, and made.
	Write
	// Masked is not there, and no grant below opens anything.
	Masked
)

// outside is the access of a path that no grant says anything about.
const outside Access = -1

// Grant gives a path an access.
type Grant struct {
	// Path is absolute. Links in it are followed when the FS is opened, but
	// for the last name of what is Hidden or Masked: a link is hidden as one.
	Path string
	// As is one more absolute path by which Path is known, where a program sees
	// it elsewhere; or empty.
	As     string
	Access Access
}

// strange are the folders of the host that are other folders inside a sandbox.
// A grant of something above them does not open them.
var strange = []string{"/dev", "/proc", "/sys"}

// table answers for a real path what may be done with it.
type table struct {
	rules map[string]Access
	ways  map[string]bool // the folders above what is granted
	names []alias         // the longest first
}

type alias struct{ name, real string }

func (t *table) add(g Grant) (string, error) {
	for _, p := range []string{g.Path, g.As} {
		if p != "" && !filepath.IsAbs(p) || strings.ContainsRune(p, 0) {
			return "", fmt.Errorf("%s is not an absolute path", shown(p))
		}
	}
	if g.Path == "" || g.Access < Hidden || g.Access > Masked {
		return "", errors.New("a grant without a path or with an unknown access")
	}
	opens := g.Access != Hidden && g.Access != Masked
	real, err := settle(g.Path, opens)
	if err != nil {
		return "", err
	}
	if opens && slices.Contains(strange, real) {
		return "", fmt.Errorf("%s cannot be granted: a sandbox has its own", real)
	}
	t.rules[real] = max(g.Access, t.rules[real])
	if !opens {
		return real, nil
	}
	for _, p := range []string{g.Path, g.As} {
		if p = filepath.Clean(p); p != "." && p != real {
			t.names = append(t.names, alias{p, real})
		}
	}
	for p := real; p != "/"; {
		p = filepath.Dir(p)
		t.ways[p] = true
	}
	return real, nil
}

// settle finds the real path of what may be missing: that of the nearest folder
// above it which is there, and the rest as written.
func settle(path string, follow bool) (string, error) {
	path = filepath.Clean(path)
	if path == "/" {
		return path, nil
	}
	if follow {
		real, err := filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return real, err
		}
	}
	dir, err := settle(filepath.Dir(path), true)
	return filepath.Join(dir, filepath.Base(path)), err
}

// below is the access of path, whose folder has the access above.
func (t *table) below(above Access, path string) Access {
	if above == Masked {
		return Masked
	}
	if a, ok := t.rules[path]; ok {
		return a
	}
	return above
}

// at is the access of path, looked up from the top.
func (t *table) at(path string) Access {
	a := t.below(outside, "/")
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			a = t.below(a, path[:i])
		}
	}
	if path != "/" {
		a = t.below(a, path)
	}
	return a
}

// seen says that path shows at all: to be read, or because something below it
// is granted.
func (t *table) seen(a Access, path string) bool {
	return a != Masked && (a >= Read || t.ways[path])
}

// real puts the real path in the place of the name by which a grant was opened.
func (t *table) real(path string) string {
	for _, n := range t.names {
		if rest, ok := within(path, n.name); ok {
			return join(n.real, rest)
		}
	}
	return path
}

// within says that path is dir or lies below it, by name alone, and what
// remains of it then.
func within(path, dir string) (rest string, ok bool) {
	if dir == "/" {
		return strings.TrimPrefix(path, "/"), strings.HasPrefix(path, "/")
	}
	rest, ok = strings.CutPrefix(path, dir)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(rest, "/"), true
}

// join is path.Join without a look at dots.
func join(dir, rest string) string {
	switch {
	case rest == "":
		return dir
	case dir == "/":
		return "/" + rest
	}
	return dir + "/" + rest
}
