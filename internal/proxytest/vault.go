package proxytest

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Vault stands in for the part of HashiCorp Vault's HTTP API that reads secrets
// of key-value engines. It is as strict as Vault: without the token, and outside
// the namespace, there is nothing; a secret of version 2 lies below data/ and
// that of version 1 does not; and an old one knows no sys/internal/ui/mounts.
type Vault struct {
	// URL is where it listens, on loopback.
	URL string

	mu     sync.Mutex
	state  VaultState
	seen   []string
	answer http.HandlerFunc
}

// VaultState is what a Vault holds.
type VaultState struct {
	Token     string
	Namespace string // "" for the root namespace
	// Mounts are engines: "kv" → 2.
	Mounts map[string]int
	// Secrets are fields by path, as `vault kv get` takes it: "kv/app". nil
	// fields are a secret that was deleted.
	Secrets map[string]map[string]any
	// Old Vaults do not say where their engines are.
	Old bool
}

// NewVault starts a Vault that ends with the test: of https, with a certificate
// of ca, or of http where ca is nil.
func NewVault(t testing.TB, ca *CA, state VaultState) *Vault {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for vault: %v", err)
	}
	v := &Vault{URL: "http://" + l.Addr().String(), state: state}
	// A client that does not like the certificate is a test's own affair.
	server := &http.Server{Handler: v, ErrorLog: log.New(io.Discard, "", 0)}
	var wait sync.WaitGroup
	if ca != nil {
		v.URL = "https://" + l.Addr().String()
		server.TLSConfig = ca.ServerConfig("127.0.0.1", "")
		wait.Go(func() { server.ServeTLS(l, "", "") })
	} else {
		wait.Go(func() { server.Serve(l) })
	}
	t.Cleanup(func() { server.Close(); wait.Wait() })
	return v
}

// Set changes what it holds.
func (v *Vault) Set(state VaultState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state = state
}

// Misbehave has every request answered by h; nil ends it.
func (v *Vault) Misbehave(h http.HandlerFunc) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answer = h
}

// Seen are the paths that were asked for, in order.
func (v *Vault) Seen() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.seen)
}

func (v *Vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	state, answer := v.state, v.answer
	v.seen = append(v.seen, r.URL.Path)
	v.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	at, ok := strings.CutPrefix(r.URL.Path, "/v1/")
	switch {
	case r.Method != http.MethodGet || !ok:
		vaultAnswer(w, http.StatusMethodNotAllowed, nil)
	case r.Header.Get("X-Vault-Token") != state.Token,
		strings.Trim(r.Header.Get("X-Vault-Namespace"), "/") != state.Namespace:
		vaultAnswer(w, http.StatusForbidden, nil)
	default:
		state.read(w, at)
	}
}

func (s VaultState) read(w http.ResponseWriter, at string) {
	if asked, ok := strings.CutPrefix(at, "sys/internal/ui/mounts/"); ok {
		mount, version := s.mount(asked)
		switch {
		case s.Old:
			vaultAnswer(w, http.StatusNotFound, nil)
		case version == 0:
			vaultAnswer(w, http.StatusForbidden, nil)
		default:
			vaultAnswer(w, http.StatusOK, map[string]any{
				"path": mount + "/", "type": "kv", "options": map[string]string{"version": strconv.Itoa(version)},
			})
		}
		return
	}
	mount, version := s.mount(at)
	if version == 2 {
		rest, ok := strings.CutPrefix(at, mount+"/data/")
		if !ok {
			vaultAnswer(w, http.StatusNotFound, nil)
			return
		}
		at = mount + "/" + rest
	}
	fields, ok := s.Secrets[at]
	switch {
	case !ok:
		vaultAnswer(w, http.StatusNotFound, nil)
	case version == 2:
		status := http.StatusOK
		if fields == nil {
			status = http.StatusNotFound // with metadata, for it was there
		}
		vaultAnswer(w, status, map[string]any{"data": fields, "metadata": map[string]any{"version": 3}})
	default:
		vaultAnswer(w, http.StatusOK, fields)
	}
}

// mount is the engine of a path, and its version; 0 if there is none.
func (s VaultState) mount(at string) (string, int) {
	for mount, version := range s.Mounts {
		if at == mount || strings.HasPrefix(at, mount+"/") {
			return mount, version
		}
	}
	return "", 0
}

func vaultAnswer(w http.ResponseWriter, status int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if data == nil {
		json.NewEncoder(w).Encode(map[string]any{"errors": []string{}})
		return
	}
	json.NewEncoder(w).Encode(map[string]any{"request_id": "5e0b", "lease_duration": 0, "data": data})
}
