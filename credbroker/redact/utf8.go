package redact

import (
	"bytes"
	"unicode/utf8"
)

// letters keeps a text valid in which bytes were overwritten with asterisks. A
// run of a secret may begin or end inside a letter of several bytes; what is
// left of that letter becomes asterisks too, or the client would close the
// connection (RFC 6455 section 8.1). In valid text an asterisk never stands
// beside half a letter, so nothing else is touched.
type letters struct {
	tail  []byte // the beginning of a letter whose end did not come yet
	after bool   // the byte before was an asterisk
}

// Write appends p to dst, but for the beginning of a letter at its end. It may
// change p.
func (l *letters) Write(dst, p []byte) []byte {
	if len(p) == 0 {
		return dst
	}
	at := len(dst)
	dst = append(append(dst, l.tail...), p...)
	l.tail = l.tail[:0]
	b := dst[at:]
	if l.after {
		blankRest(b)
	}
	for i := bytes.IndexByte(b, '*'); i >= 0; {
		blankBeginning(b[:i])
		blankRest(b[i+1:])
		next := bytes.IndexByte(b[i+1:], '*')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if n := beginning(b); n > 0 {
		l.tail = append(l.tail, b[len(b)-n:]...)
		dst, b = dst[:len(dst)-n], b[:len(b)-n]
	}
	l.after = len(l.tail) == 0 && len(b) > 0 && b[len(b)-1] == '*'
	return dst
}

// Flush appends what is held. What follows is a text of its own.
func (l *letters) Flush(dst []byte) []byte {
	dst = append(dst, l.tail...)
	l.tail, l.after = l.tail[:0], false
	return dst
}

// beginning is how many bytes at the end of b begin a letter that b does not
// end, 0 to 3.
func beginning(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if utf8.RuneStart(b[len(b)-n]) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

func blankBeginning(b []byte) {
	for i := len(b) - beginning(b); i < len(b); i++ {
		b[i] = '*'
	}
}

// blankRest blanks the end of a letter at the beginning of b.
func blankRest(b []byte) {
	for i := 0; i < len(b) && !utf8.RuneStart(b[i]); i++ {
		b[i] = '*'
	}
}
