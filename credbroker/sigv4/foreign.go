package sigv4

import (
	"net/http"
	"slices"
	"strings"
)

// oldParams are the parameters of signature version 2 and of S3's own before
// it, and those that S3 takes a session from.
var oldParams = []string{"AWSAccessKeyId", "Signature", "SignatureMethod", "SignatureVersion", "SecurityToken"}

// tokenFields are fields that carry a session beside a signature.
var tokenFields = []string{tokenField, "X-Amz-S3session-Token"}

// Foreign says whether r bears anything that AWS takes for a credential:
// Authorization of whatever scheme, a session token, or parameters of a
// presigned request of any version.
func Foreign(r *http.Request) bool {
	if slices.ContainsFunc(r.Header["Authorization"], func(line string) bool { return strings.Trim(line, " \t") != "" }) {
		return true
	}
	for _, name := range tokenFields {
		if len(r.Header[name]) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(paramsOf(r.URL.RawQuery), isForeign)
}

// Strip takes off what Foreign sees, so that r goes out bare.
func Strip(r *http.Request) {
	delete(r.Header, "Authorization")
	for _, name := range tokenFields {
		delete(r.Header, name)
	}
	list := paramsOf(r.URL.RawQuery)
	if kept := slices.DeleteFunc(list, isForeign); len(kept) < len(list) {
		setQuery(r, kept)
	}
}

func isForeign(p param) bool {
	return params{p}.auth() || slices.ContainsFunc(oldParams, func(name string) bool { return strings.EqualFold(p.name, name) })
}

// setQuery gives r another query. The URL may be shared, and is copied.
func setQuery(r *http.Request, list params) {
	u := *r.URL
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.text)
	}
	u.RawQuery = b.String()
	r.URL = &u
}
