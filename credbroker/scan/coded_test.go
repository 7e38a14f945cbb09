package scan

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

// A login of Basic that an origin spells once more is found, wherever the secret
// stands in it, and costs nothing in what is held.
func TestCoded(t *testing.T) {
	secret := Secret{Value: []byte("BasicSecret-8Hq2Lx7Vn4Tz9Rk"), Replacement: "[redacted]", Entry: "api"}
	plain, s := New([]Secret{secret}), New([]Secret{secret}, Coded(secret)...)
	if plain.Hold() != s.Hold() {
		t.Errorf("%d bytes are held, and %d without", s.Hold(), plain.Hold())
	}
	wide := func(text string) string { return strings.Join(strings.Split(text, ""), "\x00") + "\x00" }
	for _, user := range []string{"", "a", "ab", "ann"} {
		login := base64.StdEncoding.EncodeToString([]byte(user + ":" + string(secret.Value)))
		for name, text := range map[string]string{
			"hex": hex.EncodeToString([]byte("Basic " + login)), "UTF-16": wide("Basic " + login),
			"base64": base64.StdEncoding.EncodeToString([]byte("Basic " + login)), "base64 a byte on": base64.RawURLEncoding.EncodeToString([]byte("xBasic " + login)),
		} {
			if out, entries := s.Text([]byte("<" + text + ">")); len(entries) != 1 || len(out) > 3*len(text)/4 {
				t.Errorf("user %q, %s: %q", user, name, out)
			}
		}
		if out, _ := s.Text([]byte(login)); strings.Count(string(out), "[redacted]") != 1 {
			t.Errorf("as it stands: %q", out)
		}
	}
	if Coded(Secret{Value: []byte("short")}) != nil {
		t.Error("a secret that is not looked for")
	}
}
