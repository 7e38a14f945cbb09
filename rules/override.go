package rules

import "strings"

// Many frameworks let a header override the method or the path that was sent.
// Each such field is one more reading of the request.
const (
	overrideNone = iota
	overrideMethod
	overridePath
	overrideHost // no reading: the host must be the one that was asked for
)

// overrideNames are what the names stand for, in the form of foldName.
var overrideNames = map[string]int{
	"x-http-method-override": overrideMethod,
	"x-http-method":          overrideMethod,
	"x-method-override":      overrideMethod,
	"x-original-url":         overridePath,
	"x-rewrite-url":          overridePath,
	"x-forwarded-host":       overrideHost,
	"forwarded":              overrideHost,
}

// maxOverrides is how many different methods or paths one request may name:
// every method counts with every path, and no honest client sends more.
const maxOverrides = 8

// overrideKind looks a header name up. It allocates nothing.
func overrideKind(name string) int {
	if len(name) < len("forwarded") || len(name) > len("x-http-method-override") {
		return overrideNone
	}
	if c := name[0] | 0x20; c != 'x' && c != 'f' {
		return overrideNone
	}
	var buf [len("x-http-method-override")]byte
	for i := 0; i < len(name); i++ {
		c := lowerByte(name[i])
		if c == '_' { // CGI and WSGI fold the two
			c = '-'
		}
		buf[i] = c
	}
	return overrideNames[string(buf[:len(name)])]
}

// overrides gathers the methods and paths that header fields name, and says
// whether a forwarded host disagrees. ok is false where there are too many.
func (a *ask) overrides(header map[string][]string) (ok, agree bool) {
	agree = true
	for name, values := range header {
		kind := overrideKind(name)
		if kind == overrideNone {
			continue
		}
		for _, value := range values {
			value = strings.Trim(value, " \t")
			if value == "" {
				continue
			}
			switch kind {
			case overrideMethod:
				a.moreMethods = appendNew(a.moreMethods, upperASCII(value))
			case overridePath:
				a.moreTargets = appendNew(a.moreTargets, value)
			case overrideHost:
				agree = agree && a.agrees(foldName(name), value)
			}
			if len(a.moreMethods) > maxOverrides || len(a.moreTargets) > maxOverrides {
				return false, agree
			}
		}
	}
	return true, agree
}

// foldName is a header name as names are compared here.
func foldName(name string) string {
	return strings.ReplaceAll(lowerASCII(name), "_", "-")
}

// agrees says whether every host that X-Forwarded-Host or Forwarded (RFC 7239)
// names is the host and port of the request. What cannot be read disagrees.
func (a *ask) agrees(name, value string) bool {
	elements, ok := splitQuoted(value, ',')
	if !ok {
		return false
	}
	for _, element := range elements {
		if name == "x-forwarded-host" {
			if !a.agreesHost(element) {
				return false
			}
			continue
		}
		params, ok := splitQuoted(element, ';')
		if !ok {
			return false
		}
		for _, param := range params {
			key, host, _ := strings.Cut(param, "=")
			if strings.EqualFold(strings.Trim(key, " \t"), "host") && !a.agreesHost(unquote(host)) {
				return false
			}
		}
	}
	return true
}

func (a *ask) agreesHost(authority string) bool {
	authority = strings.Trim(authority, " \t")
	if authority == "" {
		return true
	}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	n := defaultPort(a.scheme)
	if port != "" {
		var p parser
		if p.port(port, 0) != nil || p.rule.Port == AnyPort {
			return false
		}
		n = p.rule.Port
	}
	name, problem := canonical(host)
	return problem == "" && name == a.host && n == a.port
}

// splitQuoted splits at a mark that does not stand in a quoted string.
func splitQuoted(s string, mark byte) (parts []string, ok bool) {
	start, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted && s[i] == '\\':
			i++
		case !quoted && s[i] == mark:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:]), !quoted
}

// unquote reads a token or a quoted string (RFC 9110 5.6.4).
func unquote(s string) string {
	s = strings.Trim(s, " \t")
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	var b strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' && i+1 < len(s)-1 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
