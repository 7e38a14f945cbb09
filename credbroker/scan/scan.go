// Package scan finds secrets in what an origin answers, in every spelling that
// CREDENTIALS.md names, and puts something else in their place.
package scan

// A Secret is one value that must not be seen, and what takes its place.
type Secret struct {
	Value       []byte // at least 8 bytes, shorter ones are left out
	Replacement string // the placeholder, or "[redacted]"
	Entry       string // the id of its entry
}

// A Set holds the secrets of one host. It does not change, and any number of
// goroutines may use it.
type Set struct {
	secrets []Secret
}

// New builds the Set of secrets, in the order of the policy.
func New(secrets []Secret) *Set { return &Set{secrets: secrets} }

// Hold is the length of the longest pattern in bytes: 12 times that of the
// longest secret; 0 where there is nothing to look for.
func (s *Set) Hold() int {
	longest := 0
	for _, v := range s.secrets {
		longest = max(longest, len(v.Value))
	}
	return 12 * longest
}

// Text scans a whole text. out is p itself where nothing was found; entries are
// those of the finds, each once.
func (s *Set) Text(p []byte) (out []byte, entries []string) { return p, nil }

// Overwrite scans a whole message and writes asterisks over each find, in place.
func (s *Set) Overwrite(p []byte) (entries []string) { return nil }

// Raw tells whether p holds a whole secret as such.
func (s *Set) Raw(p []byte) (entry string, found bool) { return "", false }

// Stream begins the scan of one body.
func (s *Set) Stream(m Mode) *Stream { return &Stream{} }

// A Mode says what ends a piece of a body.
type Mode int

const (
	// Text goes out by lines, and finds become their replacement.
	Text Mode = iota
	// Framed goes out by messages, whose ends the caller tells, and finds
	// become asterisks of the same length.
	Framed
)

// A Stream is the scan of one body, used by one goroutine.
type Stream struct{}

// Write takes the next bytes and appends to dst what may go out now.
func (s *Stream) Write(dst, p []byte) []byte { return append(dst, p...) }

// EndMessage ends a message: all of it goes out, and no find reaches over it.
func (s *Stream) EndMessage(dst []byte) []byte { return dst }

// Release lets all that is held go out; it still counts as the beginning of a
// find that goes on behind it.
func (s *Stream) Release(dst []byte) []byte { return dst }

// Close ends the body: the rest goes out.
func (s *Stream) Close(dst []byte) []byte { return dst }

// Held is how many of the bytes that were written are kept back.
func (s *Stream) Held() int { return 0 }

// Entries are those of the finds since the last call, each once, nil for none.
func (s *Stream) Entries() []string { return nil }
