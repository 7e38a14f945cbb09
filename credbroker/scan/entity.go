package scan

import (
	"bytes"
	_ "embed"
	"strconv"
	"strings"
)

// entities lists the named character references of HTML (section 13.5 of its
// standard): in each line what is spelled, in hex code points joined by `+`,
// and the names that do, what is wholly ASCII first.
//
//go:embed entities.txt
var entities string

// A name is an entity without its `&`, and the readings of it; the lengths in
// them count the `&` and no `;`.
type name struct {
	text  string
	units []unit
}

// digitNames are spelled in hex and base64, and by line breaks in them,
// whatever the secrets are.
const digitNames = "+/-_\n\r"

// names reads the list and keeps the entities that can be part of a find of
// one of the secrets, by their first letter.
func names(secrets []pattern) (by [128][]name) {
	ascii := true
	holds := func(b []byte) bool {
		if len(b) == 1 && strings.IndexByte(digitNames, b[0]) >= 0 {
			return true
		}
		for i := range secrets {
			if bytes.Contains(secrets[i].value, b) {
				return true
			}
		}
		return false
	}
	for i := range secrets {
		ascii = ascii && isASCII(secrets[i].value)
	}
	for line := range strings.Lines(entities) {
		spelled, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var text []rune
		for code := range strings.SplitSeq(spelled, "+") {
			v, _ := strconv.ParseUint(code, 16, 32) // the list is ours
			text = append(text, rune(v))
		}
		if ascii && text[0] >= 0x80 {
			break
		}
		var units []unit
		if len(text) == 1 {
			units = appendChar(nil, 0, text[0])
		} else {
			u := unit{}
			u.k = int32(copy(u.b[:], string(text)))
			units = append(units, u)
		}
		kept := units[:0]
		for _, u := range units {
			if holds(u.bytes()) {
				kept = append(kept, u)
			}
		}
		if len(kept) == 0 {
			continue
		}
		for text := range strings.SplitSeq(rest, " ") {
			n := name{text: text}
			for _, u := range kept {
				u.n = int32(1 + len(text))
				n.units = append(n.units, u)
			}
			by[text[0]] = append(by[text[0]], n)
		}
	}
	return by
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// entity appends the readings of an entity of HTML at i, with and without its
// `;`. Without one, digits behind it may be its own or the text's: each
// reading counts.
func (s *Set) entity(p []byte, i int, out []unit) []unit {
	if i+2 >= len(p) {
		return out
	}
	if p[i+1] == '#' {
		return number(p, i, out)
	}
	if p[i+1] >= 128 {
		return out
	}
	for k := range s.names[p[i+1]] {
		n := &s.names[p[i+1]][k]
		end := i + 1 + len(n.text)
		if end > len(p) || string(p[i+1:end]) != n.text {
			continue
		}
		for _, u := range n.units {
			out = append(out, u)
			if end < len(p) && p[end] == ';' {
				u.n++
				out = append(out, u)
			}
		}
	}
	return out
}

// number appends the readings of a numeric entity.
func number(p []byte, i int, out []unit) []unit {
	at, base := numberAt(p, i)
	v := rune(0)
	for end := min(len(p), i+maxEscape-1); at < end; at++ {
		d := rune(hexValue[p[at]])
		if d >= base {
			break
		}
		if v = v*base + d; v > 0x10FFFF {
			break
		}
		if v == 0 {
			continue
		}
		out = appendChar(out, at+1-i, v)
		if at+1 < len(p) && p[at+1] == ';' {
			out = appendChar(out, at+2-i, v)
		}
	}
	return out
}

// numberOf is the length of the longest reading of a numeric entity that is a
// byte of a kind.
func numberOf(p []byte, i int, kind func(b byte) bool) (n int) {
	at, base := numberAt(p, i)
	v := rune(0)
	for end := min(len(p), i+maxEscape-1); at < end; at++ {
		d := rune(hexValue[p[at]])
		if d >= base {
			break
		}
		if v = v*base + d; v >= 0x80 {
			break
		}
		if v > 0 && kind(byte(v)) {
			if n = at + 1 - i; at+1 < len(p) && p[at+1] == ';' {
				n++
			}
		}
	}
	return n
}

// numberAt is where the digits of a numeric entity begin, and their base.
func numberAt(p []byte, i int) (at int, base rune) {
	if c := p[i+2]; c == 'x' || c == 'X' {
		return i + 3, 16
	}
	return i + 2, 10
}
