// Package scan finds secrets in what an origin answers, in every spelling that
// can be expected of a server, and puts something else in their place.
//
// A find is the secret, or a run of its bytes in a row that begins anywhere in
// it, of at least 16 bytes and two thirds of it; a secret below 16 bytes is
// found whole or not at all. It is read from any byte of the answer on, in one
// of five readings: text, with the escapes of URLs, quoted-printable, scripts,
// JSON and HTML mixed at will; hex; base64 of either alphabet in any alignment;
// UTF-16 of either order. Hex and base64 may break their lines and escape their
// digits. Escapes within escapes are not read, nor is what was reversed, hashed
// or encrypted. All of the run goes, and nothing that stands around it; finds
// that overlap become one.
//
// The work is done in two steps. A gate looks up the eight bytes at every eighth
// place, for long secrets at every 16th, in a table of all that eight bytes of a
// secret can be in any reading (gram.go, words.go, gate.go, breaks.go); behind it, where a word or an escape gives cause, a reader follows
// the run byte by byte both ways (reader.go). A text without a secret costs
// little more than one load for each eight bytes.
//
// A Stream holds back what could be the beginning of a find, and how much that
// is depends on lengths and line breaks only: an attacker who can have guesses
// echoed must not learn from when they come (stream.go).
package scan

import (
	"bytes"
	"encoding/base64"
	"math"
	"slices"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// The least length of a secret that is looked for, in bytes.
const shortest = 8

// A find takes at most so many bytes of the answer for each byte of the secret.
const spread = 12

// A Secret is one value that must not be seen, and what takes its place.
type Secret struct {
	Value       []byte // shorter than 8 bytes, it is not looked for
	Replacement string // the placeholder, or "[redacted]"
	Entry       string // the id of its entry, for records
}

// Coded are the letters of base64 that a secret is sent as in a login of Basic,
// for each place in a group of three bytes that it may begin at: those all of
// whose bits are its own. As they stand they are a find of the secret itself.
// These are for the origin that spells what it was sent once more: they are
// looked for in hex, base64 and UTF-16.
func Coded(secret Secret) (out []Secret) {
	if len(secret.Value) < shortest {
		return nil
	}
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret.Value...))
		first, end := (8*before+5)/6, 8*(before+len(secret.Value))/6
		coded := secret
		coded.Value = []byte(text[first:end])
		out = append(out, coded)
	}
	return out
}

// A Set holds the secrets of one host. It does not change once built, and any
// number of goroutines may use it. A nil Set finds nothing.
type Set struct {
	secrets []pattern
	grams   grams
	names   [128][]name
	step    int  // of look-ups, in bytes
	digits  int  // letters of base64 that hold all bits of the shortest find; of hex it takes more
	brief   bool // some secret is shorter than 16 bytes
	spaced  bool // some secret holds a space, which `+` may spell
	hold    int
	readers sync.Pool // of *reader, for whole texts
}

// A pattern is a secret that is looked for.
type pattern struct {
	value   []byte
	entry   string
	min     int // the shortest run that is a find
	limit   int // the longest spelling of one, in bytes of the answer
	coded   bool
	instead [3][]byte
}

