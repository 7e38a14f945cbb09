package scan

import (
	"bytes"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// This file follows a spelling by one byte of the secret, on and back. What is
// read back is read on again from there, so only reading on makes edges.

// softRow is how many soft line breaks may stand in a row.
const softRow = 4

func (r *reader) textOn(k int32, n node) {
	if int(n.i) >= len(r.p) {
		return
	}
	v := r.set.secrets[n.pat].value[n.j:]
	if c := r.p[n.i]; !isLead[c] && c != '+' {
		if len(v) > 0 && v[0] == c {
			r.textTo(k, int(n.i+1), int(n.j+1))
		}
		return
	}
	r.room = r.set.units(r.p, int(n.i), r.room[:0])
	for m := range r.room {
		u := &r.room[m]
		if bytes.HasPrefix(v, u.bytes()) {
			r.textTo(k, int(n.i+u.n), int(n.j+u.k))
		}
	}
}

// textTo leads to what follows behind end and behind soft line breaks there.
func (r *reader) textTo(k int32, end, j int) {
	r.lead(k, 0, end, j, end)
	next := end
	for range softRow {
		soft := softBreak(r.p, next)
		if soft == 0 {
			return
		}
		next += soft
		r.lead(k, 0, next, j, end)
	}
}

func (r *reader) textBack(n node) {
	v := r.set.secrets[n.pat].value[:n.j]
	end := int(n.i)
	for range softRow + 1 {
		r.textBackFrom(n, v, end)
		soft := r.softBefore(end)
		if soft == 0 {
			return
		}
		end -= soft
	}
}

func (r *reader) softBefore(end int) int {
	for soft := 2; soft <= 3 && soft <= end; soft++ {
		if softBreak(r.p, end-soft) == soft {
			return soft
		}
	}
	return 0
}

func (r *reader) textBackFrom(n node, v []byte, end int) {
	if end == 0 || len(v) == 0 {
		return
	}
	if c := r.p[end-1]; c == v[len(v)-1] || c == '+' && v[len(v)-1] == ' ' {
		r.node(n.pat, n.read, 0, end-1, len(v)-1)
	}
	for at := r.leadBefore(end-1, end); at >= 0; at = r.leadBefore(at, end) {
		if n := end - at; r.p[at] != '&' && n != 3 && (r.p[at] != '\\' || n > 12) {
			continue
		}
		r.room = r.set.units(r.p, at, r.room[:0])
		for k := range r.room {
			u := &r.room[k]
			if at+int(u.n) == end && bytes.HasSuffix(v, u.bytes()) {
				r.node(n.pat, n.read, 0, at, len(v)-int(u.k))
			}
		}
	}
}

// leadBefore is the last place before at where an escape or a line break may
// begin that ends at end; -1 for none.
func (r *reader) leadBefore(at, end int) int {
	low := max(0, end-2*maxEscape)
	for at > low {
		block := (at - 1) >> 6
		if m := r.leads(block) << (63 - uint(at-1)&63); m != 0 {
			if at = at - 1 - bits.LeadingZeros64(m); at < low {
				return -1
			}
			return at
		}
		at = block << 6
	}
	return -1
}

// leads has a bit for each byte of a block of 64 that may begin an escape or a
// line break. Each is looked through once.
func (r *reader) leads(block int) uint64 {
	for len(r.blocks) <= block {
		r.blocks = append(r.blocks, blockLeads{})
	}
	b := &r.blocks[block]
	if !b.known {
		b.known, b.bits = true, 0
		for k, c := range r.p[block<<6 : min(len(r.p), block<<6+64)] {
			if isLead[c] || c == '\r' || c == '\n' {
				b.bits |= 1 << k
			}
		}
	}
	return b.bits
}

type blockLeads struct {
	bits  uint64
	known bool
}

// A digit is where one digit of hex or letter of base64 is spelled.
type digit struct {
	c        byte
	at, next int
}

// digitOn is the digit that follows behind end, right there or behind a line
// break; its next is 0 where there is none.
func (r *reader) digitOn(end int) digit {
	c, l := r.set.digit(r.p, end)
	if l == 0 {
		b := r.set.lineBreak(r.p, end)
		if b == 0 {
			return digit{}
		}
		end += b
		if c, l = r.set.digit(r.p, end); l == 0 {
			return digit{}
		}
	}
	return digit{c, end, end + l}
}

// digitsBack are the digits that may come before at, those behind which a line
// break stands among them.
func (r *reader) digitsBack(at int, ds []digit) []digit {
	ds = r.digitsTo(at, ds)
	for b := r.leadBefore(at, at); b >= 0; b = r.leadBefore(b, at) {
		if r.set.lineBreak(r.p, b) == at-b {
			ds = r.digitsTo(b, ds)
		}
	}
	return ds
}

func (r *reader) digitsTo(end int, ds []digit) []digit {
	if end == 0 {
		return ds
	}
	if c := r.p[end-1]; letterValue[c] != 0xFF {
		ds = append(ds, digit{c, end - 1, end})
	}
	for at := r.leadBefore(end-1, end); at >= 0; at = r.leadBefore(at, end) {
		if c, l := r.set.digit(r.p, at); at+l == end && l > 1 {
			ds = append(ds, digit{c, at, end})
		}
	}
	return ds
}

// leadOver is lead to what follows behind end and behind a line break there.
func (r *reader) leadOver(k int32, j, end int) {
	r.lead(k, 0, end, j, end)
	if b := r.set.lineBreak(r.p, end); b > 0 {
		r.lead(k, 0, end+b, j, end)
	}
}

func (r *reader) hexOn(k int32, n node) {
	v := r.set.secrets[n.pat].value
	c, l := r.set.digit(r.p, int(n.i))
	if l == 0 || int(n.j) == len(v) || hexValue[c] != v[n.j]>>4 {
		return
	}
	if d := r.digitOn(int(n.i) + l); d.next > 0 && hexValue[d.c] == v[n.j]&15 {
		r.leadOver(k, int(n.j+1), d.next)
	}
}

func (r *reader) hexBack(n node) {
	if n.j == 0 {
		return
	}
	want := r.set.secrets[n.pat].value[n.j-1]
	var room [2][8]digit
	for _, low := range r.digitsBack(int(n.i), room[0][:0]) {
		if hexValue[low.c] != want&15 {
			continue
		}
		for _, high := range r.digitsBack(low.at, room[1][:0]) {
			if hexValue[high.c] == want>>4 {
				r.node(n.pat, n.read, 0, high.at, int(n.j-1))
			}
		}
	}
}

// spells tells whether byte c begins behind r bits of the letter a and goes on
// in the letter b.
func spells(c, a, b byte, r uint8) bool {
	x := uint(letterValue[a])<<6 | uint(letterValue[b])
	return byte(x>>(4-r)) == c
}

func (r *reader) base64On(k int32, n node) {
	v := r.set.secrets[n.pat].value
	c, l := r.set.digit(r.p, int(n.i))
	if l == 0 || int(n.j) == len(v) {
		return
	}
	d := r.digitOn(int(n.i) + l)
	switch {
	case d.next == 0 || !spells(v[n.j], c, d.c, n.r):
	case n.r == 4:
		r.leadOver(k, int(n.j+1), d.next)
	default:
		r.lead(k, n.r+2, d.at, int(n.j+1), d.next)
	}
}

func (r *reader) base64Back(n node) {
	if n.j == 0 {
		return
	}
	want := r.set.secrets[n.pat].value[n.j-1]
	var room [2][8]digit
	if n.r > 0 {
		if c, l := r.set.digit(r.p, int(n.i)); l > 0 {
			r.base64BackFrom(n, want, digit{c: c, at: int(n.i)}, n.r-2, room[1][:0])
		}
		return
	}
	for _, low := range r.digitsBack(int(n.i), room[0][:0]) {
		r.base64BackFrom(n, want, low, 4, room[1][:0])
	}
}

func (r *reader) base64BackFrom(n node, want byte, low digit, with uint8, room []digit) {
	for _, high := range r.digitsBack(low.at, room) {
		if spells(want, high.c, low.c, with) {
			r.node(n.pat, n.read, with, high.at, int(n.j-1))
		}
	}
}

// unit16 is the code unit of UTF-16 at i, -1 where the text ends.
func (r *reader) unit16(read reading, i int) rune {
	switch {
	case i < 0 || i+2 > len(r.p):
		return -1
	case read == asUTF16LE:
		return rune(r.p[i]) | rune(r.p[i+1])<<8
	default:
		return rune(r.p[i])<<8 | rune(r.p[i+1])
	}
}

// char16 appends the readings of the character at i.
func (r *reader) char16(read reading, i int, out []unit) []unit {
	c := r.unit16(read, i)
	if utf16.IsSurrogate(c) {
		pair := utf16.DecodeRune(c, r.unit16(read, i+2))
		if pair == utf8.RuneError {
			return out
		}
		return appendChar(out, 4, pair)
	}
	if c < 0 {
		return out
	}
	return appendChar(out, 2, c)
}

func (r *reader) utf16On(k int32, n node) {
	v := r.set.secrets[n.pat].value[n.j:]
	var room [2]unit
	for _, u := range r.char16(n.read, int(n.i), room[:0]) {
		if bytes.HasPrefix(v, u.bytes()) {
			end := int(n.i + u.n)
			r.lead(k, 0, end, int(n.j+u.k), end)
		}
	}
}

func (r *reader) utf16Back(n node) {
	v := r.set.secrets[n.pat].value[:n.j]
	var room [2]unit
	for l := 2; l <= 4 && l <= int(n.i); l += 2 {
		for _, u := range r.char16(n.read, int(n.i)-l, room[:0]) {
			if int(u.n) == l && bytes.HasSuffix(v, u.bytes()) {
				r.node(n.pat, n.read, 0, int(n.i)-l, int(n.j-u.k))
			}
		}
	}
}
