// Package sigv4 signs requests to AWS anew: the sandbox signs with a placeholder
// key, and the signature that goes out is made with the real one (AWS Signature
// Version 4, AWS4-HMAC-SHA256).
//
//   - Recognise reads how a request says that it is signed: in its Authorization
//     field or, presigned, in its query. Whoever calls decides by the key id
//     whether that is a placeholder of its own or somebody else's key.
//   - Request.Sign signs anew. Date, region, service, the names of the signed
//     fields and the payload hash stay the client's; key id, session token and
//     signature become the real ones. A body without a hash is held and hashed;
//     one that signs its chunks (STREAMING-AWS4-HMAC-SHA256-PAYLOAD, with
//     -TRAILER or not) is signed anew chunk by chunk as it streams, and keeps its
//     length.
//   - Calls of sts and iam that would answer with a key are refused, unless the
//     entry says so: their answer is as good as the secret.
//   - Foreign and Strip see and take off what else AWS takes for a credential.
//   - ParseProcess and Key.Process read and write the JSON of credential_process.
//
// The client's own signature is not verified: nothing hangs on it, since what is
// signed is what goes out. Requests of asymmetric keys (SigV4A) and bodies that
// are signed event by event are refused.
package sigv4

import "net/http"

// How says where a request bears its signature.
type How int

// Places of a signature.
const (
	Header How = 1 + iota // in Authorization
	Query                 // presigned, in parameters X-Amz-*
)

// Request is what a request says of its own signature. It does not change, and
// may sign the request again.
type Request struct {
	How How
	// KeyID is the access key id, Token the session token or "".
	KeyID, Token string
	// Day, Region and Service are the credential scope.
	Day, Region, Service string

	signed []string // names of the signed fields, in lower case, sorted, each once
	time   string   // as it is signed: 20060102T150405Z
}

// Recognise reads how r says that it is signed. It gives nil where r bears no
// AWS4 signature, and an error with Reason credential_leak where it bears one
// that cannot be signed anew: of SigV4A, malformed, more than one, or one in the
// header and another in the query; of version 2 too. The error matters only where
// a placeholder is in the request: another's key may be used as it likes.
func Recognise(r *http.Request) (*Request, error) {
	params := paramsOf(r.URL.RawQuery)
	auth, query := authorization(r.Header), params.auth()
	switch {
	case auth && query:
		return nil, errTwice
	case auth:
		return fromHeader(r)
	case query:
		return fromQuery(r, params)
	case isOld(r.Header, params):
		return nil, errOld
	}
	return nil, nil
}

// Field says that text is the key id or the session token and stands where that
// belongs, in the header field name (canonical). A nil Request has no place.
func (q *Request) Field(name, text string) bool {
	return q != nil && q.How == Header && q.holds(text, name == "Authorization", name == tokenField)
}

// Param says that text is the key id or the session token and stands where that
// belongs, in the query parameter name (decoded). A nil Request has no place.
func (q *Request) Param(name, text string) bool {
	return q != nil && q.How == Query && q.holds(text, name == "X-Amz-Credential", name == tokenField)
}

func (q *Request) holds(text string, id, token bool) bool {
	return text != "" && (id && text == q.KeyID || token && text == q.Token)
}

// tokenField is the field, or parameter, of a session token.
const tokenField = "X-Amz-Security-Token"
