package token

import (
	"strings"
	"testing"
	"time"
)

func TestGranted(t *testing.T) {
	for _, c := range []struct {
		body    string
		token   string
		refresh string
		life    time.Duration // 0: no end
	}{
		{`{"access_token":"a"}`, "a", "", 0},
		{` {"access_token":"a","expires_in":null,"token_type":null,"refresh_token":null} ` + "\r\n", "a", "", 0},
		{`{"access_token":"a","expires_in":3600,"token_type":"bearer","refresh_token":"r r"}`, "a", "r r", time.Hour},
		{`{"access_token":"a","expires_in":"3600"}`, "a", "", time.Hour},
		{`{"access_token":"a","expires_in":""}`, "a", "", 0},
		{`{"access_token":"a","expires_in":0}`, "a", "", 0},
		{`{"access_token":"a","expires_in":"0"}`, "a", "", 0},
		{`{"access_token":"a","expires_in":3.6e3}`, "a", "", time.Hour},
		{`{"access_token":"a","expires_in":1.5}`, "a", "", 1500 * time.Millisecond},
		{`{"access_token":"a","expires_in":1e300}`, "a", "", forever},
		{`{"access_token":"a","token_type":"BearerToken"}`, "a", "", 0},
		{`{"access_token":"a","scope":["x"],"extra":{"access_token":"b"}}`, "a", "", 0},
		{`{"access_token":"a","Access_Token":"b"}`, "a", "", 0},
		{`{"access_token":"\u0061"}`, "a", "", 0},

		{`{"access_token":"a","expires_in":-1}`, "", "", 0},
		{`{"access_token":"a","expires_in":"soon"}`, "", "", 0},
		{`{"access_token":"a","expires_in":"NaN"}`, "", "", 0},
		{`{"access_token":"a","expires_in":"0x10"}`, "", "", 0},
		{`{"access_token":"a","expires_in":[1]}`, "", "", 0},
		{`{"access_token":"a","expires_in":true}`, "", "", 0},
		{`{"access_token":"a","token_type":"mac"}`, "", "", 0},
		{`{"access_token":"a","token_type":1}`, "", "", 0},
		{`{"access_token":"a","access_token":"b"}`, "", "", 0},
		{`{"access_token":"a"}{}`, "", "", 0},
		{`{"access_token":"a"} x`, "", "", 0},
		{`{"access_token":"a"`, "", "", 0},
		{`{"access_token":"a",}`, "", "", 0},
		{`{"Access_Token":"a"}`, "", "", 0},
		{`{"access_token":""}`, "", "", 0},
		{`{"access_token":null}`, "", "", 0},
		{`{"access_token":1}`, "", "", 0},
		{`{"access_token":"a b"}`, "", "", 0},
		{`{"access_token":"a\r\nX: y"}`, "", "", 0},
		{`{"access_token":"é"}`, "", "", 0},
		{`{"access_token":"` + strings.Repeat("a", maxToken+1) + `"}`, "", "", 0},
		{`["access_token"]`, "", "", 0},
		{`"a"`, "", "", 0},
		{`access_token=a&token_type=bearer`, "", "", 0},
		{``, "", "", 0},
	} {
		token, refresh, expires, err := granted([]byte(c.body), noon)
		if c.token == "" {
			if err == nil || !token.IsZero() {
				t.Errorf("%.60s: taken", c.body)
			}
			continue
		}
		want := time.Time{}
		if c.life != 0 {
			want = noon.Add(c.life)
		}
		if err != nil || string(token.Reveal()) != c.token || string(refresh.Reveal()) != c.refresh || !expires.Equal(want) {
			t.Errorf("%s: %q, %q, %v, %v", c.body, token.Reveal(), refresh.Reveal(), expires, err)
		}
	}
}

func TestDated(t *testing.T) {
	for _, c := range []struct {
		body   string
		needed bool
		life   time.Duration // 0: no end; -1: refused
	}{
		{`{"t":"a","at":"2026-12-01T13:00:00Z"}`, true, time.Hour},
		{`{"t":"a","at":"2026-12-01T14:00:00.5+01:00"}`, false, time.Hour + 500*time.Millisecond},
		{`{"t":"a"}`, false, 0},
		{`{"t":"a","at":""}`, false, 0},
		{`{"t":"a","at":"0001-01-01T00:00:00Z"}`, false, 0},
		{`{"t":"a"}`, true, -1},
		{`{"t":"a","at":"0001-01-01T00:00:00Z"}`, true, -1},
		{`{"t":"a","at":"2026-12-01T12:00:00Z"}`, false, -1},
		{`{"t":"a","at":"2026-12-01 13:00:00"}`, false, -1},
		{`{"t":"a","at":1796130000}`, false, -1},
		{`{"at":"2026-12-01T13:00:00Z"}`, false, -1},
		{`[]`, false, -1},
	} {
		v, expires, err := dated([]byte(c.body), "t", "at", c.needed, noon)
		switch {
		case c.life < 0:
			if err == nil || !v.IsZero() {
				t.Errorf("%s: taken", c.body)
			}
		case err != nil || string(v.Reveal()) != "a" || c.life == 0 != expires.IsZero() || c.life != 0 && !expires.Equal(noon.Add(c.life)):
			t.Errorf("%s: %q, %v, %v", c.body, v.Reveal(), expires, err)
		}
	}
}

// Whatever an endpoint says, what is taken can be sent and no error quotes it.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"access_token":"a","expires_in":"3600","refresh_token":"r","token_type":"bearer"}`)
	f.Add(`{"access_token":"a","expires_in":1e99,"expiry":"2030-01-01T00:00:00Z"}`)
	f.Add(`{"access_token":"\ud800","a":{"a":[1,2,{"b":null}]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		fixed := map[error]bool{nil: true, errObject: true, errNoToken: true, errKind: true, errLifetime: true, errExpired: true}
		v, _, expires, err := granted([]byte(body), noon)
		if !fixed[err] || (err == nil) == v.IsZero() {
			t.Errorf("%q with error %v", v.Reveal(), err)
		}
		if !expires.IsZero() && (expires.Before(noon) || expires.Sub(noon) > forever) {
			t.Errorf("expires %v", expires)
		}
		w, expires, err := dated([]byte(body), "access_token", "expiry", false, noon)
		if !fixed[err] || (err == nil) == w.IsZero() {
			t.Errorf("%q with error %v", w.Reveal(), err)
		}
		if !expires.IsZero() && !expires.After(noon) {
			t.Errorf("a token that ended at %v", expires)
		}
		for _, b := range append(v.Reveal(), w.Reveal()...) {
			if b <= ' ' || b > '~' {
				t.Errorf("token with byte %#x", b)
			}
		}
	})
}
