package audit

import (
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// plainByte holds the bytes of ASCII that stand for themselves in a string.
var plainByte = func() (t [256]bool) {
	for c := ' '; c <= '~'; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// hidden says that r does something to a terminal, a line or the direction of
// the text around it, or cannot be seen: control characters (U+0085 too),
// format characters (the bidirectional ones among them), U+2028 and U+2029.
func hidden(r rune) bool {
	if r < 0xA0 {
		return r < 0x20 || r >= 0x7F
	}
	return r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Cf, r)
}

// appendString writes s as a JSON string (RFC 8259 section 7), in one line and
// with nothing hidden in it. A byte that is not UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s, true)
	return append(dst, '"')
}

// appendEscaped writes s with what is hidden in it escaped; with quotes also
// the quote and the backslash, so that the text can be read back.
func appendEscaped(dst []byte, s string, quotes bool) []byte {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plainByte[c] || (!quotes && (c == '"' || c == '\\')) {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[from:i]...)
			dst = appendByte(dst, c)
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[from:i]...)
			dst = utf8.AppendRune(dst, utf8.RuneError)
		case hidden(r):
			dst = append(dst, s[from:i]...)
			dst = appendRune(dst, r)
		default:
			i += size
			continue
		}
		i += size
		from = i
	}
	return append(dst, s[from:]...)
}

func appendByte(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendRune writes r as one \u escape, or two where UTF-16 needs a pair.
func appendRune(dst []byte, r rune) []byte {
	if r >= 0x10000 {
		r -= 0x10000
		return appendRune(appendRune(dst, 0xD800+r>>10), 0xDC00+r&0x3FF)
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// cutText cuts s to at most max bytes, between characters.
func cutText(s string, max int) (string, bool) {
	if len(s) <= max {
		return s, false
	}
	n := max
	for n > max-utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if !utf8.RuneStart(s[n]) {
		n = max // not UTF-8 here anyway
	}
	return s[:n], true
}
