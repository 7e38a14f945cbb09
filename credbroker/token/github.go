package token

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
)

// GitHub takes a signed claim that is at most ten minutes long and whose
// beginning has passed by its own clock.
const (
	claimBack = time.Minute
	claimLife = 9 * time.Minute
)

// GitHubApp mints installation tokens of a GitHub App. It is used by pointer.
type GitHubApp struct {
	Calls
	// API is the root of the REST API, as GitHubAPI gives it.
	API string
	// AppID and InstallationID are texts of digits.
	AppID, InstallationID string
	// Key reads the app's private key, RSA in PEM, of PKCS #1 or PKCS #8.
	Key Reader

	memory
}

// GitHubAPI is the root of the API that belongs to a host of GitHub: that of
// github.com for its own hosts, https://api.HOST for a tenant of ghe.com, and
// https://HOST/api/v3 for GitHub Enterprise Server.
func GitHubAPI(host string, port int) string {
	switch {
	case host == "github.com", strings.HasSuffix(host, ".github.com"):
		return "https://api.github.com"
	case strings.HasSuffix(host, ".ghe.com"):
		return "https://api." + strings.TrimPrefix(host, "api.")
	case port != 443:
		host = net.JoinHostPort(host, strconv.Itoa(port))
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return "https://" + host + "/api/v3"
}

// Open reads the key and looks whether it is one.
func (g *GitHubApp) Open(ctx context.Context) error {
	_, err := g.read(ctx)
	return err
}

// read asks the reader. Of a key both spellings are looked for in answers: the
// text as it stands, and the bytes that it encodes, whose base64 is found with
// its lines broken anywhere.
func (g *GitHubApp) read(ctx context.Context) (*rsa.PrivateKey, error) {
	v, err := g.Key(ctx)
	if err != nil {
		return nil, &Failure{Doing: "reading the key of the app", cause: err}
	}
	key, der, err := rsaKey(v.Reveal())
	if err != nil {
		return nil, &Failure{Doing: "reading the key of the app", Why: err.Error()}
	}
	g.add(v, secret.New(der))
	return key, nil
}

// rsaKey reads the first block of a PEM text. Its errors are fixed.
func rsaKey(text []byte) (*rsa.PrivateKey, []byte, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, errors.New("no private key in PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		if block.Headers["DEK-Info"] != "" {
			return nil, nil, errors.New("the key is encrypted")
		}
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		return nil, nil, errors.New("the key is encrypted")
	default:
		return nil, nil, errors.New("not a private key of RSA")
	}
	own, ok := key.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, nil, errors.New("not a private key of RSA")
	}
	return own, block.Bytes, nil
}

// Fetch mints a token and says when it ends. Every error is a *Failure.
func (g *GitHubApp) Fetch(ctx context.Context) (secret.Value, time.Time, error) {
	doing := "asking GitHub for a token"
	if u, err := url.Parse(g.API); err == nil {
		doing = "asking " + u.Host + " for a token"
	}
	key, err := g.read(ctx)
	if err != nil {
		return secret.Value{}, time.Time{}, err
	}
	claim, err := g.claim(key)
	if err != nil {
		return secret.Value{}, time.Time{}, &Failure{Doing: doing, Why: "signing with the key of the app failed"}
	}
	status, answer, err := g.post(ctx, doing, g.API+"/app/installations/"+url.PathEscape(g.InstallationID)+"/access_tokens", "",
		http.Header{"Authorization": {"Bearer " + claim}, "Accept": {"application/vnd.github+json"}})
	if err != nil {
		return secret.Value{}, time.Time{}, err
	}
	if !succeeded(status) {
		return secret.Value{}, time.Time{}, refused(doing, status)
	}
	token, expires, err := dated(answer, "token", "expires_at", true, g.Now())
	if err != nil {
		return secret.Value{}, time.Time{}, &Failure{Doing: doing, Status: status, Why: err.Error()}
	}
	return token, expires, nil
}

// claim is a JSON Web Token by RS256 (RFC 7519; RFC 7518, section 3.3) that
// says which app asks.
func (g *GitHubApp) claim(key *rsa.PrivateKey) (string, error) {
	now := g.Now()
	payload, err := json.Marshal(struct {
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
		Issuer  string `json:"iss"`
	}{now.Add(-claimBack).Unix(), now.Add(claimLife).Unix(), g.AppID})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
