// Package secret holds real secrets in a type that does not print itself.
//
// A Value says [redacted] to every way Go has of turning a value into text:
// fmt with any verb, encoding/json, encoding/xml, encoding/gob and log/slog. A
// secret reaches the wire by Reveal alone, so that whoever looks for the places
// where one is used looks for that word.
//
// What it is not: memory that is wiped or locked. Go copies as it likes; that
// the process is not dumpable and has no core is what keeps the memory shut.
package secret

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what a Value says of itself.
const Redacted = "[redacted]"

// Value is one secret. The zero Value is none. It may be copied and used from
// many goroutines, since nothing changes its bytes. Two of them compare by
// Equal alone.
type Value struct {
	// bytes gives the secret itself. It is a function since fmt asks no method
	// of an unexported field of another struct, and follows its pointers.
	bytes func() []byte
}

// New takes a copy of b. An empty b gives the zero Value.
func New(b []byte) Value {
	if len(b) == 0 {
		return Value{}
	}
	own := bytes.Clone(b)
	return Value{func() []byte { return own }}
}

// Reveal is the only way out: a copy of the bytes, nil for the zero Value.
func (v Value) Reveal() []byte {
	if v.bytes == nil {
		return nil
	}
	return bytes.Clone(v.bytes())
}

// Len is the number of bytes.
func (v Value) Len() int {
	if v.bytes == nil {
		return 0
	}
	return len(v.bytes())
}

// IsZero reports whether there is no secret.
func (v Value) IsZero() bool { return v.bytes == nil }

// Equal compares without telling by its time where two secrets of a length
// differ.
func (v Value) Equal(w Value) bool {
	if v.bytes == nil || w.bytes == nil {
		return v.bytes == nil && w.bytes == nil
	}
	return subtle.ConstantTimeCompare(v.bytes(), w.bytes()) == 1
}

// String is Redacted.
func (v Value) String() string { return Redacted }

// GoString is Redacted.
func (v Value) GoString() string { return Redacted }

// Format writes Redacted, whatever the verb.
func (v Value) Format(f fmt.State, _ rune) { io.WriteString(f, Redacted) }

// LogValue is Redacted, for log/slog.
func (v Value) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalJSON is Redacted as a JSON string.
func (v Value) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalText is Redacted, for encoding/xml.
func (v Value) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// GobEncode is Redacted.
func (v Value) GobEncode() ([]byte, error) { return []byte(Redacted), nil }
