package token

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/internal/proxytest"
)

// Every kind of token is a source that a Keeper can hold.
var _ = []source.Fetch{(&OAuth2{}).Fetch, (&GitHubApp{}).Fetch, (&Databricks{}).Fetch}

// At minute 61 a machine's token is made anew, once for all who call, and none
// is sent in the last minute of its hour; when it cannot be made, there is none.
func TestMinute61(t *testing.T) {
	s, calls := endpoints(t)
	var passed atomic.Int64
	calls.Now = func() time.Time { return noon.Add(time.Duration(passed.Load())) }
	at := "https://dev.dbx.test/oidc/v1/token"
	s.On(at, proxytest.TokenAnswer{Body: `{"access_token":"at-1","expires_in":3600}`},
		proxytest.TokenAnswer{Body: `{"access_token":"at-2","expires_in":3600}`},
		proxytest.TokenAnswer{Status: 503})
	d := profileOf(t, calls, "m2m", "[m2m]\nhost = dev.dbx.test\nclient_id = cid\nclient_secret = sec-m2m\n")
	k := source.NewKeeper(context.Background(), d.Fetch, 0, calls.Now)
	t.Cleanup(k.Close)
	for _, step := range []struct {
		at    time.Duration
		want  string
		asked int
	}{{0, "at-1", 1}, {58 * time.Minute, "at-1", 1}, {59 * time.Minute, "at-2", 2}, {61 * time.Minute, "at-2", 2}, {3 * time.Hour, "", 3}} {
		passed.Store(int64(step.at))
		var wait sync.WaitGroup
		for range 40 {
			wait.Go(func() {
				v, _, err := k.Get(t.Context())
				if step.want == "" {
					if !v.IsZero() || err == nil {
						t.Errorf("after %v: %q, %v", step.at, v.Reveal(), err)
					}
				} else if err != nil || !v.Equal(secret.New([]byte(step.want))) {
					t.Errorf("after %v: %q, %v", step.at, v.Reveal(), err)
				}
			})
		}
		wait.Wait()
		if n := len(s.Asked(at)); n != step.asked {
			t.Errorf("after %v: asked %d times, want %d", step.at, n, step.asked)
		}
	}
}
