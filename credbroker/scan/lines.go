package scan

import (
	"bytes"
	"encoding/binary"
)

// lineBorder is the end of the last line of buf that counts as finished, where
// that is behind border; else border or less.
func (s *Stream) lineBorder(border int) int {
	if bytes.IndexByte(s.buf[max(0, border, s.out):], '\n') < 0 { // at once, unlike the search from behind
		return 0
	}
	for end := len(s.buf); end > border && end > s.out; {
		n := bytes.LastIndexByte(s.buf[max(border, s.out):end], '\n')
		if n < 0 {
			break
		}
		end = max(border, s.out) + n
		if s.finished(end) {
			return end + 1
		}
	}
	return 0
}

// finished tells whether the line that ends at the line break at i is none that
// goes on in the next: a line of base64, or one that ends in a soft break.
func (s *Stream) finished(i int) bool {
	if i > 0 && s.buf[i-1] == '\r' {
		i--
	}
	if i == 0 || s.buf[i-1] == '\n' {
		return true
	}
	return s.buf[i-1] != '=' && !s.pureBefore(i)
}

// pureBefore tells whether the line that i lies in is of base64 letters and `=`
// only, up to there.
func (s *Stream) pureBefore(i int) bool {
	for i > 0 {
		low := max(0, i-8)
		if low == i-8 && allLetters(binary.LittleEndian.Uint64(s.buf[low:])) {
			i = low
			continue
		}
		for ; i > low; i-- {
			if c := s.buf[i-1]; c == '\n' {
				return true
			} else if letterValue[c] == 0xFF && c != '=' {
				return false
			}
		}
	}
	return s.pure
}

const (
	ones = 0x0101010101010101
	high = 0x80 * ones
)

// allLetters tells that eight bytes are all of `A-Za-z0-9+/-`.
func allLetters(w uint64) bool { return letters(w) == high }

// letters has the upper bit set of each of eight bytes that is of `A-Za-z0-9+/-`,
// which is what base64 is made of but for `_`. It reads them at once: with that
// bit of each byte out of the way, adding 0x80-lo sets it where the byte is lo or
// more.
func letters(w uint64) uint64 {
	y := w &^ high
	l := y | fold
	letter := (l + (0x80-'a')*ones) &^ (l + (0x7F-'z')*ones)
	digit := (y + (0x80-'+')*ones) &^ (y + (0x7F-'9')*ones)
	other := (y | 2*ones) ^ '.'*ones + 0x7F*ones // set but for `,` and `.`
	return (letter | digit&other) &^ w & high
}
