package credbroker

import "strings"

// finder looks in what a sandbox sends for placeholders and for whole real
// secrets. It does not change. Every request passes through it, so a text in
// which nothing is to be found costs a look-up for each four bytes: what is
// looked for is at least eight bytes long, so it holds a word of four at a
// place that four divides, and a filter knows the words that can stand there.
type finder struct {
	filter [1 << filterBits / 64]uint64
	heads  map[uint64][]needle // by the first eight bytes, folded
	live   map[string]*placeholder
	// longest is the length of the longest text that can be found, in bytes.
	longest int
}

const filterBits = 16

// needle is a text that is looked for.
type needle struct {
	text   string       // "" for the mark of placeholders
	shaped *placeholder // nil for a secret
	id     string       // of the entry
}

// shortest is how long a text must be to be looked for, in bytes.
const shortest = 8

// find is one placeholder or secret in a text.
type find struct {
	start, end int
	// placeholder is the live one that stands there; nil for one that nobody
	// made, and for a secret.
	placeholder *placeholder
	id          string // of the entry, "" where it is not known
	secret      bool   // it is a real secret
}

func newFinder(placeholders []*placeholder, secrets []secretText) *finder {
	f := &finder{heads: map[uint64][]needle{}, live: map[string]*placeholder{}, longest: len(mark) + markLetters}
	f.add(mark, needle{})
	for _, p := range placeholders {
		f.longest = max(f.longest, len(p.text))
		if isMarked(p.text) {
			f.live[p.text] = p
		} else {
			f.add(p.text, needle{text: p.text, shaped: p, id: p.id})
		}
	}
	for _, s := range secrets {
		if len(s.value) >= shortest {
			f.longest = max(f.longest, len(s.value))
			f.add(s.value, needle{text: s.value, id: s.id})
		}
	}
	return f
}

// secretText is a real secret as it travels.
type secretText struct{ value, id string }

func (f *finder) add(text string, n needle) {
	for i := range 4 {
		h := hash(word(text[i:]))
		f.filter[h>>6] |= 1 << (h & 63)
	}
	head := head(text)
	f.heads[head] = append(f.heads[head], n)
}

// word are four bytes with the case of letters folded, and some other bytes
// with it: what matters is compared again.
func word(s string) uint32 {
	_ = s[3]
	return (uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24) | 0x20202020
}

func hash(w uint32) uint32 { return w * 0x9E3779B1 >> (32 - filterBits) }

func head(s string) uint64 { return uint64(word(s)) | uint64(word(s[4:]))<<32 }

// suspect gives the place, from a multiple of four on, of the first word that
// could belong to a find; -1 where there is none.
func (f *finder) suspect(s string, from int) int {
	for i := from; i+4 <= len(s); i += 4 {
		h := hash(word(s[i:]))
		if f.filter[h>>6]&(1<<(h&63)) != 0 {
			return i
		}
	}
	return -1
}

// clean says that nothing at all is to be found in s as it stands.
func (f *finder) clean(s string) bool { return f.suspect(s, 0) < 0 }

// look calls found for every find in s from left to right, until it returns
// false; with fold, letters of placeholders of any shape count in either case.
// A look at the bytes beside a find tells a live placeholder from a longer
// word: with letters glued on it is nobody's, and a find all the same.
func (f *finder) look(s string, fold bool, found func(find) bool) {
	done := 0 // finds begin here or later
	for i := f.suspect(s, 0); i >= 0; i = f.suspect(s, max(i+4, done&^3)) {
		for at := max(done, i-3); at <= i && at+shortest <= len(s); {
			x, ok := f.at(s, at, fold)
			if !ok {
				at++
				continue
			}
			if !found(x) {
				return
			}
			at = x.end
			if x.secret {
				at = x.start + 1 // another may begin within it
			}
			done = at
		}
	}
}

// at is the find that begins at s[at], if there is one.
func (f *finder) at(s string, at int, fold bool) (find, bool) {
	needles := f.heads[head(s[at:])]
	for _, n := range needles {
		if n.text == "" {
			if x, ok := f.marked(s, at); ok {
				return x, true
			}
			continue
		}
		end := at + len(n.text)
		if end > len(s) {
			continue
		}
		before, after := at > 0 && tokenLetter(s[at-1]), end < len(s) && tokenLetter(s[end])
		switch {
		case n.shaped == nil:
			// A short one is found only by itself.
			if s[at:end] == n.text && !(len(n.text) < 16 && (at > 0 && alphanum(s[at-1]) || end < len(s) && alphanum(s[end]))) {
				return find{start: at, end: end, id: n.id, secret: true}, true
			}
		case s[at:end] == n.text && !before && !after:
			return find{start: at, end: end, placeholder: n.shaped, id: n.id}, true
		case s[at:end] == n.text || fold && strings.EqualFold(s[at:end], n.text):
			return find{start: at, end: end, id: n.id}, true
		}
	}
	return find{}, false
}

// marked is the placeholder of the usual shape that begins at s[at], the
// longest that can be read there.
func (f *finder) marked(s string, at int) (find, bool) {
	if !isMarked(s[at:]) {
		return find{}, false
	}
	end := at + len(mark)
	for end < len(s) && tokenLetter(s[end]) {
		end++
	}
	if end-at < len(mark)+markLetters {
		return find{}, false
	}
	x := find{start: at, end: end}
	if p := f.live[s[at:end]]; p != nil && !(at > 0 && tokenLetter(s[at-1])) {
		x.placeholder, x.id = p, p.id
		return x, true
	}
	// Whose it would be without what is glued to it, for the record: all that are
	// minted with the mark are as long as the shortest find.
	if p := f.live[s[at:at+len(mark)+markLetters]]; p != nil {
		x.id = p.id
	}
	return x, true
}

func isMarked(s string) bool { return len(s) >= len(mark) && strings.EqualFold(s[:len(mark)], mark) }

func alphanum(c byte) bool { return tokenLetter(c) && c != '-' && c != '_' }
