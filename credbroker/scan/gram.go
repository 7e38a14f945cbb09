package scan

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// A reading is one of the ways in which bytes of an answer spell a secret.
type reading uint8

const (
	asText reading = iota
	asHex
	asBase64
	asUTF16LE
	asUTF16BE
)

func (r reading) utf16() bool { return r >= asUTF16LE }

// A gram is eight bytes that some part of a secret is spelled with in one
// reading, its letters in lower case, and where in the secret they lead: the
// digit (byte, in text and UTF-16) off of the eight stands at byte j of the
// secret, r of whose letter's bits belong to the byte before.
type gram struct {
	word uint64
	pat  uint16
	read reading
	off  uint8
	r    uint8
	j    int32
}

// fold sets the bit that tells small letters from capitals in eight bytes: hex
// digits count in either case, and for the others the reader looks again.
const fold = 0x2020202020202020

// grams is a set of grams behind a table that tells most words that are none
// of them at the price of one load.
//
// A word that is one costs more than one that is none, and who can have a text of
// his own sent by the origin, over and over, can measure that. So nothing less
// than a gram may make a difference: where less is asked, it is whether a byte
// may be part of a secret at all (may). And the hash has a key of its own: else
// which words share a place with a gram would tell of eight bytes that nobody
// guessed yet.
type grams struct {
	gate  []uint8 // by hash, a bit of a second hash for each gram
	shift uint    // of the hash, for the length of gate
	key   uint64  // of the hash, odd
	// Where look-ups stand 16 apart, the gate holds two grams of hex or UTF-16 in
	// a row too, hashed with a second key, so that one look-up tells of both: two
	// that stand apart may be copies of one part.
	pairKey uint64
	twice   bool     // grams of hex and UTF-16 count only where two stand in a row
	list    []gram   // by word
	pairs   []uint64 // hashes of two in a row
	// may tells the bytes that a secret may be made of: every letter and digit,
	// and of the others those that are in one.
	may [256]bool
}

// Of the gate 16 KiB stay in a core's nearest cache; sets of many secrets get
// more, so that one word in some fifty goes on to the second look at most.
const leastGate, mostGate = 14, 20

func (g *grams) open() {
	size := min(max(leastGate, bits.Len(uint(len(g.list)+len(g.pairs)))+5), mostGate)
	g.gate, g.shift = make([]uint8, 1<<size), uint(64-size)
	for _, e := range g.list {
		h := g.hash(e.word)
		g.gate[h>>g.shift] |= g.bit(h, e.read)
	}
	for _, h := range g.pairs {
		g.gate[h>>g.shift] |= pairBit
	}
}

func (g *grams) hash(word uint64) uint64 { return word * g.key }

func (g *grams) hashPair(a, b uint64) uint64 { return a*g.key + b*g.pairKey }

// The bits of the gate. A gram of hex or UTF-16 is only four bytes of a secret,
// which can be guessed; but the shortest find holds two such words in a row, which
// are eight bytes.
const (
	onceBits  = 0x1F // of grams that count by themselves, by a second hash
	pairBit   = 0x20 // of two in a row, by the hash of both
	hexBit    = 0x40
	utf16Bit  = 0x80
	twiceBits = hexBit | utf16Bit
)

// bit is that of a gram of some reading.
func (g *grams) bit(h uint64, read reading) uint8 {
	switch {
	case g.twice && read == asHex:
		return hexBit
	case g.twice && read.utf16():
		return utf16Bit
	}
	return onceBit(h)
}

// onceBit takes the bits of a hash below those that any gate is indexed with.
func onceBit(h uint64) uint8 { return 1 << ((h >> (61 - mostGate) & 7) * 5 >> 3) }

// kinds are the bits of what a word may be a gram of.
func (g *grams) kinds(word uint64) uint8 {
	h := g.hash(word | fold)
	return g.gate[h>>(g.shift&63)] & (onceBit(h) | twiceBits)
}

// of are the grams of a word.
func (g *grams) of(word uint64) []gram {
	word |= fold
	lo, ok := slices.BinarySearchFunc(g.list, word, func(e gram, w uint64) int { return cmp.Compare(e.word, w) })
	if !ok {
		return nil
	}
	hi := lo + 1
	for hi < len(g.list) && g.list[hi].word == word {
		hi++
	}
	return g.list[lo:hi]
}

