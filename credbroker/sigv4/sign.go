package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Options are what a request is signed with.
type Options struct {
	Key Key
	// Issue says that calls that answer with a key are signed too.
	Issue bool
	// Reserve charges what is held of bodies, in bytes; a negative number gives
	// back. It may be asked from whatever goroutine reads the body. False says
	// that there is no room. Nil has no bound.
	Reserve func(bytes int64) bool
}

// longest is how long a presigned request lasts at most, in seconds.
const longest = 900

// Sign signs r, which must be what is about to go out, whole, with host and
// fields as they will be: q is what Recognise said of it. r gets another
// Authorization and session token, or another URL, and where the body is held or
// signed in chunks another Body; Expect is taken off before a body is held.
// Whatever key and session token the client named, those of opts take their
// place. signature is the one that was made, in hex, to be looked for in the
// answer; those of chunks are worth nothing without it.
//
// An error of its own has Reason() string; one of reading the body is wrapped.
// The body is not closed then.
func (q *Request) Sign(r *http.Request, opts Options) (signature string, err error) {
	if opts.Key.ID == "" || opts.Key.Secret.IsZero() {
		return "", errNoKey
	}
	var list params
	if q.How == Query {
		list = paramsOf(r.URL.RawQuery)
	}
	payload, err := q.payload(r, list, opts)
	if err != nil {
		return "", err
	}
	id, token := opts.Key.ID, string(opts.Key.Token.Reveal())
	key := q.derive(opts.Key)
	if q.How == Query {
		list = q.present(list, id, token)
		signed := q.signedIn(r)
		list.set("X-Amz-SignedHeaders", strings.Join(signed, ";"))
		signature = key.sign(q.textToSign(r, list, signed, payload.hash))
		list.set("X-Amz-Signature", signature)
		setQuery(r, list)
	} else {
		delete(r.Header, tokenField)
		if token != "" {
			r.Header[tokenField] = []string{token}
		}
		signed := q.signedIn(r)
		signature = key.sign(q.textToSign(r, paramsOf(r.URL.RawQuery), signed, payload.hash))
		r.Header["Authorization"] = []string{algorithm + " Credential=" + id + "/" + q.scope() +
			", SignedHeaders=" + strings.Join(signed, ";") + ", Signature=" + signature}
	}
	if payload.chunks {
		r.Body = q.newChunks(r.Body, key, signature, payload.trailer, opts.Reserve)
	}
	return signature, nil
}

func (q *Request) scope() string {
	return q.Day + "/" + q.Region + "/" + q.Service + "/" + terminator
}

// signedIn are the names of the fields that are signed: the client's, but for
// those that do not go out, and the session token's.
func (q *Request) signedIn(r *http.Request) []string {
	names := make([]string, 0, len(q.signed)+1)
	for _, name := range q.signed {
		if len(fieldLines(r, name)) > 0 {
			names = append(names, name)
		}
	}
	const token = "x-amz-security-token"
	if len(r.Header[tokenField]) > 0 && !slices.Contains(names, token) {
		names = append(names, token)
		slices.Sort(names)
	}
	return names
}

// present gives a presigned query the real key, and an end that is near.
func (q *Request) present(list params, id, token string) params {
	list.set("X-Amz-Credential", id+"/"+q.scope())
	if n, err := strconv.ParseUint(list.value("X-Amz-Expires"), 10, 32); err != nil || n > longest {
		list = list.put("X-Amz-Expires", strconv.Itoa(longest))
	}
	if token == "" {
		return slices.DeleteFunc(list, func(p param) bool { return p.name == tokenField })
	}
	return list.put(tokenField, token)
}

// textToSign is the StringToSign of the request.
func (q *Request) textToSign(r *http.Request, list params, signed []string, payload string) []byte {
	text := make([]byte, 0, 1024)
	text = append(append(text, r.Method...), '\n')
	text = append(canonicalPath(text, rawPath(r.URL), q.Service), '\n')
	text = append(canonicalQuery(text, list, q.unsigned), '\n')
	text = append(canonicalFields(text, r, signed), '\n')
	for i, name := range signed {
		if i > 0 {
			text = append(text, ';')
		}
		text = append(text, name...)
	}
	text = append(append(text, '\n'), payload...)
	sum := sha256.Sum256(text)
	text = append(append(append(text[:0], algorithm...), '\n'), q.time...)
	text = append(append(append(text, '\n'), q.scope()...), '\n')
	return hex.AppendEncode(text, sum[:])
}

// unsigned says that a parameter is not part of what is signed: the signature
// itself, and for the device gateway of IoT the session token, which is added to
// a request that was signed.
func (q *Request) unsigned(name string) bool {
	return q.How == Query && (name == "X-Amz-Signature" || name == tokenField && q.Service == "iotdevicegateway")
}

// signingKey is the key of a day, region and service.
type signingKey [sha256.Size]byte

func (q *Request) derive(k Key) *signingKey {
	key := append([]byte("AWS4"), k.Secret.Reveal()...)
	for _, part := range []string{q.Day, q.Region, q.Service, terminator} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return (*signingKey)(key)
}

func (k *signingKey) sign(text []byte) string {
	h := hmac.New(sha256.New, k[:])
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}
