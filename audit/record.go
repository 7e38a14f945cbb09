package audit

import (
	"context"
	"time"
)

// Kind says what a record is about.
type Kind string

// The kinds of records, a closed set.
const (
	KindRequest      Kind = "request"
	KindRequestOpen  Kind = "request_open"
	KindConnection   Kind = "connection"
	KindDNS          Kind = "dns"
	KindCredential   Kind = "credential"
	KindLeak         Kind = "leak"
	KindRedaction    Kind = "redaction"
	KindApproval     Kind = "approval"
	KindReload       Kind = "reload"
	KindSelfTest     Kind = "self_test"
	KindSessionStart Kind = "session_start"
	KindSessionEnd   Kind = "session_end"
	KindExec         Kind = "exec"
	KindFile         Kind = "file"
	KindLeftBehind   Kind = "left_behind"
	KindControl      Kind = "control"
	KindLimit        Kind = "limit"
	KindRecovered    Kind = "recovered"
)

// Kinds returns every kind, in the order of the design.
func Kinds() []Kind {
	return []Kind{
		KindRequest, KindRequestOpen, KindConnection, KindDNS, KindCredential, KindLeak,
		KindRedaction, KindApproval, KindReload, KindSelfTest, KindSessionStart, KindSessionEnd,
		KindExec, KindFile, KindLeftBehind, KindControl, KindLimit, KindRecovered,
	}
}

// known says whether k is one of Kinds.
func (k Kind) known() bool {
	for _, other := range Kinds() {
		if k == other {
			return true
		}
	}
	return false
}

// wide says that a record of this kind has every member, empty ones too.
func (k Kind) wide() bool { return k == KindRequest || k == KindRequestOpen }

// Sink takes records. *Log is the one that the promises of a session are
// about; others follow it.
type Sink interface {
	// Reserve holds room for one final record, or fails with an error that
	// has Reason() string.
	Reserve(ctx context.Context) error
	// Append writes records, in this order. With Reserved of one the room of one
	// Reserve is used up, whatever Append returns. The caller keeps them.
	Append(records ...*Record) error
	// Release gives back the room of one Reserve that no record will use.
	Release()
}

// Record is one line. Members that its kind does not have are not written;
// see the encoder for which kind has which. Append sets Time where it is zero:
// a record that is appended twice (request_open, then request) keeps the first
// time unless its Time is made zero in between.
type Record struct {
	Time    time.Time // written in UTC, to the microsecond; zero: the time of Append
	Seq     uint64    // set by Append: counts from 1 in the session
	Session string    // set by Append
	Kind    Kind

	Verdict    string // allow, deny, error, or empty
	Reason     string // of the closed set of the rule language
	Credential string // its id
	RequestID  string
	Host       string

	Rule   string // canonical text of the rule that decided
	Hint   string // the smallest rule that would allow it
	Method string
	Scheme string
	Port   int
	// Path is the path as sent. What stands behind a "?" in it is moved to
	// Query, the userinfo of an absolute form is dropped.
	Path string
	// Pattern is the path of the rule that decided; it is written as the path
	// with PathMode PathRule, and never otherwise.
	Pattern string
	// Query is the query as sent, without the "?". It is never written; its
	// names, and with QueryFull its values, are. A record that was read has it
	// empty.
	Query         string
	QueryNames    []string // as sent, in order; written only where Query is empty
	QueryValues   []string // of a record that was read: beside QueryNames, only with QueryFull
	Status        int      // as sent to the client, 0 if none
	BytesOut      int64    // bytes of body sent to the origin
	BytesIn       int64    // bytes of body received from the origin
	Duration      time.Duration
	TTFB          time.Duration // to the first byte of the origin's answer
	Upstream      string        // address that was dialled
	Proto         string        // spoken with the client
	UpstreamProto string
	Capture       string // explicit, transparent, serve
	Policy        string // hash of the policy in force
	Tunnel        bool   // an uninspected tunnel

	Qtype    string   // dns: type of the question
	Argv     []string // exec, left_behind
	Isolator string   // exec; session_start of a session that runs programs
	ExitCode *int     // exec, if it ran
	Counts   Counts   // session_end

	Cut        bool   // of a record that was read: something was cut
	PathSHA256 string // of a record that was read and cut: of the whole path, hex
	Prev       string // of a record that was read: hash of the line before

	// Reserved says that Reserve was called for this record. Not written.
	Reserved bool
}

// Counts is kind → verdict → number of records.
type Counts map[Kind]map[string]int64

// add counts one record.
func (c Counts) add(k Kind, verdict string, n int64) {
	m := c[k]
	if m == nil {
		m = make(map[string]int64)
		c[k] = m
	}
	m[verdict] += n
}

// Unavailable says that a record, or the room for one, could not be had.
type Unavailable struct {
	Err error
}

func (e *Unavailable) Error() string { return "recording: " + e.Err.Error() }

// Unwrap returns what was in the way.
func (e *Unavailable) Unwrap() error { return e.Err }

// Reason is the reason of the denial.
func (e *Unavailable) Reason() string { return "audit_unavailable" }

// Status is the HTTP status of the denial.
func (e *Unavailable) Status() int { return 503 }

// RetryAfter is what the client is told to wait.
func (e *Unavailable) RetryAfter() time.Duration { return time.Second }
