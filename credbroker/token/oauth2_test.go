package token

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/internal/proxytest"
)

const (
	endpoint = "https://login.test/token"
	known    = "tok-live-7Qm4x9Zr2Lp8"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// at is a clock that stands still.
func at(t time.Time) func() time.Time { return func() time.Time { return t } }

// gives reads the same secret each time.
func gives(s string) Reader {
	return func(context.Context) (secret.Value, error) { return secret.New([]byte(s)), nil }
}

// endpoints starts a fake endpoint and the calls that reach it.
func endpoints(t *testing.T) (*proxytest.Tokens, Calls) {
	s := proxytest.NewTokens(t, proxytest.NewCA(t))
	return s, Calls{Transport: s.Transport(t), Now: at(noon)}
}

func reveal(list []secret.Value) []string {
	var out []string
	for _, v := range list {
		out = append(out, string(v.Reveal()))
	}
	return out
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// failure is the Failure that a fetch must give.
func failure(t *testing.T, err error) *Failure {
	t.Helper()
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatalf("error %v, want a Failure", err)
	}
	if f.Reason() != "credential_unavailable" {
		t.Errorf("reason %q", f.Reason())
	}
	return f
}

func TestClientCredentials(t *testing.T) {
	s, calls := endpoints(t)
	s.On(endpoint, proxytest.TokenAnswer{Body: `{"access_token":"at-11aa","token_type":"Bearer","expires_in":3600}`})
	o := &OAuth2{Calls: calls, URL: endpoint, ClientID: "c:d", Scopes: []string{"read", "write"}, ClientSecret: gives("s+/= x")}
	if err := o.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.Asked("")) != 0 {
		t.Error("Open asked the endpoint")
	}
	v, expires, err := o.Fetch(t.Context())
	if err != nil || string(v.Reveal()) != "at-11aa" || !expires.Equal(noon.Add(time.Hour)) {
		t.Fatalf("got %q, %v, %v", v.Reveal(), expires, err)
	}
	asked := s.Asked("")
	if len(asked) != 1 {
		t.Fatalf("%d requests, want 1: no style is probed", len(asked))
	}
	r := asked[0]
	if r.Method != "POST" || r.Header.Get("Authorization") != basic("c%3Ad", "s%2B%2F%3D+x") {
		t.Errorf("%s with %q", r.Method, r.Header.Get("Authorization"))
	}
	if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.Body != "grant_type=client_credentials&scope=read+write" {
		t.Errorf("form %q of type %q", r.Body, r.Header.Get("Content-Type"))
	}
	if got := reveal(o.Secrets()); len(got) != 1 || got[0] != "s+/= x" {
		t.Errorf("secrets %q", got)
	}
}

// The secret goes in the form only after a 400 or 401, and only once.
func TestSecondTry(t *testing.T) {
	granted := proxytest.TokenAnswer{Body: `{"access_token":"at-11aa"}`}
	for _, c := range []struct {
		first  int
		second proxytest.TokenAnswer
		asked  int
		ok     bool
	}{
		{400, granted, 2, true},
		{401, granted, 2, true},
		{401, proxytest.TokenAnswer{Status: 401, Body: `{"error":"invalid_client"}`}, 2, false},
		{403, granted, 1, false},
		{429, granted, 1, false},
		{500, granted, 1, false},
		{302, granted, 1, false},
		{204, granted, 1, false},
	} {
		t.Run(fmt.Sprint(c.first, c.second.Status), func(t *testing.T) {
			s, calls := endpoints(t)
			s.On(endpoint, proxytest.TokenAnswer{Status: c.first, Body: ``}, c.second)
			o := &OAuth2{Calls: calls, URL: endpoint, ClientID: "cid", ClientSecret: gives(known)}
			_, _, err := o.Fetch(t.Context())
			if (err == nil) != c.ok {
				t.Errorf("error %v", err)
			}
			asked := s.Asked("")
			if len(asked) != c.asked {
				t.Fatalf("%d requests, want %d", len(asked), c.asked)
			}
			if c.asked == 2 {
				form := asked[1].Form()
				if form.Get("client_id") != "cid" || form.Get("client_secret") != known || asked[1].Header.Get("Authorization") != "" {
					t.Errorf("second try %q, %q", asked[1].Body, asked[1].Header)
				}
			}
		})
	}
}

