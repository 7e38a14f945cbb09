package scan

import "unicode/utf8"

// An escape longer than this, in bytes, spells nothing. The longest name of
// HTML takes 33; the rest is room for leading zeros.
const maxEscape = 48

// A unit is one way to read the text at some place: n bytes of it spell the
// first k bytes of b.
type unit struct {
	n int32
	k int32
	b [8]byte
}

func (u *unit) bytes() []byte { return u.b[:u.k] }

func one(n int, c byte) unit { return unit{n: int32(n), k: 1, b: [8]byte{c}} }

// appendChar appends the readings of n bytes that spell a character: as UTF-8,
// and below U+0100 as the byte of that value. A surrogate spells nothing.
func appendChar(out []unit, n int, r rune) []unit {
	if !utf8.ValidRune(r) {
		return out
	}
	u := unit{n: int32(n)}
	u.k = int32(utf8.EncodeRune(u.b[:], r))
	out = append(out, u)
	if 0x80 <= r && r < 0x100 {
		out = append(out, one(n, byte(r)))
	}
	return out
}

// hexValue is the value of a hex digit in either case, 0xFF for other bytes.
var hexValue = func() (t [256]uint8) {
	for c := range t {
		t[c] = 0xFF
	}
	for v, c := range "0123456789abcdef" {
		t[c] = uint8(v)
	}
	for v, c := range "ABCDEF" {
		t[c] = uint8(v + 10)
	}
	return t
}()

// letterValue is the value of a letter of base64, in either alphabet, 0xFF for
// other bytes. The digits of hex are among its letters.
var letterValue = func() (t [256]uint8) {
	for c := range t {
		t[c] = 0xFF
	}
	for v, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		t[c] = uint8(v)
	}
	t['-'], t['_'] = 62, 63
	return t
}()

// hexPair is the byte that two hex digits at i spell, -1 where there are none.
func hexPair(p []byte, i int) int {
	if i+2 > len(p) {
		return -1
	}
	a, b := hexValue[p[i]], hexValue[p[i+1]]
	if a|b == 0xFF {
		return -1
	}
	return int(a)<<4 | int(b)
}

// hexNumber is the value of the n hex digits at i, -1 where there are not as
// many.
func hexNumber(p []byte, i, n int) rune {
	if i+n > len(p) {
		return -1
	}
	v := rune(0)
	for _, c := range p[i : i+n] {
		d := hexValue[c]
		if d == 0xFF {
			return -1
		}
		v = v<<4 | rune(d)
	}
	return v
}

// units appends every reading of the text at i to out: the byte as such first,
// then what it may begin an escape of. Escapes within escapes are not read.
func (s *Set) units(p []byte, i int, out []unit) []unit {
	c := p[i]
	out = append(out, one(1, c))
	switch c {
	case '+': // a space in a form
		out = append(out, one(1, ' '))
	case '%', '=': // RFC 3986 section 2.1, RFC 2045 section 6.7
		if v := hexPair(p, i+1); v >= 0 {
			out = append(out, one(3, byte(v)))
		}
	case '\\':
		out = backslash(p, i, out)
	case '&':
		out = s.entity(p, i, out)
	}
	return out
}

// backslash reads the escapes of RFC 8259 section 7 and the \xXX of scripts.
func backslash(p []byte, i int, out []unit) []unit {
	if i+1 >= len(p) {
		return out
	}
	switch c := p[i+1]; c {
	case 'x':
		if v := hexPair(p, i+2); v >= 0 {
			out = append(out, one(4, byte(v)))
		}
	case 'u':
		v := hexNumber(p, i+2, 4)
		if 0xD800 <= v && v < 0xDC00 && i+7 < len(p) && p[i+6] == '\\' && p[i+7] == 'u' {
			if low := hexNumber(p, i+8, 4); 0xDC00 <= low && low < 0xE000 {
				return appendChar(out, 12, 0x10000+(v-0xD800)<<10+low-0xDC00)
			}
		}
		if v >= 0 {
			out = appendChar(out, 6, v)
		}
	default:
		if e := shortEscape[c]; e != 0 {
			out = append(out, one(2, e))
		}
	}
	return out
}

