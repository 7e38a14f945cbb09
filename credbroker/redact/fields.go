package redact

import (
	"net/http"
	"strings"
	"sync"

	"github.com/egressd/egressd/credbroker/scan"
)

// sums are the fields that are computed over a body's bytes (RFC 9530, and the
// older ones of RFC 1864 and 3230).
var sums = []string{"Content-Md5", "Digest", "Content-Digest", "Repr-Digest"}

func dropSums(h http.Header) {
	for _, name := range sums {
		delete(h, name)
	}
}

// Names makes the set for [Config].Names out of the one for Config.Set.
func Names(secrets []scan.Secret) *scan.Set {
	lower := make([]scan.Secret, len(secrets))
	for i, s := range secrets {
		s.Value = []byte(strings.ToLower(string(s.Value)))
		lower[i] = s
	}
	return scan.New(lower)
}

// sieve is what is looked for in one answer, and what was found of it.
type sieve struct {
	Config
	mu   sync.Mutex
	told map[string]bool
}

// sets are those of now.
func (s *sieve) sets() (set, names *scan.Set) {
	if s.Renewed != nil {
		return s.Renewed()
	}
	return s.Set, s.Names
}

// note tells of each entry once.
func (s *sieve) note(entries []string) {
	if len(entries) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range entries {
		if s.told[entry] {
			continue
		}
		if s.told == nil {
			s.told = make(map[string]bool)
		}
		s.told[entry] = true
		if s.Note != nil {
			s.Note(entry)
		}
	}
}

// fields makes a head or a trailer safe, in place. A length is
// what frames the answer, and is settled with the body, so a find in one is
// dropped: HTTP/2, trailers and interim answers let through what is no number.
func (s *sieve) fields(h map[string][]string) {
	set, names := s.sets()
	if len(h) == 0 || noneIn(h, set, names) {
		return
	}
	var text []byte
	for name, values := range h {
		if s.inName(name, set, names) || name == "Content-Length" && s.inAny(values, set) {
			delete(h, name)
			continue
		}
		for i, v := range values {
			text = append(text[:0], v...)
			if clean, entries := set.Text(text); len(entries) > 0 {
				values[i] = string(clean)
				s.note(entries)
			}
		}
	}
}

// joined are the buffers of noneIn.
var joined = sync.Pool{New: func() any { return new([]byte) }}

// noneIn says that nothing is to be found in any field: in most heads that is
// so, and to scan them as one text costs a fraction of looking at each field.
// What is a find in a field is one in a text that holds it too.
func noneIn(h map[string][]string, set, names *scan.Set) bool {
	buffer := joined.Get().(*[]byte)
	defer joined.Put(buffer)
	text := (*buffer)[:0]
	for name := range h {
		text = append(append(text, name...), "\n\n"...)
	}
	end := len(text)
	for _, values := range h {
		for _, v := range values {
			text = append(append(text, v...), "\n\n"...)
		}
	}
	*buffer = text
	if _, entries := set.Text(text); len(entries) > 0 {
		return false
	}
	if names == nil {
		return true
	}
	lower(text[:end])
	_, entries := names.Text(text[:end])
	return len(entries) == 0
}

// lower writes letters of ASCII small; names of fields have no others.
func lower(p []byte) {
	for i, c := range p {
		if 'A' <= c && c <= 'Z' {
			p[i] = c | 0x20
		}
	}
}

// inName looks for a find in a field's name, as it stands and, since net/http
// writes names in a case of its own, without case.
func (s *sieve) inName(name string, set, names *scan.Set) bool {
	_, entries := set.Text([]byte(name))
	if len(entries) == 0 && names != nil {
		_, entries = names.Text([]byte(strings.ToLower(name)))
	}
	s.note(entries)
	return len(entries) > 0
}

// inAny looks for a find in values that are dropped, not replaced.
func (s *sieve) inAny(values []string, set *scan.Set) (found bool) {
	for _, v := range values {
		_, entries := set.Text([]byte(v))
		s.note(entries)
		found = found || len(entries) > 0
	}
	return found
}
