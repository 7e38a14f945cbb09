package token_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/credbroker/token"
)

// endpoint stands in for the internet: it tells what it is asked, and answers.
type endpoint struct {
	status int
	answer string
}

func (e endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	fmt.Println(r.Method, r.URL)
	return &http.Response{StatusCode: e.status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(e.answer)), Request: r}, nil
}

func clock() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

// has is a secret that some source of the host holds.
func has(b []byte) token.Reader {
	return func(context.Context) (secret.Value, error) { return secret.New(b), nil }
}

func ExampleOAuth2() {
	o := &token.OAuth2{
		Calls: token.Calls{Transport: endpoint{200, `{"access_token":"short-lived-token","token_type":"Bearer","expires_in":3600}`}, Now: clock},
		URL:   "https://login.example.com/token", ClientID: "agent", ClientSecret: has([]byte("client-secret")), Scopes: []string{"read"},
	}
	ctx := context.Background()
	fmt.Println(o.Open(ctx))
	value, ends, err := o.Fetch(ctx)
	fmt.Println(value, len(value.Reveal()), ends.Format(time.TimeOnly), err) // a Value is printed by Reveal alone
	// Output:
	// <nil>
	// POST https://login.example.com/token
	// [redacted] 17 13:00:00 <nil>
}

func ExampleGitHubApp() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		fmt.Println(err)
		return
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	app := &token.GitHubApp{
		Calls: token.Calls{Transport: endpoint{201, `{"token":"ghs_0123456789","expires_at":"2026-12-01T13:00:00Z"}`}, Now: clock},
		API:   token.GitHubAPI("github.com", 443), AppID: "12", InstallationID: "345", Key: has(text),
	}
	ctx := context.Background()
	fmt.Println(app.Open(ctx))
	value, ends, err := app.Fetch(ctx)
	fmt.Println(len(value.Reveal()), ends.Format(time.TimeOnly), err)
	// Output:
	// <nil>
	// POST https://api.github.com/app/installations/345/access_tokens
	// 14 13:00:00 <nil>
}

func ExampleDatabricks() {
	dir, err := os.MkdirTemp("", "profiles")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "databrickscfg")
	if err := os.WriteFile(file, []byte("[dev]\nhost = https://dev.example.com\ntoken = dapi0123456789\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	profiles, err := token.ReadProfiles(file, []string{"dev"})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := &token.Databricks{Calls: token.Calls{Transport: endpoint{}, Now: clock}, Path: file, Profile: profiles[0]}
	ctx := context.Background()
	fmt.Println(d.Profile.URL(), d.Open(ctx))
	value, ends, err := d.Fetch(ctx)
	fmt.Println(len(value.Reveal()), ends.IsZero(), err)
	// What the sandbox sees in its own databrickscfg:
	fmt.Printf("%s", token.Render(profiles, func(string) string { return "a-placeholder" }))
	// Output:
	// https://dev.example.com <nil>
	// 14 true <nil>
	// [dev]
	// host = https://dev.example.com
	// auth_type = pat
	// token = a-placeholder
}