func load(p []byte, i int) uint64 { return binary.LittleEndian.Uint64(p[i:]) }

// build fills g with the grams of the part of each secret that is looked for
// first. A find is min bytes at least, wherever it begins, so it holds 16 bytes
// of every such part (24 where look-ups stand 16 apart); for long secrets as many
// from the middle are enough.
func (g *grams) build(secrets []pattern) {
	g.key, g.pairKey = rand.Uint64()|1, rand.Uint64()|1
	step := stepFor(secrets)
	g.twice = step >= 8
	for c := range g.may {
		g.may[c] = isWord(byte(c))
	}
	for k := range secrets {
		p := &secrets[k]
		for _, c := range p.value {
			g.may[c] = true
		}
		lo, hi := p.core(max(16, leastWide*(step/16)))
		for j := lo; j+8 <= hi && !p.coded; j++ {
			g.text(uint16(k), p.value, j)
		}
		g.hex(uint16(k), p.value, lo, hi)
		g.base64(uint16(k), p.value, lo, hi)
		g.utf16(uint16(k), p.value, lo, hi)
		if step == 16 {
			g.addPairs(p.value[lo:hi])
		}
	}
	slices.SortFunc(g.list, func(a, b gram) int {
		if a.word != b.word {
			return cmp.Compare(a.word, b.word)
		}
		return cmp.Or(cmp.Compare(a.pat, b.pat), cmp.Compare(a.read, b.read), cmp.Compare(a.j, b.j), cmp.Compare(a.off, b.off))
	})
	g.list = slices.Compact(g.list)
	g.open()
	g.pairs = nil
}

// core is the part of the secret whose grams are looked for: any run of min
// bytes holds `hold` bytes of it (all of it, of a secret below 16). One byte more
// on either side is for an entity that spells two. Where a character may take
// several bytes it is the whole secret.
func (p *pattern) core(hold int) (lo, hi int) {
	n := len(p.value)
	if n < 16 || !isASCII(p.value) {
		return 0, n
	}
	lo, hi = p.min-hold, n-p.min+hold
	if hi-lo < hold {
		lo = (n - hold) / 2
		hi = lo + hold
	}
	return max(lo-1, 0), min(hi+1, n)
}

func (g *grams) add(word [8]byte, e gram) {
	e.word = binary.LittleEndian.Uint64(word[:]) | fold
	g.list = append(g.list, e)
}

// addPairs adds the hash of every 16 bytes of hex and of UTF-16 in either order
// that a part of a secret of ASCII is spelled with.
func (g *grams) addPairs(part []byte) {
	var hexed, little, big []byte
	for _, c := range part {
		hexed = append(hexed, hexDigits[c>>4], hexDigits[c&15])
		little = append(little, c, 0)
		big = append(big, 0, c)
	}
	for _, all := range [][]byte{hexed, little, big} {
		for i := 0; i+16 <= len(all); i++ {
			g.pairs = append(g.pairs, g.hashPair(load(all, i)|fold, load(all, i+8)|fold))
		}
	}
}

func (g *grams) text(pat uint16, v []byte, j int) {
	g.add([8]byte(v[j:]), gram{pat: pat, read: asText, j: int32(j)})
}

const hexDigits = "0123456789abcdef"

// hex adds the grams that begin with the first or the second digit of a byte.
func (g *grams) hex(pat uint16, v []byte, lo, hi int) {
	all := make([]byte, 0, 2*(hi-lo))
	for _, c := range v[lo:hi] {
		all = append(all, hexDigits[c>>4], hexDigits[c&15])
	}
	for d := 0; d+8 <= len(all); d++ {
		g.add([8]byte(all[d:]), gram{pat: pat, read: asHex, off: uint8(d & 1), j: int32(lo + (d+1)/2)})
	}
}

// base64 adds the grams of eight letters all of whose bits are the secret's,
// from each bit on that a letter can begin at.
func (g *grams) base64(pat uint16, v []byte, lo, hi int) {
	for bit := 8 * lo; bit+48 <= 8*hi; bit += 2 {
		j := (bit + 7) / 8
		e := gram{pat: pat, read: asBase64, off: uint8((8*j - bit) / 6), r: uint8((8*j - bit) % 6), j: int32(j)}
		var word [8]byte
		g.letters(&word, 0, bit, v, e)
	}
}

