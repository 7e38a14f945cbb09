package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
)

// maxToken bounds a token, in bytes: one is sent in a header.
const maxToken = 16 << 10

// forever bounds what an answer may say about its token's life.
const forever = 10 * 365 * 24 * time.Hour

// errObject and the others are fixed: an error of encoding/json quotes what it
// read.
var (
	errObject   = errors.New("not a JSON object")
	errNoToken  = errors.New("no token that can be sent")
	errKind     = errors.New("not a bearer token")
	errLifetime = errors.New("no time that can be understood")
	errExpired  = errors.New("a token whose time is over")
)

// object reads the members of one JSON object and nothing behind it. Names
// count as they are written (encoding/json would take Access_Token for
// access_token), and a name that stands twice is refused, since readers
// disagree about which one is meant.
func object(data []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errObject
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, errObject
		}
		key, ok := name.(string)
		if _, twice := members[key]; !ok || twice {
			return nil, errObject
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil, errObject
		}
		members[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, errObject
	}
	if rest := bytes.Trim(data[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, errObject
	}
	return members, nil
}

// text is a member that is a string, "" where it is absent or null.
func text(members map[string]json.RawMessage, name string) (string, bool) {
	raw, ok := members[name]
	if !ok || string(raw) == "null" {
		return "", true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// bearer is a member that can stand in a header behind "Bearer": printable
// ASCII without a space (RFC 6749, appendix A.12, less the space, which ends a
// token in RFC 6750).
func bearer(members map[string]json.RawMessage, name string) (secret.Value, error) {
	s, ok := text(members, name)
	if !ok || s == "" || len(s) > maxToken || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return secret.Value{}, errNoToken
	}
	return secret.New([]byte(s)), nil
}

// granted reads a successful answer of a token endpoint (RFC 6749, section
// 5.1), given at the time now. refresh is zero where the answer brings none;
// expires is zero where the answer tells no life, and where it says 0, which
// endpoints say for tokens without an end.
func granted(data []byte, now time.Time) (token, refresh secret.Value, expires time.Time, err error) {
	m, err := object(data)
	if err != nil {
		return
	}
	if token, err = bearer(m, "access_token"); err != nil {
		return
	}
	// "BearerToken" is what Apigee says. Of no other kind is known how it is
	// sent (section 7.1).
	kind, ok := text(m, "token_type")
	if !ok || kind != "" && !strings.EqualFold(kind, "bearer") && !strings.EqualFold(kind, "bearertoken") {
		return secret.Value{}, refresh, expires, errKind
	}
	life, err := seconds(m["expires_in"])
	if err != nil {
		return secret.Value{}, refresh, expires, err
	}
	if life > 0 {
		expires = now.Add(life)
	}
	if s, ok := text(m, "refresh_token"); ok && s != "" && len(s) <= maxToken {
		refresh = secret.New([]byte(s))
	}
	return token, refresh, expires, nil
}

// seconds reads expires_in: a number, or a number in a string as some endpoints
// send it. Absent, null and "" are 0; a life below 0 or beyond reason is an
// error.
func seconds(raw json.RawMessage) (time.Duration, error) {
	s := string(raw)
	if strings.HasPrefix(s, `"`) && json.Unmarshal(raw, &s) != nil {
		return 0, errLifetime
	}
	if s == "" || s == "null" {
		return 0, nil
	}
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, errLifetime
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 {
		return 0, errLifetime
	}
	return time.Duration(min(n, forever.Seconds()) * float64(time.Second)), nil
}

// dated reads a token and the time it ends at from members of those names, the
// latter by RFC 3339. A time that is absent or that of Go's zero Time is none,
// unless it is needed. One that has passed is an error.
func dated(data []byte, tokenName, timeName string, needed bool, now time.Time) (secret.Value, time.Time, error) {
	m, err := object(data)
	if err != nil {
		return secret.Value{}, time.Time{}, err
	}
	token, err := bearer(m, tokenName)
	if err != nil {
		return secret.Value{}, time.Time{}, err
	}
	s, ok := text(m, timeName)
	if !ok || s == "" && needed {
		return secret.Value{}, time.Time{}, errLifetime
	}
	if s == "" {
		return token, time.Time{}, nil
	}
	expires, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil:
		return secret.Value{}, time.Time{}, errLifetime
	case expires.IsZero() && !needed:
		return token, time.Time{}, nil
	case !expires.After(now):
		return secret.Value{}, time.Time{}, errExpired
	}
	return token, expires, nil
}