// New builds the Set of secrets, given in the order of the policy. Of equal
// values the first counts. The values are copied. Behind them stands what Coded
// makes of those that are sent in base64.
func New(secrets []Secret, coded ...Secret) *Set {
	s := &Set{digits: math.MaxInt}
	seen := map[string]bool{}
	for i, v := range slices.Concat(secrets, coded) {
		n := len(v.Value)
		if n < shortest || seen[string(v.Value)] {
			continue
		}
		seen[string(v.Value)] = true
		p := pattern{value: slices.Clone(v.Value), entry: v.Entry, min: max(16, (2*n+2)/3), limit: spread * n}
		if p.coded = i >= len(secrets); p.coded { // no more is held for them than for the secret
			p.limit = spread * (3 * n / 4)
		}
		if n < 16 {
			p.min, s.brief = n, true
		}
		p.instead[0] = []byte(v.Replacement)
		for _, u := range utf16.Encode([]rune(v.Replacement)) {
			p.instead[1] = append(p.instead[1], byte(u), byte(u>>8))
			p.instead[2] = append(p.instead[2], byte(u>>8), byte(u))
		}
		s.spaced = s.spaced || bytes.IndexByte(v.Value, ' ') >= 0
		s.hold = max(s.hold, p.limit)
		s.digits = min(s.digits, (8*p.min+5)/6)
		s.secrets = append(s.secrets, p)
	}
	if len(s.secrets) == 0 {
		return s
	}
	s.names = names(s.secrets)
	s.grams.build(s.secrets)
	s.step = stepFor(s.secrets)
	s.readers.New = func() any { return &reader{set: s} }
	return s
}

// Hold is the length of the longest pattern in bytes: 12 times that of the
// longest secret; 0 where there is nothing to look for.
func (s *Set) Hold() int {
	if s == nil {
		return 0
	}
	return s.hold
}

// Text scans a whole text. out is p itself where nothing was found; entries are
// those of what was replaced, each once.
func (s *Set) Text(p []byte) (out []byte, entries []string) {
	if s.Hold() == 0 || len(p) < shortest {
		return p, nil
	}
	r := s.readers.Get().(*reader)
	defer s.done(r)
	at := 0
	for _, c := range r.scan(p, 0, 0, false) {
		entries = note(entries, s.secrets[c.pat].entry)
		out = append(out, p[at:c.start]...)
		out = append(out, s.instead(c)...)
		at = c.end
	}
	if entries == nil {
		return p, nil
	}
	return append(out, p[at:]...), entries
}

// Overwrite scans a whole message and writes asterisks over each find, in
// place: the length stays.
func (s *Set) Overwrite(p []byte) (entries []string) {
	if s.Hold() == 0 || len(p) < shortest {
		return nil
	}
	r := s.readers.Get().(*reader)
	defer s.done(r)
	for _, c := range r.scan(p, 0, 0, false) {
		entries = note(entries, s.secrets[c.pat].entry)
		blank(p[c.start:c.end])
	}
	return entries
}

func (s *Set) done(r *reader) {
	r.p = nil
	s.readers.Put(r)
}

// Raw tells whether p holds a whole secret as such, and whose; one below 16
// bytes only where no letter or digit of ASCII stands beside it. It is for
// requests: a client that sends a secret is guessing it.
func (s *Set) Raw(p []byte) (entry string, found bool) {
	if s == nil {
		return "", false
	}
	for k := range s.secrets {
		v := &s.secrets[k]
		for at := 0; ; at++ {
			i := bytes.Index(p[at:], v.value)
			if i < 0 {
				break
			}
			at += i
			end := at + len(v.value)
			if len(v.value) >= 16 || (at == 0 || !isWord(p[at-1])) && (end == len(p) || !isWord(p[end])) {
				return v.entry, true
			}
		}
	}
	return "", false
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// instead is what takes the place of a find, in the reading that it begins in.
func (s *Set) instead(c find) []byte {
	form := 0
	switch c.read {
	case asUTF16LE:
		form = 1
	case asUTF16BE:
		form = 2
	}
	return s.secrets[c.pat].instead[form]
}

func note(entries []string, entry string) []string {
	if slices.Contains(entries, entry) {
		return entries
	}
	return append(entries, entry)
}

func blank(p []byte) {
	for i := range p {
		p[i] = '*'
	}
}

// decodeRune is the character that p begins with, of size 0 where it is none in
// UTF-8.
func decodeRune(p []byte) (r rune, size int) {
	r, size = utf8.DecodeRune(p)
	if r == utf8.RuneError && size < 2 {
		return 0, 0
	}
	return r, size
}
