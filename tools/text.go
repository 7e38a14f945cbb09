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
