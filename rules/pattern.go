package rules

import (
	"strings"

	"github.com/gobwas/glob"
)

// A wildcard of a pattern is marked with a control byte before anything is
// decoded. No reading of a request or of a rule holds one, so an escaped star
// never becomes a wildcard, however often it is decoded.
const (
	markStar  = "\x01" // "*": any text inside one segment
	markStars = "\x02" // "**": whole segments, any depth
)

// marked replaces the wildcards of a pattern with their marks.
func marked(path string) string {
	return strings.ReplaceAll(strings.ReplaceAll(path, "**", markStars), "*", markStar)
}

// pattern is one reading of a rule's path, split into segments.
type pattern struct {
	segments []segment
}

type segmentKind int

const (
	segmentText segmentKind = iota // exactly this text
	segmentAny                     // "*": one segment, not empty
	segmentGlob                    // text with stars in it
	segmentDeep                    // "**"
)

// segment is what stands between two slashes of a pattern. The glob of a
// segmentGlob is nil where gobwas does not take it (bytes over 0x7F).
type segment struct {
	kind segmentKind
	text string
	glob *glob.Pattern
}

// compile splits a marked pattern, without the slash it begins with.
func compile(text string) *pattern {
	p := &pattern{segments: make([]segment, 0, strings.Count(text, "/"))}
	for seg := range strings.SplitSeq(strings.TrimPrefix(text, "/"), "/") {
		p.segments = append(p.segments, compileSegment(seg))
	}
	return p
}

func compileSegment(text string) segment {
	switch {
	case text == markStars:
		return segment{kind: segmentDeep}
	case text == markStar:
		return segment{kind: segmentAny}
	case strings.Contains(text, markStar):
		s := segment{kind: segmentGlob, text: text}
		if isASCII(text) {
			parts := strings.Split(text, markStar)
			for i, part := range parts {
				parts[i] = glob.QuoteMeta(part)
			}
			if g, err := glob.Compile(strings.Join(parts, "*")); err == nil {
				s.glob = g
			}
		}
		return s
	}
	return segment{kind: segmentText, text: text}
}

// match says whether the whole path fits. With fold the letters A to Z of path
// count as a to z; the pattern is then folded already.
//
// "**" is walked with one point to return to, the last one, as "*" is inside a
// segment: what a later "**" can take, an earlier one need not take again. It
// costs segments of the path times segments of the pattern, never more.
func (p *pattern) match(path string, fold bool) bool {
	segs := p.segments
	at, si := 1, 0          // the byte a segment of path begins at; len(path)+1 is behind the last
	backAt, backSi := 0, -1 // where the last "**" goes on from
	end := len(path) + 1
	for {
		if si < len(segs) && segs[si].kind == segmentDeep {
			if si == len(segs)-1 {
				// The last "**" stands for one segment at least, which may be empty:
				// /a/** is /a/ and not /a.
				return at < end
			}
			si++
			backAt, backSi = at, si
			continue
		}
		if at < end && si < len(segs) {
			next := at + segmentLen(path[at:])
			if segs[si].match(path[at:next], fold) {
				at, si = next+1, si+1
				continue
			}
		} else if at >= end && si == len(segs) {
			return true
		}
		if backSi < 0 || backAt >= end {
			return false
		}
		backAt += segmentLen(path[backAt:]) + 1
		at, si = backAt, backSi
	}
}

// segmentLen is the length of the segment that s begins with.
func segmentLen(s string) int {
	if i := strings.IndexByte(s, '/'); i >= 0 {
		return i
	}
	return len(s)
}

func (s *segment) match(text string, fold bool) bool {
	switch s.kind {
	case segmentAny:
		return text != ""
	case segmentText:
		if !fold {
			return text == s.text
		}
		return equalFolded(text, s.text)
	case segmentGlob:
		if s.glob != nil && isASCII(text) && !(fold && hasUpper(text)) {
			return s.glob.Match(text)
		}
		return matchStars(s.text, text, fold)
	}
	return false
}

// matchStars matches bytes against a text with marked stars, going back to the
// last star only.
func matchStars(pat, text string, fold bool) bool {
	p, t, backP, backT := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pat) && pat[p] == markStar[0]:
			p++
			backP, backT = p, t
		case p < len(pat) && (pat[p] == text[t] || fold && pat[p] == lowerByte(text[t])):
			p++
			t++
		case backP >= 0:
			backT++
			p, t = backP, backT
		default:
			return false
		}
	}
	return strings.Trim(pat[p:], markStar) == ""
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func hasUpper(s string) bool {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return true
		}
	}
	return false
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// equalFolded compares text, its letters A to Z as a to z, with folded.
func equalFolded(text, folded string) bool {
	if len(text) != len(folded) {
		return false
	}
	for i := 0; i < len(text); i++ {
		if lowerByte(text[i]) != folded[i] {
			return false
		}
	}
	return true
}
