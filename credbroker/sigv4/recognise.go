package sigv4

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	asymmetric = "AWS4-ECDSA-P256-SHA256"
	terminator = "aws4_request"
	stampForm  = "20060102T150405Z"
)

// authorization says whether a field Authorization bears an AWS4 signature.
func authorization(h http.Header) bool {
	for _, line := range h["Authorization"] {
		if strings.Contains(line, "AWS4-") {
			return true
		}
	}
	return false
}

// isOld says whether a request is signed with version 2, or S3's own before it.
func isOld(h http.Header, list params) bool {
	return slices.ContainsFunc(h["Authorization"], func(line string) bool { return strings.HasPrefix(line, "AWS ") || strings.HasPrefix(line, "AWS3") }) ||
		slices.ContainsFunc(list, func(p param) bool { return strings.EqualFold(p.name, "AWSAccessKeyId") })
}

// fromHeader reads the signature of an Authorization field.
func fromHeader(r *http.Request) (*Request, error) {
	lines := r.Header["Authorization"]
	if len(lines) != 1 {
		return nil, errTwice
	}
	scheme, rest, _ := strings.Cut(strings.Trim(lines[0], " \t"), " ")
	switch {
	case scheme == asymmetric:
		return nil, errSigV4A
	case scheme != algorithm:
		return nil, errMalformed
	}
	found := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, ok := strings.Cut(strings.Trim(part, " \t"), "=")
		if _, twice := found[name]; !ok || twice {
			return nil, errMalformed
		}
		found[name] = value
	}
	if len(found) != 3 || !isSignature(found["Signature"]) {
		return nil, errMalformed
	}
	stamp, ok := dateOf(r.Header)
	if !ok {
		return nil, errMalformed
	}
	token := r.Header[tokenField]
	if len(token) > 1 {
		return nil, errMalformed
	}
	q := &Request{How: Header, Token: strings.Join(token, ""), time: stamp}
	return q.complete(found["Credential"], found["SignedHeaders"])
}

// fromQuery reads the signature of a presigned request.
func fromQuery(r *http.Request, list params) (*Request, error) {
	if slices.ContainsFunc(r.Header["Authorization"], func(line string) bool { return strings.Trim(line, " \t") != "" }) || len(r.Header[tokenField]) > 0 {
		return nil, errTwice
	}
	value := map[string]string{}
	for _, name := range append([]string{"X-Amz-Date", "X-Amz-Content-Sha256"}, authParams...) {
		v, ok := list.one(name)
		if !ok {
			return nil, errMalformed
		}
		value[name] = v
	}
	switch {
	case value["X-Amz-Algorithm"] == asymmetric:
		return nil, errSigV4A
	case value["X-Amz-Algorithm"] != algorithm, !isStamp(value["X-Amz-Date"]), !isSignature(value["X-Amz-Signature"]):
		return nil, errMalformed
	}
	q := &Request{How: Query, Token: value[tokenField], time: value["X-Amz-Date"]}
	return q.complete(value["X-Amz-Credential"], value["X-Amz-SignedHeaders"])
}

// complete reads the credential, KEYID/DAY/REGION/SERVICE/aws4_request, and the
// names of the signed fields. The host is always one: a signature without it
// would do for any other.
func (q *Request) complete(credential, signed string) (*Request, error) {
	parts := strings.Split(credential, "/")
	n := len(parts)
	if n < 5 || parts[n-1] != terminator {
		return nil, errMalformed
	}
	q.KeyID = strings.Join(parts[:n-4], "/")
	q.Day, q.Region, q.Service = parts[n-4], parts[n-3], parts[n-2]
	if !plain(q.KeyID, "") || !digits(q.Day, 8) || !isName(q.Region) || !isName(q.Service) {
		return nil, errMalformed
	}
	q.signed = strings.Split(signed, ";")
	for _, name := range q.signed {
		if !isFieldName(name) {
			return nil, errMalformed
		}
	}
	q.signed = append(q.signed, "host")
	slices.Sort(q.signed)
	q.signed = slices.Compact(q.signed)
	return q, nil
}

// dateOf is the time that a request is signed for.
func dateOf(h http.Header) (stamp string, ok bool) {
	lines, plain := h["X-Amz-Date"], false
	if len(lines) == 0 {
		lines, plain = h["Date"], true
	}
	if len(lines) != 1 {
		return "", false
	}
	stamp = strings.Trim(lines[0], " \t")
	if plain && !isStamp(stamp) {
		at, err := http.ParseTime(stamp)
		if err != nil {
			return "", false
		}
		return at.UTC().Format(stampForm), true
	}
	return stamp, isStamp(stamp)
}

func isStamp(s string) bool {
	_, err := time.Parse(stampForm, s)
	return err == nil && len(s) == len(stampForm)
}

func isSignature(s string) bool {
	return len(s) == 64 && !strings.ContainsFunc(s, func(c rune) bool { return c > 'f' || !isHex(byte(c)) })
}

func digits(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789") == ""
}

// isName says that s may be a region or a service.
func isName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(c rune) bool { return c > '~' || !unreserved(byte(c)) })
}

// isFieldName says that s is the name of a field in lower case (RFC 9110 section
// 5.6.2, without the letters that no field of AWS has).
func isFieldName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c > '~' || c >= 'A' && c <= 'Z' || !unreserved(byte(c))
	})
}
