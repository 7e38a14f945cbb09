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
		{"clipboard in tmux's pass-through", "\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\x", "\x1bPtmux;\x1b\\\x1b\x1b\\\x1b\\x"},
		{"clipboard in pieces of screen's pass-through", "\x1bP\x1b]5\x1b\\\x1bP2;c;eA==\x07\x1b\\x", "\x1bP\x1b\\\x1b]5\x1b\\\x1bP2;c;eA==\x07\x1b\\x"},
		{"clipboard in pieces, 8 bit", "\x1bP\x9d\x1b\\\x1bP52;c;eA==\x07\x1b\\x", "\x1bP\x1b\\\x1bP52;c;eA==\x07\x1b\\x"},
		{"clipboard in pieces, 8 bit as UTF-8", "\x90\xc2\x9d\x9c\xc2\x9052;c;x\xc2\x9cx", "\x90\x1b\\\xc2\x9052;c;x\x1b\\x"},
		{"clipboard of kitty", "a\x1b]5522;type=write\x1b\\b", "ab"},
		{"clipboard of iTerm2", "a\x1b]1337;Copy=:eA==\x07b\x1b]1337;CopyToClipboard=\x07c\x1b]1337;EndCopy\x07", "abc"},
		{"clipboard of iTerm2 with a control inside", "a\x1b]1337;Co\x00py=:eA==\x07b", "a\x00b"},
		{"other commands of iTerm2", "\x1b]1337;SetMark\x07\x1b]1337;CopyMode=x\x07", "\x1b]1337;SetMark\x07\x1b]1337;CopyMode=x\x07"},
		{"clipboard behind a letter that is none", "\xe0\x9d52;c;eA==\x07x", "\xe0x"},
		{"letters made to hold controls", "a\x1b%@b\x1b%Gc", "ab\x1b%Gc"},
		{"clipboard around what is taken out", "\x1b]5\x1b[21t2;c;eA==\x07", "\x1b]5\x1b\\2;c;eA==\x07"},
		{"clipboard around it, behind ESC", "\x1b\x1b[21t]52;c;eA==\x07", "\x1b\x1b\\]52;c;eA==\x07"},
		{"title report around it", "\x1b[2\x1b]52;c;x\x071t", "\x1b[2\x1b\\1t"},
		{"clipboard with a control behind ESC", "\x1b\n]52;c;eA==\x07x", "\nx"},
		{"clipboard with DEL behind ESC", "\x1b\x7f]5\x7f2;c;eA==\x07x", "\x7f\x7fx"},
		{"icon label report", "a\x1b[20tb", "ab"},
		{"strings pass", "\x1bPq#0;2;0~-\x1b\\\x1bP$q m\x1b\\\x1b_Ga=q;AAAA\x1b\\❝é", "\x1bPq#0;2;0~-\x1b\\\x1bP$q m\x1b\\\x1b_Ga=q;AAAA\x1b\\❝é"},
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
	f.Add([]byte("\x1bP\x1b]5\x1b\\\x1bP2;c;\x07"), 5)
	f.Add([]byte("\x1bP\x9c\x1b]5\x1bP\x18\x1b[\x1bP\xc2\x9c\x1b0"), 2)
	f.Add([]byte("\x1b]5\x1b[21t2;\x1b\x1b[20t]52;"), 5)
	f.Add([]byte("\x1b\n]52;c;x\x07\x1b%\x1b%@@"), 5)
	f.Add([]byte("\x1b]1337;Copy=x\x90\xc2\x9d"), 5)
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		var whole, split filter
		got := whole.next(nil, in)
		at = max(0, min(at, len(in)))
		if parts := split.next(split.next(nil, in[:at]), in[at:]); !bytes.Equal(parts, got) {
			t.Fatalf("%q in pieces is %q, whole %q", in, parts, got)
		}
		for _, bad := range []string{"\x1b]52;", "\x1b]052;", "\xc2\x9d52;", "\x1b[21t", "\x1b[021t", "\x1b[20t", "\x1b]5522;", "\x1b]1337;Copy=", "\x1b%@"} {
			if strings.Contains(string(got), bad) {
				t.Fatalf("%q came through in %q", bad, got)
			}
		}
		var second filter
		if again := second.next(nil, got); len(again)+len(second.held) != len(got) { // controls may change places
			t.Fatalf("%q holds what the filter takes out: %q", got, again)
		}
		if begun := stringsHandOn(got); bytes.ContainsAny(begun, "\x1b") {
			t.Fatalf("strings of %q hand %q on", got, begun)
		}
		if !bytes.ContainsAny(in, "\x1b\xc2\x9b\x9d\x90\x98\x9e\x9f") && !bytes.ContainsFunc(in, func(r rune) bool { return r == 0xfffd || r >= 0x80 }) && !bytes.Equal(got, in) {
			t.Fatalf("%q became %q", in, got)
		}
	})
}

// stringsHandOn is what the device control strings hold, as a multiplexer that
// passes them through would write it.
func stringsHandOn(out []byte) []byte {
	var held []byte
	for {
		_, rest, ok := bytes.Cut(out, []byte("\x1bP"))
		if !ok {
			return held
		}
		end := bytes.Index(rest, []byte("\x1b\\"))
		if end < 0 {
			end = len(rest)
		}
		held, out = append(held, rest[:end]...), rest[end:]
	}
}
