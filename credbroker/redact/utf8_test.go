package redact

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// spelt gives pieces to letters and says what came out.
func spelt(pieces ...string) string {
	var l letters
	var out []byte
	for _, p := range pieces {
		out = l.Write(out, []byte(p))
	}
	return string(l.Flush(out))
}

func TestLetters(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain * text", "plain * text"},
		{"\u20ac*\u20ac", "\u20ac*\u20ac"},
		{"\U0001f600**\U0001f600", "\U0001f600**\U0001f600"},
		{"a\xc3*b", "a**b"},
		{"a\xe2*b", "a**b"},
		{"a\xe2\x82*b", "a***b"},
		{"a\xf0\x9f\x98*b", "a****b"},
		{"a*\xa9b", "a**b"},
		{"a*\x82\xacb", "a***b"},
		{"a\xe2\x82**\x98\x80\u20ac", "a******\u20ac"},
		{"\u20ac\xc3", "\u20ac\xc3"}, // broken off, but not by us
		{"\xff\xfe*", "\xff\xfe*"},   // no text
	} {
		for i := range len(c.in) + 1 {
			if got := spelt(c.in[:i], c.in[i:]); got != c.want {
				t.Errorf("%q cut at %d: got %q, want %q", c.in, i, got, c.want)
			}
		}
		if got := spelt(letterwise(c.in)...); got != c.want {
			t.Errorf("%q by bytes: got %q, want %q", c.in, got, c.want)
		}
	}
}

// Whatever of a text is overwritten, a text is left, and nothing far from it
// changes.
func FuzzLetters(f *testing.F) {
	f.Add("gr\u00fc\u00dfe \u20ac \U0001f600 * end", uint16(3), uint16(7), uint16(5))
	f.Fuzz(func(t *testing.T, text string, from, size, cut uint16) {
		text = strings.ToValidUTF8(text, "?")
		a := int(from) % (len(text) + 1)
		b := min(len(text), a+int(size))
		blanked := text[:a] + strings.Repeat("*", b-a) + text[b:]
		at := int(cut) % (len(text) + 1)
		got := spelt(blanked[:at], blanked[at:])
		if !utf8.ValidString(got) || len(got) != len(text) {
			t.Fatalf("%q became %q", blanked, got)
		}
		if a == b && got != text {
			t.Fatalf("%q became %q, though nothing was overwritten", text, got)
		}
		if near := max(0, a-3); got[:near] != text[:near] || !strings.HasSuffix(got, text[min(len(text), b+3):]) {
			t.Fatalf("%q became %q", blanked, got)
		}
	})
}
