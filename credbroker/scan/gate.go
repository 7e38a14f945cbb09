package scan

import "bytes"

// lookAhead is how far behind an escape the gate may look: sixteen digits, each
// behind a line break, every byte of which is an entity.
const lookAhead = 16 * 3 * maxEscape

// detect explores every node that a find between from and the end of p must
// come through. A find is 16 bytes of some secret's core at least. Without an
// escape between them, eight bytes of their spelling that begin at a multiple
// of step are a gram. With one, look at the first: either eight bytes before it
// are a gram as they stand, or it and what follows spell one. Short secrets,
// found whole, may have less on either side: for them both sides are joined.
func (r *reader) detect(from int) {
	r.words(from)
	for _, c := range []byte("%=\\&\n+") {
		if c == '+' && !r.set.spaced {
			continue
		}
		r.escapes(from, c)
	}
}

// words looks up the words of p that begin at multiples of step, four at a
// time.
func (r *reader) words(from int) {
	p, step := r.p, r.set.step
	gate, shift, key := r.set.grams.gate, r.set.grams.shift&63, r.set.grams.key
	i := from &^ 7
	for i+32 <= len(p) {
		q := p[i : i+32 : i+32]
		var a, b, c, d uint64
		if step == 8 {
			a, b, c, d = load(q, 0), load(q, 8), load(q, 16), load(q, 24)
		} else {
			a, b, c, d = load(q, 0), load(q, step&7), load(q, 2*step&15), load(q, 3*step&15)
		}
		a, b, c, d = (a|fold)*key>>shift, (b|fold)*key>>shift, (c|fold)*key>>shift, (d|fold)*key>>shift
		x, y, z, w := gate[a], gate[b], gate[c], gate[d]
		if (x|y|z|w)&onceBits|(x&y|y&z|z&w)&twiceBits != 0 {
			r.row(i, 4)
		}
		i += 4 * step
	}
	for ; i+8 <= len(p); i += 4 * step {
		r.row(i, min(4, (len(p)-i-8)/step+1))
	}
}

// row explores what up to four words from i on may be part of.
func (r *reader) row(i, n int) {
	var kinds [6]uint8
	for k := range n {
		kinds[k+1] = r.set.grams.kinds(load(r.p, i+k*r.set.step))
	}
	for k := range n {
		r.place = i + k*r.set.step
		beside := kinds[k] | kinds[k+2]
		r.word(r.place, kinds[k+1]&(onceBits|beside))
	}
}

// once explores what the eight bytes at i may be part of by themselves.
func (r *reader) once(i int) {
	if i >= 0 {
		r.word(i, r.set.grams.kinds(load(r.p, i))&onceBits)
	}
}

// word explores what the eight bytes at i may be part of, of these kinds.
func (r *reader) word(i int, kinds uint8) {
	if kinds == 0 {
		return
	}
	g := &r.set.grams
	for _, e := range g.of(load(r.p, i)) {
		if g.bit(g.hash(e.word), e.read)&kinds != 0 {
			r.explore(e.pat, e.read, e.r, i+int(e.off), int(e.j))
		}
	}
}

// escapes looks at each place where c stands and is an escape or a line break.
func (r *reader) escapes(from int, c byte) {
	r.walked = 0
	for i := from; ; i++ {
		k := bytes.IndexByte(r.p[i:], c)
		if k < 0 {
			return
		}
		if i += k; r.counts(c, i) {
			r.escape(c, i)
		}
	}
}

// counts tells whether c at i may be an escape that is part of a find; most
// bytes that could be one are not, and are told here.
func (r *reader) counts(c byte, i int) bool {
	p := r.p
	if c == '+' {
		return true
	}
	if i+1 >= len(p) {
		return false
	}
	switch next := p[i+1]; c {
	case '%':
		return hexNumber(p, i+1, 2) >= 0
	case '=':
		return hexNumber(p, i+1, 2) >= 0 || softBreak(p, i) > 0
	case '\\':
		return next == 'x' || next == 'u' || shortEscape[next] != 0
	case '&':
		return next == '#' || next < 128 && r.set.names[next] != nil
	case '\n': // between two digits, the one behind it perhaps an escape
		before := i - 1
		if before > 0 && p[before] == '\r' {
			before--
		}
		return before >= 0 && letterValue[p[before]] != 0xFF && (letterValue[next] != 0xFF || isLead[next])
	}
	return true
}

// escape looks at an escape at i both ways. A carriage return before it may be
// part of a line break between digits.
func (r *reader) escape(c byte, i int) {
	v, n := byte('\n'), 1
	switch c {
	case '\n':
	case '&':
		if v, n = r.sort(i); n == 0 {
			return
		}
		n = 0
	default:
		v, n = single(r.p, i)
	}
	r.place = i
	r.once(i - 8)
	if c != '\n' {
		r.textAround(i, v, n)
	}
	if (n > 0 || c == '&') && !isDigit(v) {
		return
	}
	if i > 0 && r.p[i-1] == '\r' {
		i--
		r.once(i - 8)
	}
	r.digitsAround(i)
}

// sort is a byte that is spelled by an entity at i, one that matters to hex and
// base64 if there is any, and how many readings there are.
func (r *reader) sort(i int) (c byte, n int) {
	r.room = r.set.entity(r.p, i, r.room[:0])
	for k := range r.room {
		if u := &r.room[k]; u.k == 1 && !isDigit(c) {
			c = u.b[0]
		}
	}
	return c, len(r.room)
}

// isDigit tells the bytes that are part of hex and base64, line breaks too.
func isDigit(c byte) bool { return letterValue[c] != 0xFF || c == '\n' || c == '\r' }

