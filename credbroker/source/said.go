package source

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shown bounds what is shown of stderr, in bytes.
const shown = 1000

// hidden stands where something may have been a secret.
const hidden = "[hidden]"

// said makes what a program wrote to stderr fit to be shown. Programs that fail
// do print secrets (sh -x, curl -v), so three things are taken out: every word
// of what it wrote to stdout, which was to be the secret; the values of its
// environment that are tokens; and any long word of letters and digits.
func said(stderr output, stdout []byte, env []string) string {
	text := stderr.head
	if stderr.clipped {
		// The first line is cut, and a secret in it may be too.
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	for _, word := range bytes.Fields(stdout) {
		text = hide(text, word)
	}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); strings.HasSuffix(name, "_TOKEN") {
			text = hide(text, []byte(value))
		}
	}
	line := printable(regexp.MustCompile(keyLike).ReplaceAllFunc(text, func(word []byte) []byte {
		if bytes.ContainsAny(word, "0123456789") && bytes.ContainsFunc(word, unicode.IsLetter) {
			return []byte(hidden)
		}
		return word
	}))
	if cut := len(line) - shown; cut > 0 {
		for !utf8.RuneStart(line[cut]) {
			cut++
		}
		line = line[cut:]
	}
	return line
}

// keyLike is as long as the keys that services hand out. A dot is not in it, so
// that names of hosts are shown, and each part of a JWT is not; a slash is
// not, so that paths are.
const keyLike = `[A-Za-z0-9_+=~-]{24,}`

// hide replaces a word that is long enough to be of use to anyone.
func hide(text, word []byte) []byte {
	if len(word) < 4 {
		return text
	}
	return bytes.ReplaceAll(text, word, []byte(hidden))
}

// printable is one line of text that cannot drive a terminal: lines are joined,
// and whatever does not print is escaped.
func printable(text []byte) string {
	var b strings.Builder
	for i, line := range strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if i > 0 {
			b.WriteString("; ")
		}
		line = strings.TrimSpace(line)
		for len(line) > 0 {
			r, n := utf8.DecodeRuneInString(line)
			switch {
			case r == utf8.RuneError && n == 1:
				fmt.Fprintf(&b, `\x%02x`, line[0])
			case r == '\t':
				b.WriteByte(' ')
			case unicode.IsPrint(r):
				b.WriteRune(r)
			default:
				fmt.Fprintf(&b, `\u{%x}`, r)
			}
			line = line[n:]
		}
	}
	return b.String()
}