// shortEscape is the byte that a backslash with this letter spells, 0 for none.
var shortEscape = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// softBreak is the length of the soft line break of quoted-printable at i (RFC
// 2045 section 6.7, rule 5), 0 where there is none.
func softBreak(p []byte, i int) int {
	switch {
	case i+1 < len(p) && p[i] == '=' && p[i+1] == '\n':
		return 2
	case i+2 < len(p) && p[i] == '=' && p[i+1] == '\r' && p[i+2] == '\n':
		return 3
	}
	return 0
}

// single is the byte that an escape of one byte at i spells, and its length, 0
// where there is none. Entities are left to others: they may be read in several
// ways.
func single(p []byte, i int) (c byte, n int) {
	if i+1 >= len(p) {
		return 0, 0
	}
	v, n := -1, 0
	switch next := p[i+1]; p[i] {
	case '%', '=':
		v, n = hexPair(p, i+1), 3
	case '\\':
		switch next {
		case 'x':
			v, n = hexPair(p, i+2), 4
		case 'u':
			v, n = int(hexNumber(p, i+2, 4)), 6
		default:
			if e := shortEscape[next]; e != 0 {
				return e, 2
			}
		}
	}
	if v < 0 || v >= 0x80 && n == 6 {
		return 0, 0
	}
	return byte(v), n
}

// spelt is how many bytes at i spell the byte c, the most where several do,
// 0 where none does. It is for line breaks.
func (s *Set) spelt(p []byte, i int, c byte) int {
	switch {
	case i >= len(p):
		return 0
	case p[i] == c:
		return 1
	case p[i] == '&':
		return s.entityOf(p, i, func(b byte) bool { return b == c })
	}
	if b, n := single(p, i); n > 0 && b == c {
		return n
	}
	return 0
}

// entityOf is the length of the longest entity at i that spells a byte of a
// kind, all of which are ASCII; 0 for none.
func (s *Set) entityOf(p []byte, i int, kind func(b byte) bool) (n int) {
	if i+2 < len(p) && p[i+1] == '#' {
		return numberOf(p, i, kind)
	}
	var room [16]unit
	for _, u := range s.entity(p, i, room[:0]) {
		if u.k == 1 && kind(u.b[0]) {
			n = max(n, int(u.n))
		}
	}
	return n
}

// digit is the letter of base64 (or digit of hex) that is spelled at i and the
// length of its spelling, 0 where there is none. No place spells two of them:
// what begins an escape is no letter but `+`, which is the letter, and of the
// numbers that an entity's digits may be read as, one at most is a letter.
func (s *Set) digit(p []byte, i int) (c byte, n int) {
	if i >= len(p) {
		return 0, 0
	}
	if c = p[i]; letterValue[c] != 0xFF {
		return c, 1
	}
	if !isLead[c] {
		return 0, 0
	}
	if c == '&' {
		n = s.entityOf(p, i, func(b byte) bool {
			if letterValue[b] == 0xFF {
				return false
			}
			c = b
			return true
		})
		return c, n
	}
	if c, n = single(p, i); n == 0 || letterValue[c] == 0xFF {
		return 0, 0
	}
	return c, n
}

// lineBreak is the length of the one line break that hex and base64 may hold
// between two digits, here at i, as such or as an escape; 0 for none. An entity
// that may be read as a digit (`&#104`) is one.
func (s *Set) lineBreak(p []byte, i int) int {
	if i >= len(p) || !isLead[p[i]] && p[i] != '\n' && p[i] != '\r' {
		return 0
	}
	if n := softBreak(p, i); n > 0 {
		return n
	}
	n := s.spelt(p, i, '\n')
	if n == 0 {
		if cr := s.spelt(p, i, '\r'); cr > 0 {
			if lf := s.spelt(p, i+cr, '\n'); lf > 0 {
				n = cr + lf
			}
		}
	}
	if n > 0 && p[i] == '&' {
		if _, l := s.digit(p, i); l > 0 {
			return 0
		}
	}
	return n
}

// isLead tells the bytes that may begin an escape.
var isLead = [256]bool{'%': true, '=': true, '\\': true, '&': true}
