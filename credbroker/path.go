package credbroker

import (
	"slices"
	"strings"
)

// pathGlob is the path of a target. Servers disagree about what a path means,
// so a path is covered only where every reading of it is (RULES.md): with
// escapes normalised and after each of three rounds of decoding, each as it is
// and with backslashes as slashes, parameters cut, slashes collapsed. The glob
// goes through the same changes as the reading that it meets, and a star of the
// glob is marked before, so that an escaped star is a letter.
type pathGlob struct {
	globs
	folded globs // in lower case
}

// globs are the patterns of each reading, any of which may fit: two where the
// path was written without a glob and means what is below it too.
type globs [rounds * changes][]string

const (
	changeSlash    = 1 << iota // "\" is "/"
	changeParams               // ";" and what follows it in a segment is cut
	changeCollapse             // several slashes are one
	changes        = 1 << iota

	rounds = 4
)

// Marks of the wildcards; no path that the rules let through holds one.
const (
	markStar  = '\x01'
	markStars = "\x02"
)

// newPathGlob reads the path of a target; nil covers every path.
func newPathGlob(path string) *pathGlob {
	if path == "" || path == "/**" {
		return nil
	}
	written := []string{path}
	if !strings.Contains(path, "*") {
		written = append(written, strings.TrimSuffix(path, "/")+"/**")
	}
	g := &pathGlob{}
	for _, w := range written {
		w = strings.ReplaceAll(strings.ReplaceAll(w, "**", markStars), "*", string(markStar))
		for i, text := range readings(w) {
			g.globs[i] = append(g.globs[i], text)
			g.folded[i] = append(g.folded[i], strings.ToLower(text))
		}
	}
	return g
}

// covers says whether every reading of path, without its query, is in g. One with
// a dot segment, which the rules refuse, is in none.
func (g *pathGlob) covers(path string) bool {
	if g == nil {
		return true
	}
	if plainPath(path) {
		return g.fits(0, path) && !dotted(path)
	}
	all := readings(path)
	for i, text := range all {
		if !slices.Contains(all[:i], text) && (!g.fits(i, text) || dotted(text)) {
			return false
		}
	}
	return true
}

func (g *pathGlob) misses(path string) bool { return !g.covers(path) }

// touches says whether some reading of path is in g, in whatever case: there a
// server may take it for one that is.
func (g *pathGlob) touches(path string) bool {
	if g == nil {
		return true
	}
	for i, text := range readings(path) {
		if g.fits(i, text) || g.folded.fits(i, strings.ToLower(text)) {
			return true
		}
	}
	return false
}

func dotted(path string) bool {
	if !strings.Contains(path, "/.") {
		return false
	}
	path += "/"
	return strings.Contains(path, "/../") || strings.Contains(path, "/./")
}

func (g *globs) fits(reading int, path string) bool {
	return slices.ContainsFunc(g[reading], func(glob string) bool { return globMatch(glob, path) })
}

// plainPath says that every reading of path is the same text.
func plainPath(path string) bool {
	for i := range len(path) {
		switch path[i] {
		case '%', '\\', ';':
			return false
		case '/':
			if i > 0 && path[i-1] == '/' {
				return false
			}
		}
	}
	return true
}

// readings are the texts of a path, reading r*changes+c being round r under the
// changes c.
func readings(path string) (texts [rounds * changes]string) {
	round := normalise(path)
	for r := range rounds {
		if r > 0 {
			if r == 1 {
				round = path
			}
			round = decodeOnce(round)
		}
		for c := range changes {
			text := round
			if c&changeSlash != 0 {
				text = strings.ReplaceAll(text, `\`, "/")
			}
			if c&changeParams != 0 {
				text = cutParams(text)
			}
			if c&changeCollapse != 0 {
				for strings.Contains(text, "//") {
					text = strings.ReplaceAll(text, "//", "/")
				}
			}
			texts[r*changes+c] = text
		}
	}
	return texts
}

// cutParams cuts ";" and what follows it from every segment.
func cutParams(s string) string {
	if !strings.Contains(s, ";") {
		return s
	}
	segments := strings.Split(s, "/")
	for i, seg := range segments {
		segments[i], _, _ = strings.Cut(seg, ";")
	}
	return strings.Join(segments, "/")
}

// normalise decodes escapes of unreserved letters and writes the digits of the
// others in upper case (RFC 3986 section 6.2.2).
func normalise(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c, ok := escaped(s, i)
		switch {
		case !ok:
			b = append(b, s[i])
			continue
		case tokenLetter(c) || c == '.' || c == '~':
			b = append(b, c)
		default:
			b = append(b, strings.ToUpper(s[i:i+3])...)
		}
		i += 2
	}
	return string(b)
}

// globMatch matches a path with a marked glob, segment by segment. A "**" has
// one point to return to, the last one: what a later one can take, an earlier
// one need not take again.
func globMatch(glob, path string) bool {
	g, p := strings.TrimPrefix(glob, "/"), strings.TrimPrefix(path, "/")
	more, left := true, true // a segment of the glob, of the path is to come
	var backG, backP string
	back := false
	for {
		if more {
			seg, rest, next := strings.Cut(g, "/")
			if seg == markStars {
				if !next { // the last one takes one segment at least, which may be empty
					return left
				}
				g, backG, backP, back = rest, rest, p, left
				continue
			}
			if left {
				text, after, following := strings.Cut(p, "/")
				if segmentMatch(seg, text) {
					g, more, p, left = rest, next, after, following
					continue
				}
			}
		} else if !left {
			return true
		}
		if !back {
			return false
		}
		_, after, following := strings.Cut(backP, "/")
		g, more, p, left = backG, true, after, following
		backP, back = after, following
	}
}

// segmentMatch matches one segment; a star alone wants a letter at least.
func segmentMatch(glob, text string) bool {
	if glob == string(markStar) {
		return text != ""
	}
	g, t, backG, backT := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case g < len(glob) && glob[g] == markStar:
			g++
			backG, backT = g, t
		case g < len(glob) && glob[g] == text[t]:
			g, t = g+1, t+1
		case backG >= 0:
			backT++
			g, t = backG, backT
		default:
			return false
		}
	}
	return strings.Trim(glob[g:], string(markStar)) == ""
}
