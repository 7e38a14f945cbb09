package credbroker

import (
	"errors"
	"net/http"

	"github.com/egressd/egressd/credbroker/source"
)

// Titles of what a request must not hold.
const (
	placeholderTitle = "Placeholder where it does not belong"
	secretTitle      = "Secret in a request"
)

// refusal is a request that does not go out, or does not go on. Its texts are
// fixed: nothing of a request, an answer or a secret is in them.
type refusal struct {
	reason, title, detail string
}

// What is refused, each with what it says to the client.
var (
	errLeak        = &refusal{"credential_leak", placeholderTitle, "The request holds a placeholder that is not bound to this place: to this host, port and path, and this header or parameter."}
	errLeakOld     = &refusal{"credential_leak", placeholderTitle, "The request holds a placeholder that is none of this session's: of another session, cut short or run together. The environment has those of this one."}
	errLeakBody    = &refusal{"credential_leak", placeholderTitle, "The body of the request holds a placeholder. Placeholders are swapped in the head of a request only."}
	errLeakMethod  = &refusal{"credential_leak", placeholderTitle, "A placeholder is not swapped in TRACE and OPTIONS, which may be answered with what was sent."}
	errSecret      = &refusal{"credential_leak", secretTitle, "The request holds a real secret, as such. It goes out only where egressd itself puts it."}
	errSecretBody  = &refusal{"credential_leak", secretTitle, "The body of the request holds a real secret, as such. It goes out only where egressd itself puts it."}
	errPlaintext   = &refusal{"credential_plaintext", "", "A secret is bound to this host, and it is never sent over plain http: use https."}
	errForeign     = &refusal{"credential_foreign", "", "The request brings a credential of its own to a host whose entry refuses others than its own."}
	errForeignBody = &refusal{"credential_foreign", "", "The body of the request brings a credential of its own in a field, or cannot be looked through for one, to a host whose entry lets none but its own through."}
)

func (r *refusal) Error() string { return "refusing the request: " + r.reason }

// Reason is the word for the record (RULES.md).
func (r *refusal) Reason() string { return r.reason }

// Title is that of the problem document, "" for the reason's own.
func (r *refusal) Title() string { return r.title }

// Detail is the sentence of the problem document.
func (r *refusal) Detail() string { return r.detail }

// Status is that of the problem document.
func (r *refusal) Status() int { return http.StatusForbidden }

// unavailable is a secret that could not be had for a request.
type unavailable struct {
	entry string // its id
	err   error
}

func (u *unavailable) Error() string { return "credential " + u.entry + ": " + u.err.Error() }

func (u *unavailable) Unwrap() error { return u.err }

// Trouble says why there was no secret for a request, for the user: the entry,
// the place and the cause, and nothing that a program or a service said. It is
// "" for every other error.
func Trouble(err error) string {
	var u *unavailable
	var known *source.Unavailable
	if !errors.As(err, &u) || !errors.As(u.err, &known) {
		return "" // or the client went before there was an answer
	}
	return "credential " + u.entry + ": " + known.Err.Error()
}

// Detail names the entry, and what is known of the cause in words of our own.
func (u *unavailable) Detail() string {
	text := "The secret of the credential " + u.entry + " could not be had."
	var detail interface{ Detail() string }
	if errors.As(u.err, &detail) && detail.Detail() != "" {
		text += " " + detail.Detail()
	}
	return text
}
