package scan

import "bytes"

// lookAhead is how far behind an escape the gate may look: sixteen digits, each
// behind a line break, every byte of which is an entity.
const lookAhead = 16 * 3 * maxEscape

// detect explores every node that a find between from and the end of p must
// come through; what words there are before `words` was looked up before. A find
// is 16 bytes of some secret's core at least. Without an escape between them,
// eight bytes of their spelling that begin at a multiple of step are a gram. With
// one, look at the first: either eight bytes before it are a gram as they stand,
// or it and what follows spell one. Short secrets, found whole, may have less on
// either side: for them both sides are joined.
//
// It goes by blocks, each of which is in the core's nearest cache while it is
// looked through for one thing after the other.
func (r *reader) detect(from, words int) {
	var walked [len(leads) + 1]int
	for at := min(from, words) &^ (block - 1); at < len(r.p); at += block {
		end := min(at+block, len(r.p))
		if words < end {
			r.words(max(at, words), end)
		}
		if from >= end {
			continue
		}
		for k := range leads {
			if leads[k] != '+' || r.set.spaced {
				r.walked = walked[k]
				r.escapes(max(at, from), end, leads[k])
				walked[k] = r.walked
			}
		}
		r.walked = walked[len(leads)]
		r.lineBreaks(max(at, from), end)
		walked[len(leads)] = r.walked
	}
}

// block is how many bytes are looked through at a time.
const block = 16 << 10

// leads are the bytes that may begin an escape; `+` only where a secret holds a
// space.
const leads = "%=\\&+"

// escapes looks at each place between from and end where c stands and is an
// escape.
func (r *reader) escapes(from, end int, c byte) {
	for i := from; ; i++ {
		k := bytes.IndexByte(r.p[i:end], c)
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
	}
	return true
}

// escape looks at an escape at i both ways.
func (r *reader) escape(c byte, i int) {
	v, n := byte(0), 0
	if c == '&' {
		if v, n = r.sort(i); n == 0 {
			return
		}
		n = 0
	} else {
		v, n = single(r.p, i)
	}
	r.place = i
	r.once(i - 8)
	r.textAround(i, v, n)
	if (n > 0 || c == '&') && !isDigit(v) {
		return
	}
	r.digitsFrom(i)
}

// digitsFrom looks at the digits around an escape or a line break at i. A
// carriage return before it may be part of a line break between digits.
func (r *reader) digitsFrom(i int) {
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
	if i < r.walked || r.fewMarks(i) {
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
