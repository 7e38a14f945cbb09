//go:build linux

package stub

import (
	"hash/maphash"
	"sync"
)

// seenNames is how many questions are remembered at least, at some 20 bytes.
const seenNames = 1 << 15

// seen remembers which questions were told of, in two generations: when the
// young one is full, the old one is forgotten. A sandbox that asks for ever new
// names is told of in full and takes no more room.
type seen struct {
	size int
	seed maphash.Seed // not known inside: no name can be made to hide another

	mu         sync.Mutex
	young, old map[uint64]struct{}
}

func newSeen(size int) *seen {
	return &seen{size: size, seed: maphash.MakeSeed(), young: map[uint64]struct{}{}}
}

// first says whether the question is new, and remembers it.
func (s *seen) first(name, qtype string, failed bool) bool {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(name)
	h.WriteByte(0)
	h.WriteString(qtype)
	if failed {
		h.WriteByte(1) // what went well before, or does later, has its own
	}
	key := h.Sum64()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.young[key]; ok {
		return false
	}
	_, ok := s.old[key]
	if len(s.young) >= s.size {
		s.young, s.old = map[uint64]struct{}{}, s.young
	}
	s.young[key] = struct{}{}
	return !ok
}
