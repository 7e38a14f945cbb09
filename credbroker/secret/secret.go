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
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what a Value says of itself.
const Redacted = "[redacted]"

// Value is one secret. The zero Value is none. It may be copied and used from
// many goroutines, since nothing changes its bytes.
type Value struct{ p *[]byte } // behind a pointer: reflection that prints (%#v of a struct around it, a debugger's dump) shows an address

// New takes a copy of b. An empty b gives the zero Value.
func New(b []byte) Value {
	if len(b) == 0 {
		return Value{}
	}
	own := append([]byte(nil), b...)
	return Value{&own}
}

// Reveal is the only way out: a copy of the bytes, nil for the zero Value.
func (v Value) Reveal() []byte {
	if v.p == nil {
		return nil
	}
	return append([]byte(nil), *v.p...)
}

// Len is the number of bytes.
func (v Value) Len() int {
	if v.p == nil {
		return 0
	}
	return len(*v.p)
}

// IsZero reports whether there is no secret.
func (v Value) IsZero() bool { return v.p == nil }

// Equal compares without telling by its time where two secrets of a length
// differ.
func (v Value) Equal(w Value) bool {
	if v.p == nil || w.p == nil {
		return v.p == w.p
	}
	return subtle.ConstantTimeCompare(*v.p, *w.p) == 1
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

// MarshalText is Redacted, for encoding/xml and the keys of maps in JSON.
func (v Value) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// GobEncode is Redacted.
func (v Value) GobEncode() ([]byte, error) { return []byte(Redacted), nil }
