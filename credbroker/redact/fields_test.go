package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
)

// A head is scanned as one text first. What is found in a field by itself is
// found in it, wherever the field stands and however it is spelled.
func TestNothingHidesInAHead(t *testing.T) {
	cfg, _ := config()
	set, names := cfg.Set, Names(secrets())
	hexed := hex.EncodeToString([]byte(secret))
	for _, spelled := range []string{
		secret, secret[:16], secret[5:], hexed, strings.ToUpper(hexed), base64.StdEncoding.EncodeToString([]byte("u:" + secret)),
		strings.ReplaceAll(secret, "-", "%2D"), strings.ReplaceAll(secret, "-", `\u002d`), strings.ReplaceAll(secret, "-", "&#45;"),
		`\` + secret, secret + `\`, secret + "=", "=" + secret, "%" + secret + "%", secret + "&",
	} {
		if _, entries := set.Text([]byte(spelled)); len(entries) == 0 {
			t.Fatalf("%q is none", spelled)
		}
		for _, around := range []string{"", "a", "0", "=", `\`, "%", "&#", "\r", "tok-live-7Qm", "dG9rLWxp"} {
			for _, h := range []http.Header{{"A": {spelled}}, {"A": {around, spelled}}, {"A": {spelled, around}}, {"A": {around, spelled, around}, "B": {around}}} {
				if noneIn(h, set, names) {
					t.Errorf("%q: nothing found", h)
				}
			}
		}
	}
	for h, found := range map[string]bool{"X-Tok-Live-7qm4x9zr2lp8": true, "X-Tok-Live-7qm4x9zr": true, "X-Tok-Live-7qm": false} {
		if noneIn(http.Header{h: {"1"}, "Date": {"today"}}, set, names) == found {
			t.Errorf("name %q: found %v", h, !found)
		}
	}
}
