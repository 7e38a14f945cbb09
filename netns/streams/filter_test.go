package streams

import (
	"bytes"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text", "hello\r\n", "hello\r\n"},
		{"clipboard, bell", "a\x1b]52;c;aGVsbG8=\x07b", "ab"},
		{"clipboard, string terminator", "a\x1b]52;c;aGVsbG8=\x1b\\b", "ab"},
		{"clipboard, leading zeros", "a\x1b]0052;c;?\x07b", "ab"},
		{"clipboard, 8 bit", "a\x9d52;c;eA==\x9cb", "ab"},
		{"clipboard, 8 bit as UTF-8", "a\xc2\x9d52;c;eA==\xc2\x9cb", "ab"},
		{"clipboard in tmux's pass-through", "\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\x", "\x1bPtmux;\x1b\x1b\\x"},
		{"clipboard cancelled", "a\x1b]52;c;e\x18b", "ab"},
		{"clipboard cut by another sequence", "a\x1b]52;c;e\x1b[1mb", "a\x1b[1mb"},
		{"clipboard with a control inside the number", "a\x1b]5\x002;c;e\x07b", "a\x00b"},
		{"title report", "a\x1b[21tb", "ab"},
		{"title report with more parameters", "a\x1b[021;1tb", "ab"},
		{"title report, 8 bit", "a\x9b21tb", "ab"},
		{"window title is set", "\x1b]0;title\x07", "\x1b]0;title\x07"},
		{"hyperlink", "\x1b]8;;https://a.test\x1b\\x\x1b]8;;\x1b\\", "\x1b]8;;https://a.test\x1b\\x\x1b]8;;\x1b\\"},
		{"colours of the palette", "\x1b]4;52;rgb:0/0/0\x07", "\x1b]4;52;rgb:0/0/0\x07"},
		{"cursor report passes", "\x1b[6n\x1b[5n\x1b[c\x1b[>c", "\x1b[6n\x1b[5n\x1b[c\x1b[>c"},
		{"other window operations", "\x1b[18t\x1b[22;0t\x1b[210t", "\x1b[18t\x1b[22;0t\x1b[210t"},
		{"letters that hold C1 bytes", "❄ 蛛 é \xc2\xa0", "❄ 蛛 é \xc2\xa0"},
		{"colours", "\x1b[38;5;52mred\x1b[0m", "\x1b[38;5;52mred\x1b[0m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var whole, split filter
			if got := string(whole.next(nil, []byte(c.in))); got != c.want {
				t.Errorf("%q became %q, not %q", c.in, got, c.want)
			}
			var got []byte
			for i := range len(c.in) {
				got = split.next(got, []byte{c.in[i]})
			}
			if string(got) != c.want {
				t.Errorf("byte by byte %q became %q, not %q", c.in, got, c.want)
			}
		})
	}
}

// Whatever comes, no clipboard sequence and no title report comes out, the
// pieces it comes in change nothing, and what has no escape passes whole.
func FuzzFilter(f *testing.F) {
	f.Add([]byte("a\x1b]52;c;aGVsbG8=\x07b"), 3)
	f.Add([]byte("\x1b\x1b]52;\x9d52;\x1b[21t"), 1)
	f.Add([]byte("\x1b]\x1b]52;x"), 2)
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		var whole, split filter
		got := whole.next(nil, in)
		at = max(0, min(at, len(in)))
		if parts := split.next(split.next(nil, in[:at]), in[at:]); !bytes.Equal(parts, got) {
			t.Fatalf("%q in pieces is %q, whole %q", in, parts, got)
		}
		for _, bad := range []string{"\x1b]52;", "\x1b]052;", "\xc2\x9d52;", "\x1b[21t", "\x1b[021t"} {
			if strings.Contains(string(got), bad) {
				t.Fatalf("%q came through in %q", bad, got)
			}
		}
		if !bytes.ContainsAny(in, "\x1b\xc2\x9b\x9d") && !bytes.ContainsFunc(in, func(r rune) bool { return r == 0xfffd || r >= 0x80 }) && !bytes.Equal(got, in) {
			t.Fatalf("%q became %q", in, got)
		}
	})
}
