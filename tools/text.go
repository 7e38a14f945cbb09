package tools

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shown is a path in a text of lines: as it is, or quoted where it holds what
// would break the line or act on a terminal.
func shown(path string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if path == "" || !utf8.ValidString(path) || strings.ContainsFunc(path, odd) {
		return strconv.Quote(path)
	}
	return path
}

// runes takes the beginning of a character off the end of b.
func runes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if last := b[len(b)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
