package rules_test

import (
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/egressd/egressd/rules"
)

// The plain matcher below says with regular expressions, without an index and
// without merging anything, what RULES.md says in words. It is slow, and there
// to be compared with.

// plainDecode decodes one round; a percent sign alone is a letter.
func plainDecode(s string) string {
	return plainEscape.ReplaceAllStringFunc(s, func(e string) string {
		d, err := url.PathUnescape(e)
		if err != nil {
			return e
		}
		return d
	})
}

var (
	plainEscape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	plainLetter = regexp.MustCompile(`^[A-Za-z0-9._~-]$`)
	plainParams = regexp.MustCompile(`;[^/]*`)
	plainSlash  = regexp.MustCompile(`/+`)
	plainCut    = regexp.MustCompile(`(?s)[?#].*`)
)

func plainNormal(s string) string {
	return plainEscape.ReplaceAllStringFunc(s, func(e string) string {
		if d := plainDecode(e); plainLetter.MatchString(d) {
			return d
		}
		return strings.ToUpper(e)
	})
}

// plainReadings are all 32, in the order of rounds and subsets.
func plainReadings(path string) []string {
	var list []string
	one := plainDecode(path)
	two := plainDecode(one)
	for _, base := range []string{plainNormal(path), one, two, plainDecode(two)} {
		for set := range 8 {
			t := base
			if set&1 != 0 {
				t = strings.ReplaceAll(t, `\`, "/")
			}
			if set&2 != 0 {
				t = plainParams.ReplaceAllLiteralString(t, "")
			}
			if set&4 != 0 {
				t = plainSlash.ReplaceAllLiteralString(t, "/")
			}
			list = append(list, t)
		}
	}
	return list
}

// Stars are letters of a private area here, so that no path holds them.
const (
	plainStar  = "\x05"
	plainStars = "\x06"
)

func plainMarked(path string) string {
	return strings.ReplaceAll(strings.ReplaceAll(path, "**", plainStars), "*", plainStar)
}

// wide makes a rune of each byte, so that regexp sees bytes.
func wide(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// plainPattern is a pattern as a regular expression.
func plainPattern(pattern string) *regexp.Regexp {
	segs := strings.Split(pattern[1:], "/")
	expr := "^"
	for i, seg := range segs {
		last := i == len(segs)-1
		switch {
		case seg == plainStars && last:
			expr += `/[\s\S]*`
		case seg == plainStars:
			expr += `(?:/[^/]*)*`
		case seg == plainStar:
			expr += `/[^/]+`
		default:
			expr += "/" + strings.ReplaceAll(regexp.QuoteMeta(wide(seg)), plainStar, `[^/]*`)
		}
	}
	return regexp.MustCompile(expr + `$`)
}

func plainLower(s string) string {
	var b []byte
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b = append(b, s[0])
		} else {
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
		s = s[n:]
	}
	return string(b)
}

func plainEnds(s string) string {
	segs := strings.Split(s, "/")
	emptied := false
	for i, seg := range segs {
		segs[i] = strings.TrimRight(seg, ". ")
		emptied = emptied || seg != "" && segs[i] == ""
	}
	s = strings.Join(segs, "/")
	if emptied {
		s = plainSlash.ReplaceAllLiteralString(s, "/")
	}
	return s
}

// plainAllowed answers for one path and rules that differ in their paths only.
func plainAllowed(allow, deny []string, path string) bool {
	texts := plainReadings(path)
	var more []string
	for _, t := range texts {
		for _, cut := range []string{t, plainCut.ReplaceAllLiteralString(t, "")} {
			more = append(more, cut, plainEnds(cut), plainLower(cut), plainEnds(plainLower(cut)))
		}
	}
	// A server that cuts before it changes anything takes parameters off later.
	for i := 8; i < len(texts); i += 8 {
		cut := plainCut.ReplaceAllLiteralString(texts[i], "")
		if cut == texts[i] {
			continue
		}
		for _, t := range []string{cut, strings.ReplaceAll(cut, `\`, "/")} {
			t = plainParams.ReplaceAllLiteralString(t, "")
			for _, t := range []string{t, plainSlash.ReplaceAllLiteralString(t, "/")} {
				more = append(more, t, plainEnds(t), plainLower(t), plainEnds(plainLower(t)))
			}
		}
	}
	for _, d := range deny {
		forms := map[string]bool{} // the same form again says the same again
		for _, p := range plainReadings(plainMarked(d)) {
			for _, form := range []string{p, plainEnds(p), plainLower(p), plainEnds(plainLower(p))} {
				if forms[form] {
					continue
				}
				forms[form] = true
				expr := plainPattern(form)
				for _, t := range more {
					if expr.MatchString(wide(t)) {
						return false
					}
				}
			}
		}
	}
	for i, t := range texts {
		fits := false
		for _, a := range allow {
			fits = fits || plainPattern(plainReadings(plainMarked(a))[i]).MatchString(wide(t))
		}
		if !fits {
			return false
		}
	}
	return true
}

// pieces are what paths and patterns of the comparison are made of.
var pieces = []string{"/", "/", "/", "a", "b", "A", "c.txt", "%2F", "%2f", "%252F", "%5C", "//", ";x", "%3B", "%3F", "%23",
	"%41", "%61", "%2E", ".", "%20", "%25", "%2525", "%E9", "%C3%A9", "%C3%89", "%2A", "%25%32%46", "x", "%2541"}

func somePath(r *rand.Rand, stars bool) string {
	var b strings.Builder
	b.WriteByte('/')
	for range r.IntN(7) {
		switch {
		case stars && r.IntN(5) == 0:
			b.WriteString("*")
		case stars && r.IntN(6) == 0:
			b.WriteString("/**/")
		default:
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
	}
	return b.String()
}

func TestDifferential(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	n, allowed := 0, 0
	for range 2000 {
		if differs(t, r.Uint64(), r.Uint64(), &allowed) {
			n++
		}
	}
	if n < 500 || allowed < 50 || allowed > n-50 {
		t.Errorf("%d comparisons, %d allowed: too few of a kind to tell anything", n, allowed)
	}
}

func FuzzDifferential(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		n := 0
		differs(t, a, b, &n)
	})
}

// differs compares a set with the plain matcher for rules and paths made from a
// seed, and says whether there was something to compare.
func differs(t *testing.T, a, b uint64, allowed *int) bool {
	t.Helper()
	r := rand.New(rand.NewPCG(a, b))
	var list []rules.Rule
	var allow, deny []string
	for range 1 + r.IntN(3) {
		path := somePath(r, true)
		if r.IntN(4) == 0 {
			path = "/**"
		}
		if rule, err := rules.Parse("GET a.test" + path); err == nil {
			list, allow = append(list, rule), append(allow, path)
		}
	}
	for range r.IntN(3) {
		path := somePath(r, true)
		if rule, err := rules.Parse("!GET a.test" + path); err == nil {
			list, deny = append(list, rule), append(deny, path)
		}
	}
	path := somePath(r, false)
	switch {
	case len(allow) > 0 && r.IntN(3) == 0:
		path = strings.ReplaceAll(allow[0], "*", "a")
	case len(deny) > 0 && r.IntN(3) == 0:
		path = strings.ReplaceAll(deny[0], "*", "B")
	}
	if len(list) == 0 {
		return false
	}
	d := rules.New(list).Decide(rules.Request{Method: "GET", Scheme: "https", Host: "a.test", Target: path, At: someday})
	if d.Reason == "bad_request" || d.Reason == "ambiguous_path" {
		return false
	}
	want := plainAllowed(allow, deny, path)
	if got := d.Verdict == rules.Allow; got != want {
		t.Errorf("allow %q deny %q path %q: %s %s, the plain matcher says allow is %v", allow, deny, path, d.Verdict, d.Reason, want)
	}
	if want {
		*allowed++
	}
	return true
}
