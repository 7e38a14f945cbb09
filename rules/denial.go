package rules

import "time"

// Denial is a refusal as an error: what a consumer asks of it are the methods
// below, each found through an interface of its own.
type Denial struct {
	reason, text, hint, note string
	status                   int
	retry                    time.Duration
	rule                     string
	err                      error
}

// Error tells what was refused and why, in words.
func (d *Denial) Error() string {
	if d.text != "" {
		return d.text
	}
	return "judging the request: " + d.reason
}

// Unwrap is what lies behind the refusal, nil for nothing.
func (d *Denial) Unwrap() error { return d.err }

// Reason is one of the closed set of reasons, such as path_not_allowed.
func (d *Denial) Reason() string { return d.reason }

// Hint is the smallest rule that would allow the request, or the nearest rule
// and what differs; "" where there is none.
func (d *Denial) Hint() string { return d.hint }

// Note is the note of the deciding rule, "" for none.
func (d *Denial) Note() string { return d.note }

// Rule is the canonical text of the deciding rule, "" for none.
func (d *Denial) Rule() string { return d.rule }

// Status is the HTTP status where the reason alone does not give it (414 for a
// path that is too long), else 0.
func (d *Denial) Status() int { return d.status }

// RetryAfter is how long to wait until a rate has room again, else 0.
func (d *Denial) RetryAfter() time.Duration { return d.retry }