func TestRefreshToken(t *testing.T) {
	s, calls := endpoints(t)
	s.On(endpoint,
		proxytest.TokenAnswer{Body: `{"access_token":"at-1","refresh_token":"rt-second"}`},
		proxytest.TokenAnswer{Body: `{"access_token":"at-2"}`},
		proxytest.TokenAnswer{Body: `{"access_token":"at-3","refresh_token":"rt-third"}`},
		proxytest.TokenAnswer{Body: `{"access_token":"at-4"}`})
	source := "rt-first"
	o := &OAuth2{Calls: calls, URL: endpoint, ClientID: "cid", ClientSecret: gives(known),
		RefreshToken: func(context.Context) (secret.Value, error) { return secret.New([]byte(source)), nil }}
	for i, want := range []string{"rt-first", "rt-second", "rt-second", "rt-new"} {
		if i == 3 {
			source = "rt-new" // the user has logged in again
		}
		if _, _, err := o.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		form := s.Asked("")[i].Form()
		if form.Get("refresh_token") != want || form.Get("grant_type") != "refresh_token" {
			t.Errorf("fetch %d: form %v, want %s", i, form, want)
		}
	}
	if got := strings.Join(reveal(o.Secrets()), " "); got != known+" rt-first rt-second rt-third rt-new" {
		t.Errorf("secrets %s", got)
	}
}

// A client without a secret names itself in the form and is not tried twice.
func TestPublicClient(t *testing.T) {
	s, calls := endpoints(t)
	s.On(endpoint, proxytest.TokenAnswer{Status: 400, Body: `{"error":"invalid_grant"}`})
	o := &OAuth2{Calls: calls, URL: endpoint, ClientID: "cid", RefreshToken: gives("rt-first")}
	_, _, err := o.Fetch(t.Context())
	if f := failure(t, err); f.Status != 400 || f.Word != "invalid_grant" {
		t.Errorf("failure %v", f)
	}
	asked := s.Asked("")
	if len(asked) != 1 || asked[0].Header.Get("Authorization") != "" || asked[0].Body != "client_id=cid&grant_type=refresh_token&refresh_token=rt-first" {
		t.Errorf("asked %+v", asked)
	}
}

// The secret of another place is not read: a redirect ends the fetch.
func TestNoRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s, calls := endpoints(t)
		s.On(endpoint, proxytest.TokenAnswer{Status: status, Header: http.Header{"Location": {"https://evil.test/collect"}}})
		s.On("https://evil.test/collect", proxytest.TokenAnswer{Body: `{"access_token":"at-evil"}`})
		o := &OAuth2{Calls: calls, URL: endpoint, ClientID: "cid", ClientSecret: gives(known)}
		_, _, err := o.Fetch(t.Context())
		if f := failure(t, err); f.Status != status || strings.Contains(f.Error()+f.Detail(), "evil") {
			t.Errorf("failure %v", f)
		}
		if n := len(s.Asked("https://evil.test/collect")); n != 0 {
			t.Errorf("%d: the redirect was followed", status)
		}
	}
}

// No text of a failure holds what the endpoint said or what it was sent, even
// if the endpoint echoes.
func TestNothingQuoted(t *testing.T) {
	echo := basic("cid", known)
	for name, c := range map[string]struct {
		answer proxytest.TokenAnswer
		word   string
	}{
		"word":            {proxytest.TokenAnswer{Status: 400, Body: `{"error":"invalid_client","error_description":"the secret was ` + known + `"}`}, "invalid_client"},
		"word of a 200":   {proxytest.TokenAnswer{Body: `{"error":"bad_refresh_token","error_description":"` + known + `"}`}, "bad_refresh_token"},
		"secret as word":  {proxytest.TokenAnswer{Status: 400, Body: `{"error":"` + known + `"}`}, ""},
		"Basic as word":   {proxytest.TokenAnswer{Status: 400, Body: `{"error":"` + echo + `"}`}, ""},
		"word of a quote": {proxytest.TokenAnswer{Status: 400, Body: `{"error":"said \"` + known + `\""}`}, ""},
		"text":            {proxytest.TokenAnswer{Status: 500, Body: "the secret was " + known}, ""},
		"not JSON":        {proxytest.TokenAnswer{Body: known}, ""},
		"bad member":      {proxytest.TokenAnswer{Body: `{"access_token":"a","expires_in":"` + known + `"}`}, ""},
		"bad kind":        {proxytest.TokenAnswer{Body: `{"access_token":"a","token_type":"` + known + `"}`}, ""},
		"too long":        {proxytest.TokenAnswer{Body: strings.Repeat(known, 1<<16)}, ""},
		"malformed head":  {proxytest.TokenAnswer{Raw: known + " 200 OK\r\n\r\n"}, ""},
		"bad status":      {proxytest.TokenAnswer{Raw: "HTTP/1.1 " + known + "\r\n\r\n"}, ""},
		"bad field":       {proxytest.TokenAnswer{Raw: "HTTP/1.1 200 OK\r\n" + known + "\r\n\r\n"}, ""},
		"bad length":      {proxytest.TokenAnswer{Raw: "HTTP/1.1 200 OK\r\nContent-Length: " + known + "\r\n\r\n"}, ""},
		"bad chunk":       {proxytest.TokenAnswer{Raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + known + "\r\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, calls := endpoints(t)
			s.On(endpoint, c.answer)
			o := &OAuth2{Calls: calls, URL: endpoint, ClientID: "cid", ClientSecret: gives(known)}
			v, _, err := o.Fetch(t.Context())
			f := failure(t, err)
			if !v.IsZero() {
				t.Error("a token beside an error")
			}
			if f.Word != c.word || !strings.HasSuffix(f.Error(), f.Word) {
				t.Errorf("word %q in %q, want %q", f.Word, f, c.word)
			}
			for e := error(f); e != nil; e = errors.Unwrap(e) {
				text := e.Error() + f.Detail() + fmt.Sprintf("%v %+v", e, e)
				if strings.Contains(text, known) || strings.Contains(text, "secret was") || strings.Contains(text, echo) {
					t.Errorf("quoted: %s", text)
				}
			}
			if !strings.HasPrefix(f.Error(), "asking login.test for a token: ") {
				t.Errorf("text %q", f)
			}
		})
	}
}

