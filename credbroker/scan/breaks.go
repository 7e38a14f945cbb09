package scan

import (
	"bytes"
	"math/bits"
)

// This file looks at line breaks as such, which hex and base64 may hold between
// two digits. Text is full of them, and nearly all are told at a glance.

// lineBreaks looks at each line break between from and end that digits may go on
// across.
func (r *reader) lineBreaks(from, end int) {
	r.findBreaks(from, end)
	for k := range r.breaks {
		for _, at := range r.breaks[k] {
			r.place = int(at)
			r.once(r.place - 8)
			r.digitsFrom(r.place)
		}
	}
}

// findBreaks notes the line breaks that are to be looked at, in four parts of
// the text. It searches these in turn: each search begins where the one before
// ended, and would have to wait for it.
func (r *reader) findBreaks(from, end int) {
	p := r.p
	size := (end - from + 3) / 4
	var at, ends [4]int
	for k := range at {
		r.breaks[k] = r.breaks[k][:0]
		at[k], ends[k] = min(from+k*size, end), min(from+(k+1)*size, end)
	}
	glance := r.set.digits > beforeGlance+aheadGlance
	for more := true; more; {
		more = false
		for k := range at {
			n := bytes.IndexByte(p[at[k]:ends[k]], '\n')
			if n < 0 {
				at[k] = ends[k]
				continue
			}
			more = true
			i := at[k] + n
			at[k] = i + 1
			if i == 0 || letterValue[p[i-1]] == 0xFF && p[i-1] != '\r' {
				continue
			}
			if glance && i >= 8 && i+25 <= len(p) && barred(p[i-8:i+25]) {
				continue
			}
			if r.mayCross(i) {
				r.breaks[k] = append(r.breaks[k], int32(i))
			}
		}
	}
}

// What stands before and behind a line break between bars that barred saw.
const beforeGlance, aheadGlance = 7, 23

// barred tells whether there are bars in the 8 bytes before a line break and in
// the 24 behind it. Then what stands between them is too little for a find, of
// any secret of a length that is common.
func barred(p []byte) bool {
	_ = p[32]
	return bars(load(p, 0)) != 0 && bars(load(p, 9))|bars(load(p, 17))|bars(load(p, 25)) != 0
}

// mayCross tells whether the line break at i may stand between two digits of a
// find, the one behind it perhaps an escape.
func (r *reader) mayCross(i int) bool {
	p, first := r.p, i
	if i > 1 && p[i-1] == '\r' {
		first--
	}
	if first == 0 || i+1 >= len(p) || letterValue[p[first-1]] == 0xFF || letterValue[p[i+1]] == 0xFF && !isLead[p[i+1]] {
		return false
	}
	return !r.tooFew(first, i+1)
}

// tooFew tells that so few digits end at i and begin at behind, between bytes that
// spell none, that no find lies across the line break between these two: that is
// how lines begin and end that are not of digits. What it costs depends on no
// secret.
func (r *reader) tooFew(i, behind int) bool {
	p, least := r.p, r.set.digits
	if r.set.brief {
		return false
	}
	n, m := 0, uint64(0)
	for ; m == 0; i -= 8 {
		if i < 8 || n >= least {
			return false
		}
		m = ^letters(load(p, i-8)) & high
		n += bits.LeadingZeros64(m) / 8
	}
	if isEdge[p[i+7-bits.LeadingZeros64(m)/8]] {
		return false
	}
	for m = 0; m == 0; behind += 8 {
		if behind+8 > len(p) || n >= least {
			return false
		}
		m = ^letters(load(p, behind)) & high
		n += bits.TrailingZeros64(m) / 8
	}
	return n < least && !isEdge[p[behind-8+bits.TrailingZeros64(m)/8]]
}

// isEdge are the bytes beside digits that may be of another digit's spelling, or
// of another line break, or that letters leaves out.
var isEdge = [256]bool{'%': true, '=': true, '\\': true, '&': true, '#': true, ';': true, '\r': true, '\n': true, '_': true}

// bars has the upper bit set of each of eight bytes that is a space or a quote,
// which no spelling of a digit or a line break holds.
func bars(w uint64) uint64 {
	w = w&^(2*ones) ^ ' '*ones
	return ^(w&^high + 0x7F*ones | w) & high
}

// fewMarks looks up the words around a line break at i, where the next sixteen
// bytes are digits as such: that is how most lines of text are. It is false where
// they are not.
func (r *reader) fewMarks(i int) bool {
	p, g := r.p, &r.set.grams
	if r.set.brief || p[i] != '\n' && p[i] != '\r' {
		return false
	}
	next := i + r.set.lineBreak(p, i)
	if next+16 > len(p) || !allLetters(load(p, next)) || !allLetters(load(p, next+8)) {
		return false
	}
	var before [2]uint8
	for k := range before {
		if at := i - 16 + 8*k; at >= 0 {
			before[k] = g.kinds(load(p, at))
		}
	}
	first, second := g.kinds(load(p, next)), g.kinds(load(p, next+8))
	r.word(next, first&(onceBits|hexBit&(before[1]|second)))
	if before[1] != 0 {
		r.word(i-8, before[1]&hexBit&(before[0]|first))
	}
	return true
}
