package proxy

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// answersHere looks at Max-Forwards, which only TRACE and OPTIONS have (RFC
// 9110 section 7.6.2): at nought the request is answered here, above nought it
// goes on with one less. It is true where the request is answered.
func (x *exchange) answersHere(r *http.Request) bool {
	if x.head.method != http.MethodTrace && x.head.method != http.MethodOptions {
		return false
	}
	values, ok := r.Header["Max-Forwards"]
	if !ok {
		return false
	}
	if len(values) != 1 || !digits(values[0]) {
		x.refuse(&denial{reason: "bad_request", detail: "Max-Forwards is not one number."})
		return true
	}
	n := strings.TrimLeft(values[0], "0")
	if n != "" {
		x.forward.maxForwards = lessOne(n)
		return false
	}
	if err := x.lookThrough(r); err != nil {
		x.refuse(refusalOf(err))
		return true
	}
	if x.head.method == http.MethodTrace {
		x.answerOwn("message/http", x.trace(r.Header))
	} else {
		x.answer.Header().Set("Content-Length", "0")
		x.answerOwn("text/plain; charset=utf-8", nil)
	}
	return true
}

// trace is the request as it came, without what is secret in it (RFC 9110
// section 9.3.8).
func (x *exchange) trace(h http.Header) []byte {
	var b bytes.Buffer
	b.WriteString(x.head.method + " " + x.head.target + " " + x.head.proto + "\r\nHost: " + x.head.host + "\r\n")
	names := make([]string, 0, len(h))
	for name := range h {
		switch name {
		case "Authorization", "Cookie", "Proxy-Authorization":
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range h[name] {
			b.WriteString(name + ": " + v + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// lessOne takes one from a number above nought. One too large to count is as
// good as endless.
func lessOne(s string) string {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return s
	}
	return strconv.FormatUint(n-1, 10)
}
