package rules

import "strings"

// Comparing rules with rules, for lint: covers is sure when it says yes, meets
// is sure when it says no.

// coversRule says whether a deny rule denies everything that an allow rule
// allows. The path comes first: it tells most rules apart.
func coversRule(deny, allow *linted) bool {
	if deny.Tunnel != allow.Tunnel || len(deny.Query) > 0 || !deny.Tunnel && !coversPath(&deny.path, &allow.path) {
		return false
	}
	if !deny.Until.IsZero() && (allow.Until.IsZero() || allow.Until.After(deny.Until)) {
		return false
	}
	return coversWhere(deny.Rule, allow.Rule)
}

// coversWhere compares methods, host, scheme and port.
func coversWhere(a, b *Rule) bool {
	return coversMethods(a, b) && coversHost(a.Host, b.Host) && coversPorts(a, b)
}

func coversMethods(a, b *Rule) bool {
	if a.anyMethod() {
		return true
	}
	for _, m := range b.Methods {
		if !contains(a.Methods, m) {
			return false
		}
	}
	return true
}

// coversHost says whether one host pattern stands for all that another does.
func coversHost(a, b string) bool {
	if a == b {
		return true
	}
	name := strings.TrimPrefix(b, "*.")
	if b == "*" || isAddress(name) {
		return false
	}
	if a == "*" {
		return true
	}
	base, wild := strings.CutPrefix(a, "*.")
	return wild && (name == base || strings.HasSuffix(name, "."+base))
}

// meetsHost says whether some host fits both patterns: one covers the other.
func meetsHost(a, b string) bool { return coversHost(a, b) || coversHost(b, a) }

func coversPorts(a, b *Rule) bool {
	if a.Tunnel {
		return a.Port == b.Port
	}
	if b.Port == AnyPort {
		return a.Port == AnyPort && (a.Scheme == "" || a.Scheme == b.Scheme)
	}
	for _, scheme := range [...]string{"https", "http"} {
		if port := b.portOf(scheme); b.covers(scheme, port) && !a.covers(scheme, port) {
			return false
		}
	}
	return true
}

// portOf is the port that the rule names, or that its scheme stands for.
func (r *Rule) portOf(scheme string) int {
	if r.Port == 0 {
		return defaultPort(scheme)
	}
	return r.Port
}

// meetsPorts says whether some scheme and port is covered by both.
func meetsPorts(a, b *Rule) bool {
	if a.Scheme != "" && b.Scheme != "" && a.Scheme != b.Scheme {
		return false
	}
	if a.Port == AnyPort || b.Port == AnyPort {
		return true
	}
	for _, scheme := range [...]string{"https", "http"} {
		if port := b.portOf(scheme); a.covers(scheme, port) && b.covers(scheme, port) {
			return true
		}
	}
	return false
}

func meetsMethods(a, b *Rule) bool {
	if a.anyMethod() || b.anyMethod() {
		return true
	}
	for _, m := range a.Methods {
		if contains(b.Methods, m) {
			return true
		}
	}
	return false
}

// shape is the pattern of a path for comparing.
type shape struct {
	segments []segment
	plain    int // how many there are before the first "**"
}

// lintPattern folds case, as deny rules do, and compiles no globs, since the
// pattern meets no request.
func lintPattern(path string) shape {
	text := foldCase(decodings(marked(path))[0])
	list := make([]segment, 0, strings.Count(text, "/"))
	for seg := range strings.SplitSeq(strings.TrimPrefix(text, "/"), "/") {
		switch {
		case seg == markStars:
			list = append(list, segment{kind: segmentDeep})
		case seg == markStar:
			list = append(list, segment{kind: segmentAny})
		case strings.Contains(seg, markStar):
			list = append(list, segment{kind: segmentGlob, text: seg})
		default:
			list = append(list, segment{kind: segmentText, text: seg})
		}
	}
	s := shape{segments: list}
	for s.plain < len(list) && list[s.plain].kind != segmentDeep {
		s.plain++
	}
	return s
}

// tail says whether nothing stands behind the first "**", which is nearly
// always so.
func (s *shape) tail() bool { return s.plain >= len(s.segments)-1 }

