package token

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// profileOf writes a .databrickscfg and opens its profile.
func profileOf(t *testing.T, calls Calls, name, text string) *Databricks {
	t.Helper()
	path := filepath.Join(t.TempDir(), ".databrickscfg")
	d := &Databricks{Calls: calls, Path: path}
	write(t, d, text)
	list, err := ReadProfiles(path, []string{name})
	if err != nil {
		t.Fatal(err)
	}
	d.Profile = list[0]
	if err := d.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t *testing.T, d *Databricks, text string) {
	t.Helper()
	if err := os.WriteFile(d.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestToken(t *testing.T) {
	d := profileOf(t, Calls{Now: at(noon)}, "dev", threeProfiles)
	v, expires, err := d.Fetch(t.Context())
	if err != nil || string(v.Reveal()) != "dapi-dev-22bb" || !expires.IsZero() {
		t.Errorf("got %q, %v, %v", v.Reveal(), expires, err)
	}
	write(t, d, strings.ReplaceAll(threeProfiles, "dapi-dev-22bb", "dapi-dev-new"))
	if v, _, err = d.Fetch(t.Context()); err != nil || string(v.Reveal()) != "dapi-dev-new" {
		t.Errorf("the file's new token is not found: %q, %v", v.Reveal(), err)
	}
	// The host is bound at the start: a token must not follow the profile.
	write(t, d, strings.ReplaceAll(threeProfiles, "dev.dbx.test", "evil.test"))
	_, _, err = d.Fetch(t.Context())
	failure(t, err)
	if err := os.Remove(d.Path); err != nil {
		t.Fatal(err)
	}
	_, _, err = d.Fetch(t.Context())
	if f := failure(t, err); !errors.Is(f, os.ErrNotExist) {
		t.Errorf("failure %v", f)
	}
	// It is looked for before the first request, too.
	if got := strings.Join(reveal(d.Secrets()), " "); got != "dapi-dev-22bb dapi-dev-new" {
		t.Errorf("secrets %s", got)
	}
}

func TestMachine(t *testing.T) {
	s, calls := endpoints(t)
	at := "https://accounts.dbx.test/oidc/accounts/12-ab/v1/token"
	s.On(at, proxytest.TokenAnswer{Body: `{"access_token":"at-m2m","token_type":"Bearer","expires_in":3600}`})
	text := "[m2m]\nhost = https://accounts.dbx.test\naccount_id = 12-ab\nclient_id = cid-1\nclient_secret = sec-m2m\n"
	d := profileOf(t, calls, "m2m", text)
	if got := reveal(d.Secrets()); len(got) != 1 || got[0] != "sec-m2m" {
		t.Errorf("secrets at the start %q", got)
	}
	v, expires, err := d.Fetch(t.Context())
	if err != nil || string(v.Reveal()) != "at-m2m" || !expires.Equal(noon.Add(time.Hour-time.Minute)) {
		t.Errorf("got %q, %v, %v", v.Reveal(), expires, err)
	}
	asked := s.Asked("")
	if len(asked) != 1 || asked[0].Header.Get("Authorization") != basic("cid-1", "sec-m2m") || asked[0].Body != "grant_type=client_credentials&scope=all-apis" {
		t.Errorf("asked %+v", asked)
	}
	write(t, d, strings.ReplaceAll(text, "sec-m2m", "sec-new"))
	s.On(at, proxytest.TokenAnswer{Status: 401, Body: `{"error":"invalid_client"}`})
	_, _, err = d.Fetch(t.Context())
	if f := failure(t, err); f.Error() != "asking accounts.dbx.test for a token: status 401, invalid_client" ||
		f.Detail() != "The token endpoint refused the broker with status 401, invalid_client." {
		t.Errorf("failure %v, %q", f, f.Detail())
	}
	if got := strings.Join(reveal(d.Secrets()), " "); got != "sec-m2m sec-new" {
		t.Errorf("secrets %s", got)
	}
}

func TestTool(t *testing.T) {
	for _, c := range []struct {
		out  string
		life time.Duration // as it is told on; 0 for no end, -1 for an error
	}{
		{`{"access_token":"at-cli","token_type":"Bearer","expiry":"2026-12-01T13:00:00.123456789Z"}` + "\n", time.Hour + 123456789 - time.Minute},
		{`{"access_token":"at-cli","expiry":"2026-12-01T15:01:30+03:00"}`, 45 * time.Second},
		{`{"access_token":"at-cli"}`, 0},
		{`{"access_token":"at-cli","expiry":"0001-01-01T00:00:00Z"}`, 0},
		{`{"access_token":"at-cli","expiry":"noon"}`, -1},
		{`{"access_token":"","expiry":"2026-12-01T13:00:00Z"}`, -1},
		{`Please log in: ` + known, -1},
	} {
		d := profileOf(t, Calls{Now: at(noon)}, "u2m", "[u2m]\nhost = https://dev.dbx.test\nauth_type = databricks-cli\n")
		d.Run = func(_ context.Context, argv []string) ([]byte, error) {
			if got := strings.Join(argv, " "); got != "databricks auth token --profile u2m" {
				t.Errorf("run %s", got)
			}
			return []byte(c.out), nil
		}
		v, expires, err := d.Fetch(t.Context())
		if c.life < 0 {
			if f := failure(t, err); strings.Contains(f.Error(), known) || !strings.HasPrefix(f.Error(), "having a token of Databricks: databricks auth token printed n") {
				t.Errorf("%s: %v", c.out, f)
			}
			continue
		}
		if err != nil || string(v.Reveal()) != "at-cli" || c.life == 0 != expires.IsZero() || c.life != 0 && expires.Sub(noon) != c.life {
			t.Errorf("%s: %q, %v, %v", c.out, v.Reveal(), expires, err)
		}
	}
	d := profileOf(t, Calls{Now: at(noon)}, "u2m", "[u2m]\nhost = https://dev.dbx.test\n")
	ended := errors.New("it ended with exit status 1")
	d.Run = func(context.Context, []string) ([]byte, error) { return nil, ended }
	_, _, err := d.Fetch(t.Context())
	if f := failure(t, err); !errors.Is(f, ended) {
		t.Errorf("failure %v", f)
	}
}
