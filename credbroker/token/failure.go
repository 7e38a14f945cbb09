package token

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// Failure is a token that could not be had. Its texts are ours: they hold no
// secret and nothing that an endpoint or a program said but Status and Word.
type Failure struct {
	// Doing is what was tried, a gerund phrase.
	Doing string
	// Status is the status of the answer, 0 without one.
	Status int
	// Word is the `error` of the answer (RFC 6749, section 5.2), or "".
	Word string
	// Why says more, or is "".
	Why string

	cause error // of our own packages or of the context; never an endpoint's
}

// Error names what was tried, the status and the word.
func (f *Failure) Error() string {
	text := f.Doing
	if f.Status != 0 {
		text += fmt.Sprintf(": status %d", f.Status)
	}
	if f.Word != "" {
		text += ", " + f.Word
	}
	if f.Why != "" {
		text += ": " + f.Why
	}
	if f.cause != nil {
		text += ": " + f.cause.Error()
	}
	return text
}

// Reason is credential_unavailable.
func (f *Failure) Reason() string { return "credential_unavailable" }

// Detail is a sentence for the client in the sandbox, or "" where there is
// nothing to add to the reason. It names no host of the operator's.
func (f *Failure) Detail() string {
	switch {
	case f.Status == 0:
		return ""
	case f.Word != "":
		return fmt.Sprintf("The token endpoint refused the broker with status %d, %s.", f.Status, f.Word)
	case f.Why != "":
		return "The token endpoint's answer was of no use."
	}
	return fmt.Sprintf("The token endpoint refused the broker with status %d.", f.Status)
}

// Unwrap gives an error of our own below it, or the context's.
func (f *Failure) Unwrap() error { return f.cause }

// unreached turns an error of a Transport into a Failure. The error itself is
// dropped: net/http quotes what it read, which may be an echo of the request.
func unreached(ctx context.Context, doing string, err error) *Failure {
	f := &Failure{Doing: doing}
	var refusal interface{ Reason() string }
	var name *net.DNSError
	var cert *tls.CertificateVerificationError
	var late net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		f.cause = context.Canceled
	case ctx.Err() != nil:
		f.cause = context.DeadlineExceeded
	case errors.As(err, &refusal):
		f.Why = "refused here: " + refusal.Reason()
	case errors.As(err, &name):
		f.Why = "the name cannot be resolved"
	case errors.As(err, &cert):
		f.Why = "the certificate is not valid"
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		f.Why = "no answer in time"
	default:
		f.Why = "no connection, or no answer in HTTP"
	}
	return f
}

// maxWord is longer than every registered word.
const maxWord = 40

// word is an answer's `error` if it may be quoted. RFC 6749 allows any
// printable letter there; the words that are registered are made of small
// letters and underscores. One that shares its text with what was sent is left
// out, since an endpoint may be made to echo.
func word(s string, sent ...string) string {
	if s == "" || len(s) > maxWord || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	for _, secret := range sent {
		if secret != "" && (strings.Contains(s, secret) || strings.Contains(secret, s)) {
			return ""
		}
	}
	return s
}

// refused is the Failure of an answer that is no success.
func refused(doing string, status int) *Failure {
	f := &Failure{Doing: doing, Status: status}
	if status >= 300 && status < 400 {
		f.Why = "a redirect is not followed"
	}
	return f
}

// succeeded says which statuses bring a token.
func succeeded(status int) bool { return status == http.StatusOK || status == http.StatusCreated }
