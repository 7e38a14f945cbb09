package token

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/internal/proxytest"
)

// appKey is a key of an app and its spellings in PEM.
func appKey(t testing.TB) (key *rsa.PrivateKey, pkcs1, pkcs8 []byte) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func part(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGitHubApp(t *testing.T) {
	key, pkcs1, pkcs8 := appKey(t)
	for _, text := range [][]byte{pkcs1, pkcs8} {
		s, calls := endpoints(t)
		at := "https://api.github.com/app/installations/67890/access_tokens"
		s.On(at, proxytest.TokenAnswer{Status: 201, Body: `{"token":"ghs_abc","expires_at":"2026-12-01T13:00:00Z","permissions":{"contents":"read"}}`})
		g := &GitHubApp{Calls: calls, API: GitHubAPI("github.com", 443), AppID: "12345", InstallationID: "67890", Key: gives(string(text))}
		if err := g.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, expires, err := g.Fetch(t.Context())
		if err != nil || string(v.Reveal()) != "ghs_abc" || !expires.Equal(noon.Add(time.Hour)) {
			t.Fatalf("got %q, %v, %v", v.Reveal(), expires, err)
		}
		asked := s.Asked(at)
		if len(asked) != 1 || asked[0].Method != "POST" || asked[0].Body != "" {
			t.Fatalf("asked %+v", asked)
		}
		claim, ok := strings.CutPrefix(asked[0].Header.Get("Authorization"), "Bearer ")
		parts := strings.Split(claim, ".")
		if !ok || len(parts) != 3 {
			t.Fatalf("claim %q", claim)
		}
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], part(t, parts[2])); err != nil {
			t.Errorf("verifying: %v", err)
		}
		if got := string(part(t, parts[0])); got != `{"alg":"RS256","typ":"JWT"}` {
			t.Errorf("header %s", got)
		}
		var payload map[string]any
		if err := json.Unmarshal(part(t, parts[1]), &payload); err != nil {
			t.Fatal(err)
		}
		if payload["iss"] != "12345" || payload["iat"] != float64(noon.Add(-time.Minute).Unix()) || payload["exp"] != float64(noon.Add(9*time.Minute).Unix()) {
			t.Errorf("payload %v", payload)
		}
		block, _ := pem.Decode(text)
		kept := g.Secrets()
		if len(kept) != 2 || !bytes.Equal(kept[0].Reveal(), text) || !bytes.Equal(kept[1].Reveal(), block.Bytes) {
			t.Errorf("%d secrets", len(kept))
		}
	}
}

func TestGitHubAPI(t *testing.T) {
	for _, c := range []struct {
		host string
		port int
		want string
	}{
		{"github.com", 443, "https://api.github.com"},
		{"gist.github.com", 443, "https://api.github.com"},
		{"api.github.com", 443, "https://api.github.com"},
		{"octo.ghe.com", 443, "https://api.octo.ghe.com"},
		{"api.octo.ghe.com", 443, "https://api.octo.ghe.com"},
		{"ghe.test", 443, "https://ghe.test/api/v3"},
		{"ghe.test", 8443, "https://ghe.test:8443/api/v3"},
		{"2001:db8::1", 443, "https://[2001:db8::1]/api/v3"},
		{"2001:db8::1", 8443, "https://[2001:db8::1]:8443/api/v3"},
		{"notgithub.com", 443, "https://notgithub.com/api/v3"},
	} {
		if got := GitHubAPI(c.host, c.port); got != c.want {
			t.Errorf("%s:%d: %s, want %s", c.host, c.port, got, c.want)
		}
	}
}

// A key that is none stops the start, and its error does not quote it.
func TestNoKey(t *testing.T) {
	_, pkcs1, _ := appKey(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":     {"", "no private key in PEM"},
		"text":      {known, "no private key in PEM"},
		"cut":       {string(pkcs1[:len(pkcs1)/2]), "no private key in PEM"},
		"rubbish":   {block("RSA PRIVATE KEY", []byte(known)), "not a private key of RSA"},
		"a curve":   {block("PRIVATE KEY", der), "not a private key of RSA"},
		"public":    {block("PUBLIC KEY", []byte(known)), "not a private key of RSA"},
		"encrypted": {block("ENCRYPTED PRIVATE KEY", []byte(known)), "the key is encrypted"},
		"old style": {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n", "the key is encrypted"},
	} {
		s, calls := endpoints(t)
		g := &GitHubApp{Calls: calls, API: "https://api.github.com", AppID: "1", InstallationID: "2", Key: gives(c.text)}
		err := g.Open(t.Context())
		if f := failure(t, err); f.Error() != "reading the key of the app: "+c.want {
			t.Errorf("%s: %v", name, f)
		}
		if _, _, err := g.Fetch(t.Context()); err == nil || len(s.Asked("")) != 0 {
			t.Errorf("%s: GitHub was asked", name)
		}
	}
	gone := errors.New("reading file: it is not there")
	g := &GitHubApp{Key: func(context.Context) (secret.Value, error) { return secret.Value{}, gone }}
	if f := failure(t, g.Open(t.Context())); !errors.Is(f, gone) {
		t.Errorf("failure %v", f)
	}
}

func TestGitHubRefuses(t *testing.T) {
	_, text, _ := appKey(t)
	for _, c := range []struct {
		answer proxytest.TokenAnswer
		want   string
	}{
		{proxytest.TokenAnswer{Status: 401, Body: `{"message":"A JSON web token could not be decoded ` + known + `"}`}, "status 401"},
		{proxytest.TokenAnswer{Status: 302}, "status 302: a redirect is not followed"},
		{proxytest.TokenAnswer{Status: 404, Body: `{"error":"odd"}`}, "status 404"},
		{proxytest.TokenAnswer{Status: 201, Body: `{"token":"a","expires_at":"2026-12-01T11:00:00Z"}`}, "status 201: a token whose time is over"},
		{proxytest.TokenAnswer{Status: 201, Body: `{"token":"a"}`}, "status 201: no time that can be understood"},
		{proxytest.TokenAnswer{Status: 201, Body: `{"expires_at":"2026-12-01T13:00:00Z"}`}, "status 201: no token that can be sent"},
		{proxytest.TokenAnswer{Status: 201, Body: `<html>`}, "status 201: not a JSON object"},
	} {
		s, calls := endpoints(t)
		s.On("https://ghe.test/api/v3/app/installations/2/access_tokens", c.answer)
		g := &GitHubApp{Calls: calls, API: GitHubAPI("ghe.test", 443), AppID: "1", InstallationID: "2", Key: gives(string(text))}
		_, _, err := g.Fetch(t.Context())
		if f := failure(t, err); f.Error() != "asking ghe.test for a token: "+c.want {
			t.Errorf("text %q, want %q", f, c.want)
		}
	}
}

// FuzzKey: no text panics or is quoted.
func FuzzKey(f *testing.F) {
	_, pkcs1, pkcs8 := appKey(f)
	f.Add(pkcs1)
	f.Add(pkcs8)
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nMAA=\n-----END RSA PRIVATE KEY-----"))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, der, err := rsaKey(text)
		if (err == nil) != (key != nil) || (key == nil) != (der == nil) {
			t.Errorf("key %v with error %v", key != nil, err)
		}
	})
}