// coversPath says whether every path of one pattern is one of another's.
func coversPath(x, y *shape) bool {
	a, b := x.segments, y.segments
	if !x.tail() {
		return coversDeep(a, b)
	}
	if x.plain == len(a) && len(a) != len(b) || len(a) > len(b) {
		return false
	}
	for i := range a[:x.plain] {
		if !coversSegment(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

// coversDeep works from the end, a table of suffixes, so that it takes the
// product of the lengths and no more.
func coversDeep(a, b []segment) bool {
	var room [2][32]bool
	next, row := rows(&room, len(b)+1) // next is row i+1: whether a[i+1:] covers b[j:]
	next[len(b)] = true
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			switch {
			case a[i].kind == segmentDeep && i == len(a)-1:
				row[j] = j < len(b) // one segment at least, and b's last "**" has one
			case a[i].kind == segmentDeep:
				row[j] = next[j] || j < len(b) && row[j+1]
			default:
				row[j] = j < len(b) && coversSegment(&a[i], &b[j]) && next[j+1]
			}
		}
		row, next = next, row
	}
	return next[0]
}

// rows are two rows of a table, in room where they fit.
func rows(room *[2][32]bool, n int) (next, row []bool) {
	if n <= len(room[0]) {
		return room[0][:n], room[1][:n]
	}
	return make([]bool, n), make([]bool, n)
}

func coversSegment(a, b *segment) bool {
	switch {
	case b.kind == segmentDeep:
		return false
	case a.kind == segmentAny:
		return b.kind == segmentAny || strings.Trim(b.text, markStar) != ""
	case a.kind == segmentText:
		return b.kind == segmentText && a.text == b.text
	case b.kind == segmentAny:
		return strings.Trim(a.text, markStar) == ""
	}
	// A star of b is a letter that only a star of a stands for.
	return matchStars(a.text, b.text, false)
}

// meetsPath says whether some path fits both patterns.
func meetsPath(x, y *shape) bool {
	a, b := x.segments, y.segments
	if !x.tail() || !y.tail() {
		return meetsDeep(a, b)
	}
	both := min(x.plain, y.plain)
	for i := range both {
		if !meetsSegment(&a[i], &b[i]) {
			return false
		}
	}
	// A last "**" takes what is left of the other side, one segment at least.
	switch {
	case x.plain < len(a):
		return both < len(b)
	case y.plain < len(b):
		return both < len(a)
	}
	return len(a) == len(b)
}

func meetsDeep(a, b []segment) bool {
	var room [2][32]bool
	next, row := rows(&room, len(b)+1)
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			endA, endB := i == len(a), j == len(b)
			deepA := !endA && a[i].kind == segmentDeep
			deepB := !endB && b[j].kind == segmentDeep
			switch {
			case endA || endB:
				row[j] = endA && endB
			case deepA && i == len(a)-1, deepB && j == len(b)-1:
				row[j] = true // the other side has a segment left, and takes any
			default:
				row[j] = deepA && (next[j] || row[j+1]) ||
					deepB && (row[j+1] || next[j]) ||
					!deepA && !deepB && meetsSegment(&a[i], &b[j]) && next[j+1]
			}
		}
		row, next = next, row
	}
	return next[0]
}

func meetsSegment(a, b *segment) bool {
	switch {
	case a.kind == segmentAny:
		return b.text != "" || b.kind == segmentAny
	case b.kind == segmentAny:
		return a.text != ""
	case a.kind == segmentText:
		return matchStars(b.text, a.text, false)
	case b.kind == segmentText:
		return matchStars(a.text, b.text, false)
	}
	// Two texts with stars meet where their ends do.
	return agree(head(a.text), head(b.text), strings.HasPrefix) && agree(tail(a.text), tail(b.text), strings.HasSuffix)
}

func head(s string) string { return s[:strings.Index(s, markStar)] }
func tail(s string) string { return s[strings.LastIndex(s, markStar)+1:] }

func agree(a, b string, is func(string, string) bool) bool { return is(a, b) || is(b, a) }