// A secret made of small letters is not let out as a word either.
func TestWord(t *testing.T) {
	for _, c := range []struct{ said, sent, want string }{
		{"invalid_client", known, "invalid_client"},
		{"hunter", "hunter", ""},
		{"was_hunter_", "hunter", ""},
		{"hunt", "hunter", ""},
		{"Invalid", known, ""},
		{"invalid client", known, ""},
		{"invalid-client", known, ""},
		{strings.Repeat("a", 41), known, ""},
		{"", known, ""},
	} {
		if got := word(c.said, c.sent, ""); got != c.want {
			t.Errorf("word(%q, %q) = %q, want %q", c.said, c.sent, got, c.want)
		}
	}
}

// A fetch ends with its context, and says so.
func TestContext(t *testing.T) {
	s, calls := endpoints(t)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	s.On(endpoint, proxytest.TokenAnswer{Wait: hold})
	o := &OAuth2{Calls: calls, URL: endpoint, ClientID: "cid", ClientSecret: gives(known)}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, err := o.Fetch(ctx)
	if f := failure(t, err); !errors.Is(f, context.DeadlineExceeded) {
		t.Errorf("failure %v", f)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("ended after %v", d)
	}
}

type privateAddress struct{}

func (privateAddress) Error() string  { return "refusing 10.0.0.1 of " + known }
func (privateAddress) Reason() string { return "private_address" }

type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

// A refusal of the guard is told by its reason.
func TestRefusedHere(t *testing.T) {
	o := &OAuth2{Calls: Calls{broken{fmt.Errorf("dialling: %w", privateAddress{})}, at(noon)}, URL: endpoint, ClientID: "cid", ClientSecret: gives(known)}
	_, _, err := o.Fetch(t.Context())
	if f := failure(t, err); f.Error() != "asking login.test for a token: refused here: private_address" || f.Detail() != "" {
		t.Errorf("text %q, %q", f, f.Detail())
	}
}

// Without its source there is no request at all.
func TestNoSecret(t *testing.T) {
	s, calls := endpoints(t)
	gone := errors.New("reading file: it is not there")
	for _, o := range []*OAuth2{
		{Calls: calls, URL: endpoint, ClientSecret: func(context.Context) (secret.Value, error) { return secret.Value{}, gone }},
		{Calls: calls, URL: endpoint, RefreshToken: func(context.Context) (secret.Value, error) { return secret.Value{}, gone }},
		{Calls: calls, URL: endpoint},
	} {
		_, _, err := o.Fetch(t.Context())
		f := failure(t, err)
		if (o.ClientSecret != nil || o.RefreshToken != nil) && !errors.Is(f, gone) {
			t.Errorf("failure %v", f)
		}
		if o.Open(t.Context()) == nil {
			t.Error("Open is content")
		}
	}
	if len(s.Asked("")) != 0 {
		t.Error("the endpoint was asked")
	}
}

// The last 16 secrets are remembered.
func TestMemory(t *testing.T) {
	var m memory
	for i := range 40 {
		v := secret.New(fmt.Appendf(nil, "s%d", i))
		m.add(v, v, secret.Value{})
	}
	if got := reveal(m.Secrets()); len(got) != 16 || got[0] != "s24" || got[15] != "s39" {
		t.Errorf("remembered %q", got)
	}
}
