package scan

// This file looks up the words of a text, eight bytes each, that may be grams.

// Look-ups begin at multiples of wordsRow of what a stream keeps, so that each
// scan of a place looks up the same words.
const wordsRow = 64

// wordsAhead is how far from its beginning the shortest find without an escape
// has been looked up: it may be one of hex or UTF-16, 48 bytes of it.
const wordsAhead = 64

// words looks up words that begin between from and end and stand a step apart.
func (r *reader) words(from, end int) {
	i := from &^ (wordsRow - 1)
	if r.set.step == 16 {
		i = r.wideWords(i, end)
	} else {
		i = r.closeWords(i, end)
	}
	for step := r.set.step; i < end && i+8 <= len(r.p); i += 4 * step {
		r.row(i, min(4, (len(r.p)-i-8)/step+1))
	}
}

// closeWords looks up the words at multiples of a step of 8 or less, from i on,
// four at a time.
func (r *reader) closeWords(i, end int) int {
	p, step := r.p, r.set.step
	gate, shift, key := r.set.grams.gate, r.set.grams.shift&63, r.set.grams.key
	for i < end && i+32 <= len(p) {
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
	return i
}

// wideWords looks up each second word from i on and, for hex and UTF-16, each
// fourth together with the next, as one of 16 bytes.
func (r *reader) wideWords(i, end int) int {
	p, g := r.p, &r.set.grams
	gate, shift, key, pairKey := g.gate, g.shift&63, g.key, g.pairKey
	for ; i < end && i+wordsRow <= len(p); i += wordsRow {
		q := p[i : i+wordsRow : i+wordsRow]
		a, b, c, d := (load(q, 0)|fold)*key, (load(q, 16)|fold)*key, (load(q, 32)|fold)*key, (load(q, 48)|fold)*key
		e, f := a+(load(q, 8)|fold)*pairKey, c+(load(q, 40)|fold)*pairKey
		once := gate[a>>shift] | gate[b>>shift] | gate[c>>shift] | gate[d>>shift]
		if once&onceBits|(gate[e>>shift]|gate[f>>shift])&pairBit != 0 {
			r.row(i, 4)
		}
	}
	return i
}

// row explores what up to four words from i on may be part of.
func (r *reader) row(i, n int) {
	wide := r.set.step == 16
	var kinds [6]uint8
	for k := range n {
		kinds[k+1] = r.set.grams.kinds(load(r.p, i+k*r.set.step))
	}
	for k := range n {
		r.place = i + k*r.set.step
		twice := kinds[k] | kinds[k+2]
		if wide {
			if twice = 0; k&1 == 0 {
				twice = r.pair(r.place)
			}
		}
		r.word(r.place, kinds[k+1]&(onceBits|twice&twiceBits))
	}
}

// pair tells whether the 16 bytes at i are two grams of hex or of UTF-16 in a
// row: then of which.
func (r *reader) pair(i int) uint8 {
	g := &r.set.grams
	if i+16 > len(r.p) {
		return 0
	}
	a, b := load(r.p, i), load(r.p, i+8)
	if g.gate[g.hashPair(a|fold, b|fold)>>(g.shift&63)]&pairBit == 0 {
		return 0
	}
	return g.kinds(b)
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
