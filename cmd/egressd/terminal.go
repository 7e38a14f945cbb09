package main

import (
	"fmt"
	"strings"
	"unicode"
)

// plainText escapes what a terminal would act on, but for ends of lines: our
// own messages name files, which a sandbox or a cloned repository may have
// named, and no filter stands between them and the user's terminal.
func plainText(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd") // a byte of 0x80 to 0x9F is a control to some
	acts := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }
	if !strings.ContainsFunc(s, acts) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if acts(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
