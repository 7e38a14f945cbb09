package sigv4

import (
	"slices"
	"strings"
)

// param is one parameter of a query.
type param struct {
	text  string // as sent
	name  string // decoded
	value string // decoded
}

type params []param

// paramsOf reads a query. Empty ones ("&&") are none.
func paramsOf(query string) params {
	if query == "" {
		return nil
	}
	list := make(params, 0, 1+strings.Count(query, "&"))
	for text := range strings.SplitSeq(query, "&") {
		if text != "" {
			list = append(list, paramOf(text))
		}
	}
	return list
}

func paramOf(text string) param {
	name, value, _ := strings.Cut(text, "=")
	return param{text, unescape(name, true), unescape(value, true)}
}

// unescape decodes %XX once, and "+" as a space where plus says so. What is no
// escape stays as it is.
func unescape(s string, plus bool) string {
	if strings.IndexByte(s, '%') < 0 && (!plus || strings.IndexByte(s, '+') < 0) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '+' && plus:
			c = ' '
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
		}
		out = append(out, c)
	}
	return string(out)
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	if c >= 'A' {
		return c - 'A' + 10
	}
	return c - '0'
}

// authParams are the parameters of a presigned request, but for the two that
// may stand in others as well.
var authParams = []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature", "X-Amz-SignedHeaders", "X-Amz-Expires", tokenField}

// auth says whether a query bears a signature or a part of one, in whatever case.
func (list params) auth() bool {
	return slices.ContainsFunc(list, func(p param) bool {
		return len(p.name) > 6 && strings.EqualFold(p.name[:6], "X-Amz-") &&
			slices.ContainsFunc(authParams, func(name string) bool { return strings.EqualFold(p.name, name) })
	})
}

// one is the value of the parameter name. ok is false where it stands more than
// once, or in another case.
func (list params) one(name string) (value string, ok bool) {
	n := 0
	ok = true
	for _, p := range list {
		if strings.EqualFold(p.name, name) {
			value, ok = p.value, ok && n == 0 && p.name == name
			n++
		}
	}
	return value, ok
}

// unreserved are the letters that stand for themselves (RFC 3986 section 2.3).
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// escape adds s to out as UriEncode of the specification has it.
func escape(out []byte, s string, slash bool) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; unreserved(c) || c == '/' && !slash {
			out = append(out, c)
		} else {
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
	}
	return out
}

// value is the decoded value of a parameter, "" where there is none.
func (list params) value(name string) string {
	for i := range list {
		if list[i].name == name {
			return list[i].value
		}
	}
	return ""
}

// set gives a parameter that stands in list another value, in its place.
func (list params) set(name, value string) bool {
	for i := range list {
		if p := &list[i]; p.name == name {
			if p.value != value {
				written, _, _ := strings.Cut(p.text, "=")
				*p = param{written + "=" + string(escape(nil, value, true)), name, value}
			}
			return true
		}
	}
	return false
}

// put is set, or adds the parameter where it does not stand.
func (list params) put(name, value string) params {
	if list.set(name, value) {
		return list
	}
	return append(list, param{name + "=" + string(escape(nil, value, true)), name, value})
}
