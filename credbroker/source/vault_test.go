package source_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/internal/proxytest"
)

var kv = proxytest.VaultState{
	Token:  "hvs.93kd",
	Mounts: map[string]int{"kv": 2, "secret": 1, "deep/er": 2},
	Secrets: map[string]map[string]any{
		"kv/app":        {"token": " tok-two-hush\n", "port": 5432, "big": 12345678901234567890.0, "on": true, "none": nil, "list": []string{"hush"}, "blank": ""},
		"kv/a b/ü?%41#": {"token": "odd"},
		"kv/gone":       nil,
		"secret/app":    {"token": "tok-one-hush", "data": "not wrapped"},
		"deep/er/app":   {"token": "tok-deep"},
		"deep/er/data":  {"token": "named data"},
	},
}

// vaultAt is a Config that knows a Vault by its variables.
func vaultAt(t *testing.T, v *proxytest.Vault, ca *proxytest.CA, env map[string]string) source.Config {
	all := map[string]string{"VAULT_ADDR": v.URL, "VAULT_TOKEN": kv.Token}
	for name, value := range env {
		all[name] = value
	}
	cfg := at(t, all)
	transport := &http.Transport{}
	if ca != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: ca.Pool()}
	}
	t.Cleanup(transport.CloseIdleConnections)
	cfg.Transport = transport
	return cfg
}

func vault(path, field string) source.Source {
	return source.Source{Vault: &source.Vault{Path: path, Field: field}}
}

func TestVault(t *testing.T) {
	ca := proxytest.NewCA(t)
	v := proxytest.NewVault(t, ca, kv)
	cfg := vaultAt(t, v, ca, nil)
	for _, c := range []struct {
		path, field, want string
		has               []string
	}{
		{"kv/app", "token", "tok-two-hush", nil},
		{"/kv/app/", "token", "tok-two-hush", nil},
		{"kv//x/../app", "token", "tok-two-hush", nil},
		{"kv/a b/ü?%41#", "token", "odd", nil},
		{"secret/app", "token", "tok-one-hush", nil},
		{"secret/app", "data", "not wrapped", nil},
		{"deep/er/app", "token", "tok-deep", nil},
		{"deep/er/data", "token", "named data", nil},
		{"kv/app", "port", "5432", nil},
		{"kv/app", "big", "12345678901234567000", nil},
		{"kv/app", "Token", "", []string{`field "Token" of Vault secret "kv/app"`, "no such field"}},
		{"kv/app", "none", "", []string{"no such field"}},
		{"kv/app", "on", "", []string{"neither text nor a number"}},
		{"kv/app", "list", "", []string{"neither text nor a number"}},
		{"kv/app", "blank", "", []string{"empty"}},
		{"kv/none", "token", "", []string{"status 404", "nothing"}},
		{"kv/gone", "token", "", []string{"status 404", "deleted"}},
		{"secret/none", "token", "", []string{"status 404"}},
		{"other/app", "token", "", []string{"status 403", "may not read"}},
		{"..", "token", "", []string{"path is empty"}},
	} {
		t.Run(c.path+" "+c.field, func(t *testing.T) {
			read(t, cfg, vault(c.path, c.field), source.Options{}, c.want, c.has...)
		})
	}
}

// An old Vault does not say where its engines are: they are of version 1.
func TestVaultOld(t *testing.T) {
	state := kv
	state.Old = true
	v := proxytest.NewVault(t, nil, state)
	cfg := vaultAt(t, v, nil, nil)
	read(t, cfg, vault("secret/app", "token"), source.Options{}, "tok-one-hush")
	if got, want := v.Seen(), []string{"/v1/sys/internal/ui/mounts/secret/app", "/v1/secret/app"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q", got)
	}
}

func TestVaultNamespace(t *testing.T) {
	state := kv
	state.Namespace = "team/a"
	v := proxytest.NewVault(t, nil, state)
	src := vault("kv/app", "token")
	read(t, vaultAt(t, v, nil, nil), src, source.Options{}, "", "status 403")
	read(t, vaultAt(t, v, nil, map[string]string{"VAULT_NAMESPACE": "team/a/"}), src, source.Options{}, "tok-two-hush")
	src.Vault.Namespace = "/team/a"
	read(t, vaultAt(t, v, nil, map[string]string{"VAULT_NAMESPACE": "other"}), src, source.Options{}, "tok-two-hush")
}

