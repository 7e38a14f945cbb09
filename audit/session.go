package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// crockford is the alphabet of ULIDs: no I, L, O, U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewSession returns a new session id: a ULID, 48 bits of time in milliseconds
// and 80 random ones, so that ids sort by the time they were made.
func NewSession() string { return ulid(time.Now()) }

func ulid(now time.Time) string {
	var b [16]byte
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	rand.Read(b[6:]) // never fails (crypto/rand)
	// 130 bits in 26 letters of 5: two leading zero bits, then the 128.
	var out [26]byte
	var acc, bits uint
	bits = 2
	j := 0
	for _, x := range b {
		acc = acc<<8 | uint(x)
		bits += 8
		for bits >= 5 {
			bits -= 5
			out[j] = crockford[acc>>bits&31]
			j++
		}
	}
	return string(out[:])
}

// goodSession keeps session ids fit to be file names and to be told apart from
// the number of a rotated file.
func goodSession(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
			return false
		}
	}
	return true
}

// SHA256 writes the hash of b the way records do: "sha256:" and lower-case hex.
func SHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hashText(sum)
}

func hashText(sum [sha256.Size]byte) string { return string(appendHash(nil, sum)) }

func appendHash(dst []byte, sum [sha256.Size]byte) []byte {
	return hex.AppendEncode(append(dst, "sha256:"...), sum[:])
}
