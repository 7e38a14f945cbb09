package sigv4

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
)

// Key is a key of AWS. Token is zero but for temporary ones.
type Key struct {
	ID            string
	Secret, Token secret.Value
}

// process is the JSON that a credential_process prints (AWS SDKs and Tools
// Reference Guide, "Process credential provider").
type process struct {
	Version         int
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string `json:",omitempty"`
	Expiration      string `json:",omitempty"`
}

// Faults of what a credential_process printed. None quotes it.
var (
	errNotJSON    = errors.New("reading the key: it is not the JSON of a credential_process")
	errVersion    = errors.New("reading the key: its Version is not 1")
	errIncomplete = errors.New("reading the key: AccessKeyId or SecretAccessKey is missing")
	errLetters    = errors.New("reading the key: a part of it has spaces or letters that no key has")
	errExpiration = errors.New("reading the key: its Expiration is no time of ISO 8601")
)

// ParseProcess reads what a credential_process printed. expiry is zero where it
// names none. Members that are not known are passed over. Errors hold nothing of
// what was read.
func ParseProcess(text []byte) (key Key, expiry time.Time, err error) {
	var p process
	if json.Unmarshal(text, &p) != nil {
		return Key{}, time.Time{}, errNotJSON
	}
	switch {
	case p.Version != 1:
		return Key{}, time.Time{}, errVersion
	case p.AccessKeyID == "" || p.SecretAccessKey == "":
		return Key{}, time.Time{}, errIncomplete
	case !plain(p.AccessKeyID, "/,;=") || !plain(p.SecretAccessKey, "") || !plain(p.SessionToken, ""):
		return Key{}, time.Time{}, errLetters
	}
	if p.Expiration != "" {
		if expiry, err = time.Parse(time.RFC3339, p.Expiration); err != nil {
			if expiry, err = time.Parse("2006-01-02T15:04:05Z0700", p.Expiration); err != nil { // without a colon in the zone
				return Key{}, time.Time{}, errExpiration
			}
		}
	}
	return Key{
		ID:     p.AccessKeyID,
		Secret: secret.New([]byte(p.SecretAccessKey)),
		Token:  secret.New([]byte(p.SessionToken)),
	}, expiry, nil
}

// Process is the key as ParseProcess reads it, so that one secret can hold all
// parts of it.
func (k Key) Process() secret.Value {
	text, err := json.Marshal(process{Version: 1, AccessKeyID: k.ID, SecretAccessKey: string(k.Secret.Reveal()), SessionToken: string(k.Token.Reveal())})
	if err != nil {
		return secret.Value{} // strings always have a JSON
	}
	return secret.New(text)
}

// plain says that s is visible ASCII without the letters of not.
func plain(s, not string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || strings.IndexByte(not, s[i]) >= 0 {
			return false
		}
	}
	return true
}
