package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// vault reads a field of a secret of a key-value engine, version 1 or 2, as
// `vault kv get -field=F PATH` does: it first asks where the engine is mounted
// and of which version it is. VAULT_ADDR, VAULT_TOKEN and VAULT_NAMESPACE are
// honoured where the source names no other; VAULT_CACERT and VAULT_SKIP_VERIFY
// are not: a Vault is verified like every origin, by upstream.ca_files.
func (c Config) vault(ctx context.Context, v Vault) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	base, err := vaultURL(first(v.Address, c.getenv("VAULT_ADDR")))
	if err != nil {
		return nil, err
	}
	token, err := c.vaultToken()
	if err != nil {
		return nil, err
	}
	head := http.Header{"X-Vault-Request": {"true"}, "X-Vault-Token": {token}, "User-Agent": {"egressd"}}
	if ns := strings.Trim(first(v.Namespace, c.getenv("VAULT_NAMESPACE")), "/"); ns != "" {
		head.Set("X-Vault-Namespace", ns+"/")
	}
	at := path.Clean("/" + v.Path)[1:]
	if at == "" {
		return nil, errors.New("its path is empty")
	}

	// A Vault that does not know the question has engines of version 1 only.
	var mount struct {
		Path    string
		Options struct{ Version string }
	}
	status, err := c.askVault(ctx, below(base, "sys/internal/ui/mounts/"+at), head, &mount)
	if err != nil && status != http.StatusNotFound {
		return nil, err
	}
	var fields map[string]any
	if err != nil || mount.Options.Version != "2" {
		_, err = c.askVault(ctx, below(base, at), head, &fields)
	} else {
		var whole struct{ Data map[string]any }
		if at, err = underData(at, mount.Path); err != nil {
			return nil, err
		}
		_, err = c.askVault(ctx, below(base, at), head, &whole)
		fields = whole.Data
	}
	if err != nil {
		return nil, err
	}
	switch field := fields[v.Field].(type) {
	case string:
		return []byte(field), nil
	case json.Number:
		return []byte(field), nil
	case nil:
		return nil, errors.New("the secret has no such field")
	}
	return nil, errors.New("the field is neither text nor a number")
}

// below is the URL of a path of Vault's API, whatever letters are in it.
func below(base *url.URL, path string) *url.URL {
	u := *base
	u.Path, u.RawPath = strings.TrimRight(base.Path, "/")+"/v1/"+path, ""
	return &u
}

// askVault makes one request, and reads the member data of its answer. The
// error holds nothing that the Vault said, but the status.
func (c Config) askVault(ctx context.Context, u *url.URL, head http.Header, data any) (int, error) {
	if c.Transport == nil {
		return 0, errors.New("no calls can be made here")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, errVaultURL
	}
	req.Header = head.Clone()
	// RoundTrip and not a Client: it follows no redirect, which would carry the
	// token elsewhere.
	res, err := c.Transport.RoundTrip(req)
	switch {
	case ctx.Err() != nil && err != nil:
		return 0, context.Cause(ctx)
	case err != nil:
		return 0, callError(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return res.StatusCode, vaultStatus(res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 2*maxSecret+1))
	switch {
	case ctx.Err() != nil && err != nil:
		return 0, context.Cause(ctx)
	case err != nil:
		return 0, errors.New("the Vault's answer broke off")
	case len(body) > 2*maxSecret:
		return 0, fmt.Errorf("the Vault's answer is longer than %d MiB", 2*maxSecret>>20)
	}
	answer := struct{ Data any }{data}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if dec.Decode(&answer) != nil {
		return 0, errors.New("the Vault's answer is not what a Vault answers")
	}
	return res.StatusCode, nil
}

// vaultStatus says what a status of the Vault means to the user.
func vaultStatus(status int) error {
	why := ""
	switch {
	case status/100 == 3:
		why = ": it sends elsewhere, which is not followed"
	case status == http.StatusBadRequest:
		why = ": it does not take the path or the namespace"
	case status == http.StatusForbidden:
		why = ": its token may not read this, or is not valid any more"
	case status == http.StatusNotFound:
		why = ": there is nothing, or it was deleted"
	case status == http.StatusServiceUnavailable:
		why = ": it is sealed or not ready"
	}
	return fmt.Errorf("the Vault answered with status %d%s", status, why)
}

// underData is the path that reads the newest version: data/ is put behind the
// mount, whose path may begin with a namespace that the secret's path leaves
// out.
func underData(at, mount string) (string, error) {
	mount = strings.Trim(mount, "/")
	for mount != "" {
		if rest, ok := strings.CutPrefix(at+"/", mount+"/"); ok {
			return path.Join(mount, "data", rest), nil
		}
		_, mount, _ = strings.Cut(mount, "/")
	}
	return "", errors.New("the Vault names another place as its engine")
}

var (
	errNoVault  = errors.New("no Vault is named: write address, or set VAULT_ADDR")
	errVaultURL = errors.New("the Vault's address, or VAULT_ADDR, must be a URL of https, or of http on this machine")
)

// vaultURL parses the address. The token travels, so it is https, but for the
// agent or the development server on loopback.
func vaultURL(address string) (*url.URL, error) {
	if address == "" {
		return nil, errNoVault
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errVaultURL
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	if u.Scheme != "https" && !(u.Scheme == "http" && (ip.IsLoopback() || u.Hostname() == "localhost")) {
		return nil, errVaultURL
	}
	return u, nil
}

// vaultToken is VAULT_TOKEN, else what `vault login` left in ~/.vault-token.
func (c Config) vaultToken() (string, error) {
	raw, where := []byte(c.getenv("VAULT_TOKEN")), "VAULT_TOKEN"
	if len(raw) == 0 {
		var err error
		where = "~/.vault-token"
		if raw, err = c.file(where); err != nil {
			return "", fmt.Errorf("VAULT_TOKEN is not set, and %s could not be read: %w", where, err)
		}
	}
	token, err := check(raw, Options{})
	if err != nil {
		return "", fmt.Errorf("%s is no token: %w", where, err)
	}
	return string(token.Reveal()), nil
}

func first(s, other string) string {
	if s != "" {
		return s
	}
	return other
}
