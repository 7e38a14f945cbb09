package credbroker

import (
	"encoding/base64"
	"strings"
)

// basicToken is what stands behind the scheme of a Basic login (RFC 7617), and
// how much of the field stands before it.
func basicToken(value string) (prefix, token string, ok bool) {
	const scheme = "basic"
	start := len(value) - len(strings.TrimLeft(value, " \t"))
	end := start + len(scheme)
	if len(value) <= end || !strings.EqualFold(value[start:end], scheme) || value[end] != ' ' && value[end] != '\t' {
		return "", "", false
	}
	token = strings.TrimLeft(value[end:], " \t")
	return value[:len(value)-len(token)], strings.TrimRight(token, " \t"), true
}

// decodeBasic decodes the token of a Basic login, of either alphabet, with or
// without padding; false where it is not base64 that all servers read alike.
func decodeBasic(token string) (string, bool) {
	token = strings.TrimRight(token, "=")
	code := base64.RawStdEncoding
	if strings.ContainsAny(token, "-_") {
		code = base64.RawURLEncoding
	}
	out, err := code.DecodeString(token)
	return string(out), err == nil && !strings.ContainsAny(token, "\r\n")
}

// decodeLoosely decodes as the servers do that skip what is no letter.
func decodeLoosely(token string) string {
	clean := make([]byte, 0, len(token))
	for i := range len(token) {
		switch c := token[i]; {
		case alphanum(c) || c == '+' || c == '/':
			clean = append(clean, c)
		case c == '-':
			clean = append(clean, '+')
		case c == '_':
			clean = append(clean, '/')
		}
	}
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	out, _ := base64.RawStdEncoding.DecodeString(string(clean)) // all letters: an odd last bit is no matter
	return string(out)
}

// basicField is a whole field of a Basic login.
func basicField(user string, password []byte) string {
	login := append([]byte(user+":"), password...)
	return "Basic " + base64.StdEncoding.EncodeToString(login)
}