// textAround looks up the words that begin with the escape at i or, for short
// secrets, have it in their middle. It is of `after` bytes and spells c, or
// after is 0.
func (r *reader) textAround(i int, c byte, after int) {
	var word [16]byte
	if after == 0 || r.mayGoOn(c, i+after) {
		r.textAhead(&word, 0, i, i)
	}
	for n := 1; r.set.brief && n < 8 && n <= i; n++ {
		if !r.set.grams.may[r.p[i-n]] || n == 1 && after > 0 && r.p[i] != '=' && !r.set.grams.may[c] {
			return
		}
		copy(word[:], r.p[i-n:i])
		r.textAhead(&word, n, i, i-n)
	}
}

// mayGoOn tells whether c and what may be read at i may be part of a secret. Most
// escapes end here, so it does not read what is hard to.
func (r *reader) mayGoOn(c byte, i int) bool {
	if i >= len(r.p) {
		return false
	}
	next, may := r.p[i], &r.set.grams.may
	if !may[c] {
		return false
	}
	if may[next] || next == '+' && r.set.spaced {
		return true
	}
	if !isLead[next] {
		return false
	}
	v, n := single(r.p, i)
	return n == 0 && next != '%' || n > 0 && may[v] || next == '=' && softBreak(r.p, i) > 0
}

// digitsAround looks up every word of eight digits that the escape or line break
// at i is part of or stands beside, or one beside such a word. It goes on as long
// as more of them come, so that each is read once, and stops where enough digits
// stood as such.
func (r *reader) digitsAround(i int) {
	if i < r.walked || r.tooFew(i) || r.fewMarks(i) {
		return
	}
	p, g := r.p, &r.set.grams
	enough := 8
	if g.twice {
		enough = 16
	}
	var at [8]int32
	var word uint64
	var hexes uint32 // a bit for each of the last words that may be hex
	n, end := 0, i
	for i-end < enough-1 && end > 0 && letterValue[p[end-1]] != 0xFF {
		end--
	}
	for plain := end - i; plain < enough; plain++ {
		d := digit{at: end, next: end + 1}
		if end < i {
			d.c = p[end]
		} else if d = r.digitOn(end); d.next == 0 {
			break
		}
		if d.next-end > 1 {
			plain = -1
		}
		word, at[n&7] = word>>8|uint64(d.c)<<56, int32(d.at)
		n, end = n+1, d.next
		if n < 8 {
			continue
		}
		kinds := g.kinds(word)
		hexes = hexes<<1 | uint32(kinds&hexBit)
		if kinds &= onceBits | uint8(hexes>>8); kinds == 0 {
			continue
		}
		for _, e := range g.of(word) {
			if (e.read == asHex || e.read == asBase64) && g.bit(g.hash(e.word), e.read)&kinds != 0 {
				r.explore(e.pat, e.read, e.r, int(at[(n+int(e.off))&7]), int(e.j))
			}
		}
	}
	r.walked = end
}

// leastDigits is how many letters of base64 hold all the bits of the shortest
// find of a secret that is not brief; of hex it takes more.
const leastDigits = 22

// tooFew tells that so few digits stand around a line break at i, between bytes
// that spell none, that no find lies across it: that is how lines begin and end
// that are not of digits. What it costs depends on no secret.
func (r *reader) tooFew(i int) bool {
	p := r.p
	if r.set.brief || p[i] != '\n' && p[i] != '\r' {
		return false
	}
	n, before := 0, i-1
	for ; before >= 0 && letterValue[p[before]] != 0xFF; before-- {
		if n++; n == leastDigits {
			return false
		}
	}
	behind := i + r.set.lineBreak(p, i)
	for ; behind < len(p) && letterValue[p[behind]] != 0xFF; behind++ {
		if n++; n == leastDigits {
			return false
		}
	}
	return before >= 0 && behind < len(p) && !isEdge[p[before]] && !isEdge[p[behind]]
}

// isEdge are the bytes beside digits that may be of another digit's spelling, or
// of another line break.
var isEdge = [256]bool{'%': true, '=': true, '\\': true, '&': true, '#': true, ';': true, '\r': true, '\n': true}

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

// textAhead reads on at i, where n bytes of a word that begins at start are
// known, and explores what the word may be part of. A soft line break may come
// first. It gives up at a byte that no secret holds.
func (r *reader) textAhead(word *[16]byte, n, i, start int) {
	for p, may := r.p, &r.set.grams.may; n < 8 && i < len(p); { // as long as it can be read in one way
		c, k := p[i], 1
		if isLead[c] {
			if may[c] && (n > 0 || i != start) {
				break
			}
			c, k = single(p, i)
		}
		if k == 0 || c == '+' {
			break
		}
		if !may[c] {
			return
		}
		word[n] = c
		n, i = n+1, i+k
	}
	if n >= 8 {
		whole := load(word[:], 0)
		if r.set.grams.kinds(whole)&onceBits == 0 {
			return
		}
		for _, e := range r.set.grams.of(whole) {
			if e.read == asText {
				r.explore(e.pat, e.read, 0, start, int(e.j))
			}
		}
		return
	}
	escape := i
	for range softRow {
		soft := softBreak(r.p, i)
		if soft == 0 {
			break
		}
		if n == 0 {
			start += soft
		}
		i += soft
	}
	if i >= len(r.p) {
		return
	}
	units := r.set.units(r.p, i, r.units[n][:0])
	r.units[n] = units
	if n == 0 && start == escape { // it is read as one, else it is none
		units = units[1:]
	}
	for k := range units {
		u := &units[k]
		*(*[8]byte)(word[n:]) = u.b
		fits := true
		for m := n; m < min(n+int(u.k), 8) && fits; m++ {
			fits = r.set.grams.may[word[m]]
		}
		if fits {
			r.textAhead(word, n+int(u.k), i+int(u.n), start)
		}
	}
}
