package sigv4

import "net/http"

// refusal is a request that is not signed, or a body that does not go on. Its
// texts are fixed: nothing of a request or a key is in them.
type refusal struct {
	reason string
	status int
	title  string // "" for the reason's own
	detail string
}

// Titles of what is refused though its placeholder stands where it belongs.
const (
	signatureTitle = "Signature that cannot be made anew"
	issuesTitle    = "Call that may answer with a key"
)

// What is refused, each with what it says to the client.
var (
	errSigV4A    = &refusal{"credential_leak", http.StatusForbidden, signatureTitle, "The request is signed with SigV4A, the asymmetric kind, which is not signed anew here. Set the client to SigV4 with one region."}
	errOld       = &refusal{"credential_leak", http.StatusForbidden, signatureTitle, "The request is signed with signature version 2, which is not signed anew here. Set the client to version 4 (for aws s3: signature_version = s3v4)."}
	errMalformed = &refusal{"credential_leak", http.StatusForbidden, signatureTitle, "The request bears an AWS signature that cannot be read, so it is not signed anew."}
	errTwice     = &refusal{"credential_leak", http.StatusForbidden, signatureTitle, "The request bears more than one AWS signature, or one beside another credential."}
	errIssues    = &refusal{"credential_leak", http.StatusForbidden, issuesTitle, "The call would answer with a key or a token, or set one. `issue: true` on the entry allows it."}
	errUnread    = &refusal{"credential_leak", http.StatusForbidden, issuesTitle, "It cannot be told whether the call would answer with a key: its action is missing, hidden, or in a body of another kind. `issue: true` on the entry allows it."}
	errTooLarge  = &refusal{"body_too_large", http.StatusRequestEntityTooLarge, "", "A body without x-amz-content-sha256, or a chunk of a signed stream, is held to be signed anew, up to 16 MiB."}
	errNoRoom    = &refusal{"overloaded", http.StatusServiceUnavailable, "", "Too many bodies are held to be signed anew."}
	errNoKey     = &refusal{"credential_unavailable", http.StatusBadGateway, "", "There is no key to sign the request with."}
	errEvents    = &refusal{"protocol", http.StatusBadRequest, "", "A body that is signed event by event is not signed anew here."}
	errChunk     = &refusal{"bad_request", http.StatusBadRequest, "", "The body is not the signed chunks that its head announces."}
)

func (r *refusal) Error() string { return "signing the request anew: " + r.reason }

// Reason is the word for the record (RULES.md).
func (r *refusal) Reason() string { return r.reason }

// Title is that of the problem document, "" for the reason's own.
func (r *refusal) Title() string { return r.title }

// Detail is the sentence of the problem document.
func (r *refusal) Detail() string { return r.detail }

// Status is that of the problem document.
func (r *refusal) Status() int { return r.status }