// letters spells the rest of a gram of base64 in each of its ways: the last two
// letters differ between the alphabets.
func (g *grams) letters(word *[8]byte, k, bit int, v []byte, e gram) {
	if k == 8 {
		g.add(*word, e)
		return
	}
	x := uint(v[bit/8]) << 8
	if bit/8+1 < len(v) {
		x |= uint(v[bit/8+1])
	}
	switch x = x >> (10 - bit%8) & 63; {
	case x < 62:
		word[k] = letterOf[x]
		g.letters(word, k+1, bit+6, v, e)
	default:
		for _, c := range [2][2]byte{{'+', '-'}, {'/', '_'}}[x-62] {
			word[k] = c
			g.letters(word, k+1, bit+6, v, e)
		}
	}
}

const letterOf = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// utf16 adds the grams of four units and, where all is ASCII, of those that
// begin in the middle of one, since a look-up may fall there. Other secrets are
// looked up at every byte.
func (g *grams) utf16(pat uint16, v []byte, lo, hi int) {
	for j := lo; j < hi; j++ {
		var word [8]byte
		g.units16(&word, 0, j, v[:hi], gram{pat: pat, j: int32(j)})
	}
	if !isASCII(v) {
		return
	}
	for j := lo; j+4 <= hi; j++ {
		c := [4]byte(v[j:])
		g.add([8]byte{1: c[0], 3: c[1], 5: c[2], 7: c[3]}, gram{pat: pat, read: asUTF16LE, off: 1, j: int32(j)})
		g.add([8]byte{0: c[0], 2: c[1], 4: c[2], 6: c[3]}, gram{pat: pat, read: asUTF16BE, off: 1, j: int32(j + 1)})
	}
}

// units16 spells the rest of a gram of UTF-16 in each of its ways, low byte
// first, and adds it in both orders.
func (g *grams) units16(word *[8]byte, k, j int, v []byte, e gram) {
	if k == 8 {
		e.read = asUTF16LE
		g.add(*word, e)
		e.read = asUTF16BE
		g.add([8]byte{word[1], word[0], word[3], word[2], word[5], word[4], word[7], word[6]}, e)
		return
	}
	if j >= len(v) {
		return
	}
	put := func(unit uint16, size int) {
		binary.LittleEndian.PutUint16(word[k:], unit)
		g.units16(word, k+2, j+size, v, e)
	}
	if v[j] < 0x80 {
		put(uint16(v[j]), 1)
		return
	}
	put(uint16(v[j]), 1)
	switch r, size := decodeRune(v[j:]); {
	case size == 0:
	case r < 0x10000:
		put(uint16(r), size)
	case k <= 4:
		r -= 0x10000
		binary.LittleEndian.PutUint16(word[k:], uint16(0xD800+r>>10))
		binary.LittleEndian.PutUint16(word[k+2:], uint16(0xDC00+r&0x3FF))
		g.units16(word, k+4, j+size, v, e)
	default: // its first half only
		r -= 0x10000
		put(uint16(0xD800+r>>10), size)
	}
}

// leastWide is the least length of a find for look-ups that stand 16 apart.
const leastWide = 24

// stepFor is how far look-ups may stand apart so that none of the secrets'
// spellings without an escape slips between two: of the shortest find, of n
// bytes, a run of n bytes of the answer at least is spelled with the secret's bits
// only, and holds a gram that begins at a multiple of n-7. So it is 16 where
// every find is of 24 bytes or more, as it is of secrets from 35 on: in text these
// are 24 bytes of the answer, in base64 31 letters, and 48 bytes in hex and UTF-16,
// which hold two grams in a row that begin at a multiple of 32.
func stepFor(secrets []pattern) int {
	step := 16
	for i := range secrets {
		p := &secrets[i]
		if !isASCII(p.value) {
			return 1
		}
		step = min(step, 1<<(bits.Len(uint(p.min-7))-1))
		if p.min < leastWide {
			step = min(step, 8)
		}
	}
	return step
}
