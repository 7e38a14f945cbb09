package main

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// Secrets of a Vault and of token endpoints, that change while clients are at
// work: they are asked for once, however many requests wait, and a request that
// was refused is sent again where it has no body.
func TestCredClientsSources(t *testing.T) {
	credClients(t, func(t *testing.T, h *credHost) {
		const before, after, vaultToken = "tok-before-7Qm4x9Zr2Lp8", "tok-after-Kd03nWq81xYt", "hvs.Zk31vT0pW5aa9Kd2x7Qm4"
		var now atomic.Value
		now.Store(before)
		api := &wants{at: "Authorization", login: bearer, secret: func() string { return now.Load().(string) }}
		h.services["api.test"] = api
		state := func(secret string) proxytest.VaultState {
			return proxytest.VaultState{Token: vaultToken, Namespace: "team", Mounts: map[string]int{"kv": 2}, Secrets: map[string]map[string]any{"kv/app": {"token": secret, "other": "x"}}}
		}
		vault := proxytest.NewVault(t, nil, state(before))
		h.services["vault.test"] = vault
		tokens := proxytest.NewTokens(t, h.ca)
		h.services["login.test"] = tokens
		reads := func() (n int) {
			for _, path := range vault.Seen() {
				if path == "/v1/kv/data/app" {
					n++
				}
			}
			return n
		}
		var rotate atomic.Value
		h.services["admin.test"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { rotate.Load().(func())() })
		c := credClient{rules: []any{"* api.test/**", "GET admin.test/"}, hosts: []string{"api.test", "admin.test", "vault.test", "login.test"},
			secrets: []string{before, after, vaultToken, "refresh-one-9Kd2x7Qm4", "refresh-two-Zk31vT0pW5", "client-Kd03nWq81xYt", "tok-minted-7Qm4x9Zr"}}
		const eight = "curl -sS -Z " + `https://api.test/1 https://api.test/2 https://api.test/3 https://api.test/4 https://api.test/5 https://api.test/6 https://api.test/7 https://api.test/8`
		old := func() []string {
			api.mu.Lock()
			defer api.mu.Unlock()
			list := slices.Compact(slices.Clone(api.foreign))
			api.foreign = nil
			return list
		}

		entry := func(more map[string]any) []map[string]any {
			more["id"], more["target"], more["env"] = "api", "api.test", "TOKEN"
			return []map[string]any{more}
		}
		rotate.Store(func() { vault.Set(state(after)); now.Store(after) })
		c.name, c.entries = "vault", entry(map[string]any{"type": "https_bearer", "source": map[string]any{"vault": map[string]any{"namespace": "team", "path": "kv/app", "field": "token"}}})
		c.env, c.files = map[string]string{"VAULT_ADDR": "https://vault.test"}, map[string]string{"~/.vault-token": vaultToken + "\n"}
		c.run = `curl -sS https://api.test/ && curl -sS https://admin.test/ && ` + eight + ` && curl -sS -d a=b -H "Authorization: Bearer $TOKEN" https://api.test/
curl -sS -m 2 https://vault.test/v1/kv/data/app | grep -o '"code":"[a-z_]*"'`
		c.want = strings.Repeat(shown, 10) + `"code":"no_rule"` + "\n"
		h.try(t, c)
		if list := old(); !slices.Equal(list, []string{bearer(before)}) || reads() != 2 {
			t.Errorf("vault: the old secret is no more than refused, but %q came; %d reads of the secret, not 2", list, reads())
		}
		api.settle(t, 10, 0)

		// A request with a body is not sent twice: its client hears of the refusal,
		// and the next one has the new secret.
		vault.Set(state(before))
		now.Store(before)
		c.name, c.want = "a body", "401 200"
		c.run = `curl -sS https://admin.test/; printf '%s ' $(curl -sS -o /dev/null -w '%{http_code}' -d a=b https://api.test/); printf %s $(curl -sS -o /dev/null -w '%{http_code}' -d a=b https://api.test/)`
		h.try(t, c)
		if list := old(); !slices.Equal(list, []string{bearer(before)}) {
			t.Errorf("a body: %q came", list)
		}
		api.settle(t, 1, 0)

		// Tokens that end: another is fetched before, with the refresh token that the
		// one before brought.
		now.Store("tok-minted-7Qm4x9Zr")
		tokens.On("https://login.test/token",
			proxytest.TokenAnswer{Body: `{"access_token":"tok-minted-7Qm4x9Zr","token_type":"bearer","expires_in":2,"refresh_token":"refresh-two-Zk31vT0pW5"}`},
			proxytest.TokenAnswer{Body: `{"access_token":"tok-minted-7Qm4x9Zr-2","token_type":"bearer","expires_in":3600}`})
		rotate.Store(func() { now.Store("tok-minted-7Qm4x9Zr-2") })
		c.name, c.entries = "oauth2", entry(map[string]any{"type": "oauth2", "token_url": "https://login.test/token", "client_id": "app", "grant": "refresh_token",
			"source": map[string]any{"env": "REFRESH"}, "client_secret": map[string]any{"env": "CLIENT"}})
		c.env = map[string]string{"REFRESH": "refresh-one-9Kd2x7Qm4", "CLIENT": "client-Kd03nWq81xYt"}
		c.run, c.want = `curl -sS https://api.test/ && sleep 2.1 && curl -sS https://admin.test/ && `+eight, strings.Repeat(shown, 9)
		h.try(t, c)
		api.settle(t, 9, 0)
		var with []string
		for _, r := range tokens.Asked("https://login.test/token") {
			with = append(with, r.Form().Get("refresh_token"))
		}
		if !slices.Equal(with, []string{"refresh-one-9Kd2x7Qm4", "refresh-two-Zk31vT0pW5"}) {
			t.Errorf("oauth2: tokens were asked for with %q", with)
		}

		// A source that fails is told of in fixed words.
		tokens.On("https://login.test/token", proxytest.TokenAnswer{Status: 400, Body: `{"error":"invalid_grant","error_description":"` + url.QueryEscape("client-Kd03nWq81xYt") + `"}`})
		c.name, c.run, c.want = "no token", `curl -sS -w ' %{http_code}\n' https://api.test/ | grep -o '"code":"[a-z_]*"\| [0-9]*$'`, "\"code\":\"credential_unavailable\"\n 502\n"
		h.try(t, c)
		api.settle(t, 0, 0)
	})
}