func TestVaultToken(t *testing.T) {
	v := proxytest.NewVault(t, nil, kv)
	none := map[string]string{"VAULT_TOKEN": ""}
	src := vault("kv/app", "token")
	read(t, vaultAt(t, v, nil, none), src, source.Options{}, "", "VAULT_TOKEN is not set", "~/.vault-token", "no such file")
	cfg := vaultAt(t, v, nil, none)
	write(t, cfg.Home+"/.vault-token", kv.Token+"\n", 0o600)
	read(t, cfg, src, source.Options{}, "tok-two-hush")
	write(t, cfg.Home+"/.vault-token", "\n", 0o600)
	read(t, cfg, src, source.Options{}, "", "~/.vault-token is no token", "empty")
	read(t, vaultAt(t, v, nil, map[string]string{"VAULT_TOKEN": "hush\nX-Evil: 93kd"}), src, source.Options{}, "", "VAULT_TOKEN is no token", "line break")
	read(t, vaultAt(t, v, nil, map[string]string{"VAULT_TOKEN": "old-93kd"}), src, source.Options{}, "", "status 403")
}

func TestVaultAddress(t *testing.T) {
	ca := proxytest.NewCA(t)
	v := proxytest.NewVault(t, ca, kv)
	src := vault("kv/app", "token")
	src.Vault.Address = v.URL + "/"
	read(t, vaultAt(t, v, ca, map[string]string{"VAULT_ADDR": "https://other.test"}), src, source.Options{}, "tok-two-hush")
	for _, address := range []string{"", "vault.test", "http://vault.test:8200", "http://10.0.0.1", "unix:///run/vault", "https://hush:93kd@vault.test", "https://", "https://vault.test/?x", "::"} {
		src := vault("kv/app", "token")
		t.Run(address, func(t *testing.T) {
			cfg := vaultAt(t, v, ca, map[string]string{"VAULT_ADDR": address})
			want := "must be a URL of https"
			if address == "" {
				want = "no Vault is named: write address, or set VAULT_ADDR"
			}
			read(t, cfg, src, source.Options{}, "", want)
		})
	}
}

// Whatever a Vault does, an error quotes nothing of it, and the token goes
// nowhere else.
func TestVaultMisbehaves(t *testing.T) {
	v := proxytest.NewVault(t, nil, kv)
	other := proxytest.NewVault(t, nil, kv)
	for _, c := range []struct {
		name, has string
		h         http.HandlerFunc
	}{
		{"redirect", "status 307: it sends elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}},
		{"sealed", "status 503", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "hush", http.StatusServiceUnavailable) }},
		{"odd status", "status 418", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "hush", http.StatusTeapot) }},
		{"no content", "status 204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }},
		{"echo", "status 400", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("X-Vault-Token"), http.StatusBadRequest)
		}},
		{"not JSON", "not what a Vault answers", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<hush>") }},
		{"other JSON", "not what a Vault answers", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"data":"hush"}`) }},
		{"too long", "longer than 2 MiB", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"data":{"x":%q}}`, strings.Repeat("hush", 1<<20))
		}},
		{"another engine", "another place", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"data":{"path":"hush/","options":{"version":"2"}}}`)
		}},
		{"breaks off", "broke off", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"data":`)
		}},
		{"breaks", "no connection, or no answer", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }},
		{"malformed head", "no connection, or no answer", func(w http.ResponseWriter, r *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nhush 93kd\r\n\r\n")
			c.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v.Misbehave(c.h)
			read(t, vaultAt(t, v, nil, nil), vault("kv/app", "token"), source.Options{}, "", c.has)
		})
	}
	if seen := other.Seen(); len(seen) > 0 {
		t.Errorf("a redirect was followed: %q", seen)
	}
}

// denied is a transport's refusal.
type denied struct{}

func (denied) Error() string  { return "hush" }
func (denied) Reason() string { return "address_denied" }

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestVaultUnreached(t *testing.T) {
	ca := proxytest.NewCA(t)
	v := proxytest.NewVault(t, ca, kv)
	src := vault("kv/app", "token")
	t.Run("unknown authority", func(t *testing.T) {
		// Verification cannot be turned off by a variable.
		cfg := vaultAt(t, v, proxytest.NewCA(t), map[string]string{"VAULT_SKIP_VERIFY": "true", "VAULT_CACERT": ca.File(t)})
		read(t, cfg, src, source.Options{}, "", "not signed by a known authority")
	})
	for _, c := range []struct {
		name string
		err  error
		has  string
	}{
		{"denied", denied{}, "the call was refused: address_denied"},
		{"no name", &net.DNSError{Err: "hush", Name: "hush"}, "name was not found"},
		{"late", context.DeadlineExceeded, "did not end within 30s"},
		{"other", errors.New("hush"), "no connection, or no answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := vaultAt(t, v, ca, nil)
			cfg.Transport = trip(func(*http.Request) (*http.Response, error) { return nil, c.err })
			read(t, cfg, src, source.Options{}, "", c.has)
		})
	}
	t.Run("refused", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		read(t, vaultAt(t, v, ca, map[string]string{"VAULT_ADDR": "https://" + l.Addr().String()}), src, source.Options{}, "", "refused the connection")
	})
	t.Run("cancelled", func(t *testing.T) {
		v.Misbehave(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := source.Read(ctx, vaultAt(t, v, ca, nil), src, source.Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}
