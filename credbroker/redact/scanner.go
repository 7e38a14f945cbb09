package redact

import "github.com/egressd/egressd/credbroker/scan"

// stream is what of a *scan.Stream is used here.
type stream interface {
	// Write appends to dst what may go out after p came.
	Write(dst, p []byte) []byte
	// EndMessage appends what was held of a message that is whole.
	EndMessage(dst []byte) []byte
	// Release appends what is held; it still counts as a beginning.
	Release(dst []byte) []byte
	// Close appends what was held when the answer ends.
	Close(dst []byte) []byte
	// Held is how many of the bytes that came are kept back.
	Held() int
	// Entries names those of new finds since it was last asked.
	Entries() []string
	// Renew has it look for the secrets of set from here on, in what is held too.
	Renew(set *scan.Set)
}

// inPlace is a stream that is read into, and gives out what it was read, without
// a copy.
type inPlace interface {
	// Room is space for the next bytes; it ends what Take gave out.
	Room(n int) []byte
	// Take is Write of the first n bytes of that space.
	Take(n int) []byte
}

// scanner makes the bytes of an answer safe as they come, whatever they are
// framed in.
type scanner interface {
	// Write appends to dst what may go out after p came. The error says that
	// nothing more may.
	Write(dst, p []byte) ([]byte, error)
	Release(dst []byte) []byte
	Close(dst []byte) []byte
	Held() int
	Entries() []string
	Renew(set *scan.Set)
}

// plain is a scanner of what has no framing that counts.
type plain struct{ stream }

func (p plain) Write(dst, b []byte) ([]byte, error) { return p.stream.Write(dst, b), nil }
