package policy

import (
	"path"
	"strings"
)

// command reads a program that egressd runs on the host: an argv, or a text
// that is split as a shell splits words (no shell runs). Programs are looked
// up in PATH; a relative one with a slash could be the sandbox's own.
func (d *doc) command(v value) []string {
	var argv []string
	var at []spot
	switch {
	case isText(v):
		words, ok := splitWords(v.node.Value)
		if !ok {
			d.fail(v.spot(), KindValue, "a quote that is not closed")
			return nil
		}
		argv = words
	case v.node.Kind == sequenceKind:
		before := len(d.problems)
		argv, at = d.strings(v, "words", func(s string) string {
			if strings.ContainsRune(s, 0) {
				return "a NUL in a text"
			}
			return ""
		})
		if len(d.problems) > before {
			return nil
		}
	default:
		d.mistyped(v, "text or a list of words")
		return nil
	}
	place := func(i int) spot {
		if i < len(at) {
			return at[i]
		}
		return v.spot()
	}
	if len(argv) == 0 || argv[0] == "" {
		d.fail(place(0), KindValue, "a command without a program")
		return nil
	}
	for _, i := range programs(argv) {
		if !program(argv[i]) {
			d.fail(place(i), KindValue, "%s is a relative path: a program is a name that PATH has, an absolute path, or one below ~/", quoted(argv[i]))
			return nil
		}
	}
	return argv
}

// program says that a word is a bare name, an absolute path or below home.
func program(word string) bool {
	return word != "" && !strings.ContainsRune(word, 0) &&
		(!strings.Contains(word, "/") || path.IsAbs(word) || strings.HasPrefix(word, "~/"))
}

// programs are the indexes of the words that name a program: the first, and
// what stands behind env and its variables.
func programs(argv []string) []int {
	list := []int{0}
	if path.Base(argv[0]) != "env" {
		return list
	}
	for i, word := range argv[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return append(list, i+1)
		}
	}
	return list
}

// splitWords splits as a shell splits words: blanks part them, quotes and
// backslashes hold them together. Nothing is expanded.
func splitWords(s string) (words []string, ok bool) {
	var word strings.Builder
	in := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r':
			if in {
				words, in = append(words, word.String()), false
				word.Reset()
			}
		case '\'':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				return nil, false
			}
			word.WriteString(s[i+1 : i+1+n])
			i, in = i+1+n, true
		case '"':
			for i++; ; i++ {
				if i >= len(s) {
					return nil, false
				}
				if s[i] == '"' {
					break
				}
				if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\\\"$`\n", s[i+1]) >= 0 {
					i++
				}
				word.WriteByte(s[i])
			}
			in = true
		case '\\':
			if i++; i >= len(s) {
				return nil, false
			}
			if s[i] != '\n' {
				word.WriteByte(s[i])
				in = true
			}
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words, true
}
