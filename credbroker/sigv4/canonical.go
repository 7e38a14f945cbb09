package sigv4

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// oneEncoding are the services of the S3 family: what they sign is the path
// itself, encoded once. All others sign the path of the wire cleaned and encoded
// once more.
var oneEncoding = []string{"s3", "s3-outposts", "s3-object-lambda", "s3express"}

// canonicalPath is the CanonicalURI of a path as it goes out.
func canonicalPath(out []byte, path, service string) []byte {
	if slices.Contains(oneEncoding, service) {
		if path == "" {
			return append(out, '/')
		}
		return escape(out, unescape(path, false), false)
	}
	return escape(out, cleanPath(path), false)
}

// cleanPath takes dot segments and empty ones out (RFC 3986 section 5.2.4). A
// slash at the end stays.
func cleanPath(path string) string {
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") && strings.HasPrefix(path, "/") {
		return path
	}
	var kept []string
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "", ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, segment)
		}
	}
	clean := "/" + strings.Join(kept, "/")
	if len(kept) > 0 && (strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..")) {
		clean += "/"
	}
	return clean
}

// canonicalQuery adds the CanonicalQueryString: every parameter, decoded and
// encoded again, in the order of name and value. Those for which leave is true
// are left out.
func canonicalQuery(out []byte, list params, leave func(name string) bool) []byte {
	pairs := make([][2]string, 0, len(list))
	for _, p := range list {
		if !leave(p.name) {
			pairs = append(pairs, [2]string{string(escape(nil, p.name, true)), string(escape(nil, p.value, true))})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int {
		if c := strings.Compare(a[0], b[0]); c != 0 {
			return c
		}
		return strings.Compare(a[1], b[1])
	})
	for i, p := range pairs {
		if i > 0 {
			out = append(out, '&')
		}
		out = append(append(append(out, p[0]...), '='), p[1]...)
	}
	return out
}

// fieldLines are the lines of a field as they go out. Host and Content-Length
// are not in the header of an http.Request.
func fieldLines(r *http.Request, name string) []string {
	switch name {
	case "host":
		if r.Host != "" {
			return []string{r.Host}
		}
		return []string{r.URL.Host}
	case "content-length":
		switch n := r.ContentLength; {
		case n > 0, n == 0 && (r.Method == "POST" || r.Method == "PUT" || r.Method == "PATCH"):
			return []string{strconv.FormatInt(n, 10)}
		}
		return nil
	}
	return r.Header[textproto.CanonicalMIMEHeaderKey(name)]
}

// canonicalFields adds the CanonicalHeaders: a line for each name, in lower
// case, with the values of all its lines.
func canonicalFields(out []byte, r *http.Request, names []string) []byte {
	for _, name := range names {
		out = append(append(out, name...), ':')
		for i, line := range fieldLines(r, name) {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendFolded(out, line)
		}
		out = append(out, '\n')
	}
	return out
}

// appendFolded adds a value without the spaces around it, and with one where
// several stand in a row.
func appendFolded(out []byte, value string) []byte {
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if value[i] != ' ' || value[i-1] != ' ' {
			out = append(out, value[i])
		}
	}
	return out
}

// rawPath is the path that goes out, byte for byte.
func rawPath(u *url.URL) string {
	if u.Opaque != "" {
		return u.Opaque
	}
	return u.EscapedPath()
}
