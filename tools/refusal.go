package tools

import "errors"

// refusal is a call that is not made, with its reason of the closed set.
type refusal struct{ reason, text string }

func (r *refusal) Error() string  { return r.text }
func (r *refusal) Reason() string { return r.reason }

// errNotGranted answers for a tool that is not granted and for one that does
// not exist alike.
var errNotGranted = &refusal{"not_granted", "not granted: tools.allow in the policy grants tools"}

func badCall(text string) error { return &refusal{"bad_request", text} }

// verdict is the verdict and the reason of a record about a call that ended so.
func verdict(err error) (verdict, reason string) {
	var r interface{ Reason() string }
	switch {
	case err == nil:
		return "allow", ""
	case errors.As(err, &r):
		return "deny", r.Reason()
	}
	return "allow", "" // it was let through, and failed by itself
}
