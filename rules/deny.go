package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Deny rules have more readings than allow rules, all of them on the safe side:
// a path is also read as if it ended at a decoded "?" or "#", without regard to
// letter case, and without the dots and spaces that some file systems drop from
// the end of a name.

// denyTexts are the readings of a path that a deny rule's patterns meet, each
// text once and with its case folded, and what the cuts took off, which is
// looked at as a query.
func denyTexts(texts *[readings]string) (list, tails []string) {
	seen := make(map[string]bool, readings)
	add := func(text string) {
		for _, t := range [...]string{text, dropEnds(text)} {
			if seen[t] {
				continue
			}
			seen[t] = true
			list = appendFolded(list, t)
		}
	}
	for i, text := range texts {
		if i > 0 && text == texts[i-1] {
			continue
		}
		add(text)
		if cut, tail := cutTail(text); tail != "" {
			add(cut)
			tails = appendNew(tails, tail)
		}
	}
	// A server that cuts before it changes anything sees another path where the
	// mark stands among parameters: "/admin;x?y/z" is /admin to it.
	for r := range rounds {
		base := texts[r*changes]
		cut, tail := cutTail(base)
		if tail == "" || strings.IndexByte(cut, ';') < 0 {
			continue
		}
		for c := range changes {
			if c&changeParams != 0 {
				add(change(cut, c))
			}
		}
	}
	return list, tails
}

// cutTail parts a text at its first "?" or "#"; tail begins with the mark.
func cutTail(text string) (cut, tail string) {
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// denyPatterns are the forms of a deny rule's pattern: every change that a
// reading goes through but the cut. Each of them meets every reading.
func denyPatterns(path string) []*pattern {
	texts := patternTexts(path)
	var list []string
	for _, text := range texts {
		for _, t := range [...]string{text, dropEnds(text)} {
			for _, f := range appendFolded(nil, t) {
				list = appendNew(list, f)
			}
		}
	}
	patterns := make([]*pattern, len(list))
	for i, text := range list {
		patterns[i] = compile(text)
	}
	return patterns
}

// patternTexts are the readings of a pattern, its wildcards marked: just one
// where the changes leave it alone.
func patternTexts(path string) []string {
	var texts [readings]string
	vary(&texts, decodings(marked(path)))
	for _, text := range texts {
		if text != texts[0] {
			return texts[:]
		}
	}
	return texts[:1]
}

func appendNew(list []string, s string) []string {
	if contains(list, s) {
		return list
	}
	return append(list, s)
}

// appendFolded adds a text with its case folded: as Unicode's simple lower case
// where its bytes are UTF-8, and where that differs by ASCII alone too, since a
// star may part the bytes of one letter.
func appendFolded(list []string, text string) []string {
	ascii := lowerASCII(text)
	list = append(list, ascii)
	if !isASCII(text) {
		if folded := foldCase(text); folded != ascii {
			list = append(list, folded)
		}
	}
	return list
}

// foldCase is text in simple lower case; bytes that are no UTF-8 stay.
func foldCase(text string) string {
	if isASCII(text) {
		return lowerASCII(text)
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, text[i])
		} else {
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
		i += n
	}
	return string(b)
}

// lowerASCII is s with the letters A to Z as a to z.
func lowerASCII(s string) string {
	if !hasUpper(s) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		b[i] = lowerByte(c)
	}
	return string(b)
}

// dropEnds drops the dots and spaces at the end of every segment. Where that
// leaves a segment empty, repeated slashes become one again.
func dropEnds(s string) string {
	if strings.IndexByte(s, '.') < 0 && strings.IndexByte(s, ' ') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	start, emptied := 0, false
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '/' {
			continue
		}
		seg := s[start:i]
		kept := strings.TrimRight(seg, ". ")
		emptied = emptied || seg != "" && kept == ""
		b = append(b, kept...)
		if i < len(s) {
			b = append(b, '/')
		}
		start = i + 1
	}
	if emptied {
		return collapse(string(b))
	}
	return string(b)
}
