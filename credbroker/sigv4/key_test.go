package sigv4_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker/sigv4"
)

func TestParseProcess(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, text, token string
		expiry            time.Time
	}{
		{"a key", `{"Version": 1, "AccessKeyId": "AKIA1", "SecretAccessKey": "se/cr+et="}`, "", time.Time{}},
		{"a temporary one", `{"Version":1,"AccessKeyId":"AKIA1","SecretAccessKey":"se/cr+et=","SessionToken":"t/o+k==","Expiration":"2026-11-30T12:00:00Z","AccountId":"0"}`, "t/o+k==", at},
		{"with a zone", `{"Version":1,"AccessKeyId":"AKIA1","SecretAccessKey":"se/cr+et=","Expiration":"2026-11-30T13:00:00+01:00"}`, "", at},
		{"with a zone as date(1) has it", `{"Version":1,"AccessKeyId":"AKIA1","SecretAccessKey":"se/cr+et=","Expiration":"2026-11-30T13:00:00+0100"}`, "", at},
		{"a token that is null", `{"Version":1,"AccessKeyId":"AKIA1","SecretAccessKey":"se/cr+et=","SessionToken":null}` + "\n", "", time.Time{}},
	} {
		k, expiry, err := sigv4.ParseProcess([]byte(tt.text))
		if err != nil || k.ID != "AKIA1" || string(k.Secret.Reveal()) != "se/cr+et=" || string(k.Token.Reveal()) != tt.token || !expiry.Equal(tt.expiry) {
			t.Errorf("%s: %s %s %v %v", tt.name, k.ID, k.Token.Reveal(), expiry, err)
		}
		again, _, err := sigv4.ParseProcess(k.Process().Reveal())
		if err != nil || again.ID != k.ID || !again.Secret.Equal(k.Secret) || !again.Token.Equal(k.Token) {
			t.Errorf("%s: it does not read what it writes: %v", tt.name, err)
		}
	}
	const marked = "MARKED"
	for name, text := range map[string]string{
		"nothing":             "",
		"no JSON":             "MARKED",
		"a list":              `["MARKED"]`,
		"two":                 `{"Version":1,"AccessKeyId":"MARKED","SecretAccessKey":"MARKED"}{}`,
		"another version":     `{"Version":2,"AccessKeyId":"MARKED","SecretAccessKey":"MARKED"}`,
		"no version":          `{"AccessKeyId":"MARKED","SecretAccessKey":"MARKED"}`,
		"no key":              `{"Version":1,"SecretAccessKey":"MARKED"}`,
		"no secret":           `{"Version":1,"AccessKeyId":"MARKED"}`,
		"a number":            `{"Version":1,"AccessKeyId":"MARKED","SecretAccessKey":12345678}`,
		"a line break":        `{"Version":1,"AccessKeyId":"MARKED","SecretAccessKey":"MARKED\n"}`,
		"a slash in the id":   `{"Version":1,"AccessKeyId":"MARKED/x","SecretAccessKey":"MARKED"}`,
		"a comma in the id":   `{"Version":1,"AccessKeyId":"MARKED,x","SecretAccessKey":"MARKED"}`,
		"a space in a token":  `{"Version":1,"AccessKeyId":"MARKED","SecretAccessKey":"MARKED","SessionToken":"a b"}`,
		"a time of no form":   `{"Version":1,"AccessKeyId":"MARKED","SecretAccessKey":"MARKED","Expiration":"MARKED"}`,
		"a time without zone": `{"Version":1,"AccessKeyId":"MARKED","SecretAccessKey":"MARKED","Expiration":"2026-11-30T13:00:00"}`,
	} {
		k, _, err := sigv4.ParseProcess([]byte(text))
		if err == nil || k.ID != "" || strings.Contains(fmt.Sprint(err), marked) {
			t.Errorf("%s: %q, %v", name, k.ID, err)
		}
	}
	if text := fmt.Sprintf("%v %+v", key("AKIA1", marked, marked), key("AKIA1", marked, marked)); strings.Contains(text, marked) {
		t.Errorf("it prints itself: %s", text)
	}
}
