package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// gitHubReleases is the part of a fake GitHub that keeps releases, and makes the
// tokens of an app. Files are kept at another host, as at GitHub: whoever is led
// there must not bring the token along.
type gitHubReleases struct {
	*fakeGitHub
	key *rsa.PublicKey

	mu      sync.Mutex
	files   map[string][]byte
	minted  int
	strange []string // logins at the host of files
}

func (g *gitHubReleases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api, uploads, path := "https://api.github.com", "https://uploads.github.com", r.URL.Path
	if r.Host == "ghe.test" {
		api, uploads = "https://ghe.test/api/v3", "https://ghe.test/api/uploads"
		path = strings.TrimPrefix(strings.TrimPrefix(path, "/api/v3"), "/api/uploads")
	}
	const releases = "/repos/o/private/releases"
	rest, ours := strings.CutPrefix(path, releases)
	switch {
	case strings.HasPrefix(path, "/storage/"):
		g.mu.Lock()
		defer g.mu.Unlock()
		if login := r.Header.Get("Authorization"); login != "" && r.Host == "files.test" {
			g.strange = append(g.strange, login)
		}
		_, _ = w.Write(g.files[strings.TrimPrefix(path, "/storage/")])
	case path == "/app/installations/67890/access_tokens":
		g.mint(w, r)
	case ours && r.Header.Get("Authorization") != "token "+gitHubToken:
		http.Error(w, `{"message":"Requires authentication"}`, http.StatusUnauthorized)
	case strings.HasSuffix(path, "/graphql") && strings.Contains(query(r), "RepositoryReleaseByTag"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":{"repository":{"release":null}}}`) // for drafts
	case rest == "/tags/v1":
		g.mu.Lock()
		defer g.mu.Unlock()
		assets := []map[string]any{}
		for name, data := range g.files {
			assets = append(assets, map[string]any{"name": name, "size": len(data), "state": "uploaded", "url": api + releases + "/assets/" + name})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"id": 1, "tag_name": "v1", "url": api + releases + "/1", "assets": assets,
			"upload_url": uploads + releases + "/1/assets{?name,label}", "body": "made with " + gitHubToken})
	case rest == "/1/assets" && r.Method == http.MethodPost:
		data, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(data)) {
			http.Error(w, `{"message":"Bad Size"}`, http.StatusBadRequest)
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.files[r.URL.Query().Get("name")] = data
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"name":%q,"state":"uploaded"}`, r.URL.Query().Get("name"))
	case strings.HasPrefix(rest, "/assets/"):
		host := "files.test"
		if r.Host == "ghe.test" && rest != "/assets/far.txt" {
			host = r.Host
		}
		http.Redirect(w, r, "https://"+host+"/storage/"+strings.TrimPrefix(rest, "/assets/"), http.StatusFound)
	default:
		g.fakeGitHub.ServeHTTP(w, r)
	}
}

// query reads the body of a request, and leaves it there.
func query(r *http.Request) string {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	return string(data)
}

// mint answers to a claim that is signed with the app's key.
func (g *gitHubReleases) mint(w http.ResponseWriter, r *http.Request) {
	claim, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	i := strings.LastIndexByte(claim, '.')
	signature, err := base64.RawURLEncoding.DecodeString(claim[i+1:])
	sum := sha256.Sum256([]byte(claim[:max(i, 0)]))
	if err != nil || rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], signature) != nil {
		http.Error(w, `{"message":"A JSON web token could not be decoded"}`, http.StatusUnauthorized)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.minted++
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"token":"`+gitHubToken+`","expires_at":"2999-01-01T00:00:00Z"}`)
}

// gh puts files on a release and gets them back from the host that it is led to,
// at github.com and at a host of one's own, with a token and with an app's. The
// token of a host of one's own gh sends to whatever other host it is led to: the
// placeholder goes no further than egressd.
func TestCredClientsGitHub(t *testing.T) {
	credClients(t, func(t *testing.T, h *credHost) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
		g := &gitHubReleases{fakeGitHub: &fakeGitHub{}, key: &key.PublicKey, files: map[string][]byte{}}
		c := credClient{rules: []any{"* github.com/**", "* *.github.com/**", "* ghe.test/**", "GET files.test/**"}, env: map[string]string{"REAL": gitHubToken},
			files: map[string]string{"~/app.pem": text}, secrets: []string{gitHubToken, text[100:160]},
			hosts: []string{"github.com", "api.github.com", "uploads.github.com", "ghe.test", "files.test"}}
		for _, host := range c.hosts {
			h.services[host] = g
		}
		h.gitRepository(t)
		for _, x := range []struct {
			name, host, far string
			entry           map[string]any
		}{
			{"token", "github.com", "there", map[string]any{"type": "gh_basic", "source": map[string]any{"env": "REAL"}}},
			{"enterprise", "ghe.test", "refused", map[string]any{"type": "gh_basic", "target": "ghe.test", "source": map[string]any{"env": "REAL"}}},
			{"app", "github.com", "there", map[string]any{"type": "github_app", "app_id": "12345", "installation_id": "67890", "source": map[string]any{"file": "~/app.pem"}}},
			{"app of enterprise", "ghe.test", "refused", map[string]any{"type": "github_app", "target": "ghe.test", "app_id": "12345", "installation_id": "67890", "source": map[string]any{"file": "~/app.pem"}}},
		} {
			clear(g.files)
			g.minted = 0
			c.name, c.entries = x.name, []map[string]any{x.entry}
			c.want = "ann\nmade with KEY\n0\n0\n" + x.far + "\nhello\nhello\n"
			c.run = strings.ReplaceAll(`set -e; exec 2>&1; cd /tmp; head -c 3000000 /dev/urandom >big.bin; echo notes >notes.txt
gh api user --jq .login
gh api repos/o/private/releases/tags/v1 --jq .body
gh release upload v1 big.bin notes.txt --repo HOST/o/private
gh release download v1 --repo HOST/o/private --dir back
cmp big.bin back/big.bin; echo $?; cmp notes.txt back/notes.txt; echo $?
echo far >far.txt; gh release upload v1 far.txt --repo HOST/o/private
gh release download v1 --pattern far.txt --repo HOST/o/private --dir far 2>far.err && echo there || { grep -q 'HTTP 403' far.err && echo refused; }
gh repo clone HOST/o/private one -- -q; cat one/README
git -c credential.helper='!gh auth git-credential' clone -q https://HOST/o/private two; cat two/README
rm -rf /tmp/*`, "HOST", x.host)
			h.try(t, c)
			if app := x.entry["type"] == "github_app"; app != (g.minted == 1) {
				t.Errorf("%s: %d tokens were made", x.name, g.minted)
			}
		}
		if len(g.strange)+len(g.foreign) > 0 {
			t.Errorf("the host of files got %q, and a login that is not the real one came to %q", g.strange, g.foreign)
		}
	})
}
