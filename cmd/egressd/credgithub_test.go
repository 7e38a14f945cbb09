package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

const gitHubToken = "ghp_Zk31vT0pW5aaQq9Kd2x7Qm4x9Zr2Lp8aaBB"

// fakeGitHub is as much of GitHub, and of a GitHub Enterprise host, as gh and
// git ask for. Nobody gets anything without the real token.
type fakeGitHub struct {
	mu      sync.Mutex
	foreign []string // logins that are not the real one
}

func (g *fakeGitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	login := r.Header.Get("Authorization")
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	api := r.Host == "api.github.com" || path != r.URL.Path || strings.HasPrefix(path, "/api/")
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+gitHubToken))
	if api {
		want = "token " + gitHubToken
	}
	if login != want {
		// git sends the user of a URL ahead, without a password.
		if login != "" && login != "Basic "+base64.StdEncoding.EncodeToString([]byte("x-access-token:")) {
			g.mu.Lock()
			g.foreign = append(g.foreign, r.Host+r.URL.Path)
			g.mu.Unlock()
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, `{"message":"Requires authentication"}`, http.StatusUnauthorized)
		return
	}
	switch {
	case !api:
		r.TransferEncoding = nil // the program reads to the end of a body
		(&cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Stderr: io.Discard, Env: []string{
			"GIT_PROJECT_ROOT=/srv/git", "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann", "HOME=/srv",
			"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=http.receivepack", "GIT_CONFIG_VALUE_1=true",
		}}).ServeHTTP(w, r)
	case strings.HasSuffix(path, "/graphql"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":{"viewer":{"login":"ann"},"PullRequest":{"fields":[]},"StatusCheckRollupContextConnection":{"fields":[]},"repository":{
"id":"R1","name":"private","owner":{"login":"o"},"hasIssuesEnabled":true,"description":"","hasWikiEnabled":false,"viewerPermission":"WRITE",
"defaultBranchRef":{"name":"main"},"parent":null,"mergeCommitAllowed":true,"rebaseMergeAllowed":true,"squashMergeAllowed":true,
"pullRequests":{"totalCount":1,"pageInfo":{"hasNextPage":false},"nodes":[{"number":7,"title":"Seven","state":"OPEN","url":"https://x","headRefName":"seven",
"headRepositoryOwner":{"login":"o"},"isCrossRepository":false,"isDraft":false,"createdAt":"2026-01-01T00:00:00Z"}]}}}}`)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Oauth-Scopes", "repo, read:org, gist")
		_, _ = io.WriteString(w, `{"login":"ann","name":"Ann"}`)
	}
}

// gh and git work with a placeholder, on github.com and on a host of one's own,
// whether the secret is attached or only swapped in; ssh spellings too. Nothing
// prompts, and gh needs no file.
func TestGitHubClients(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"gh", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is needed: install the package %[1]s", program)
		}
	}
	proxytest.Namespaced(t, func(t *testing.T, dir string) {
		h := newSandboxHost(t)
		fake := &fakeGitHub{}
		origin := h.serve(t, &http.Server{Handler: fake, TLSConfig: h.ca.ServerConfig("github.com", "", "h2", "http/1.1")})
		h.gitRepository(t)
		const program = `set -e
gh api user --jq .login
gh auth status 2>&1 | grep -c 'Logged in to'
gh repo clone HOST/o/private one -- -q
cd one && cat README
gh pr list --json number,title
echo more >>README && git commit -qam more && git push -q origin HEAD:ATTEMPT
git remote set-url origin git@HOST:o/private.git && git fetch -q && git ls-remote -q origin ATTEMPT | wc -l
cd .. && git clone -q ssh://git@HOST/o/private two && cat two/README
git clone -q https://x-access-token@HOST/o/private three && cat three/README
git clone -q https://HOST/o/missing 2>/dev/null || echo no prompt
`
		const want = "ann\n1\nhello\n[{\"number\":7,\"title\":\"Seven\"}]\n1\nhello\nhello\nno prompt\n"
		for i, x := range []struct {
			host   string
			inject string
		}{{"github.com", "missing"}, {"github.com", "placeholder"}, {"ghe.test", "missing"}, {"ghe.test", "placeholder"}} {
			t.Run(x.host+" "+x.inject, func(t *testing.T) {
				home := fmt.Sprintf("/home/gh%d", i)
				entry := map[string]any{"id": "gh", "type": "gh_basic", "source": map[string]any{"env": "REAL"}, "inject": x.inject}
				if x.host != "github.com" {
					entry["target"] = x.host
				}
				h.layOut(t, home, insideCase{ID: fmt.Sprintf("gh%d", i), Rules: []any{"* *.github.com/**", "* " + x.host + "/**"}, Entries: []map[string]any{entry},
					Sandbox: map[string]any{"write_paths": []string{"."}, "on_leak": "kill", "cwd_allow_hidden": []string{".git"}}})
				h.lead(t, fmt.Sprintf("/srv/gh%d/policy.yaml", i), origin, "github.com", "api.github.com", x.host)
				c := insideCase{ID: fmt.Sprintf("gh%d", i)}
				c.Sources.Env = map[string]string{"REAL": gitHubToken}
				if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\nname = Ann\nemail = ann@x.test\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				line := strings.NewReplacer("HOST", x.host, "ATTEMPT", fmt.Sprintf("try%d", i)).Replace(program)
				out, errs, code := h.runAnn(t, home, c, line)
				if out != want || code != 0 {
					t.Errorf("%d, stdout %q, stderr %s", code, out, errs)
				}
				if strings.Contains(out+errs+records(t, home), gitHubToken) {
					t.Error("the token is shown or recorded")
				}
			})
		}
		fake.mu.Lock()
		defer fake.mu.Unlock()
		if len(fake.foreign) > 0 {
			t.Errorf("a login that is not the real one came to %q", fake.foreign)
		}
	})
}

// gitRepository makes a repository with one commit for the fake.
func (h *sandboxHost) gitRepository(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `mkdir -p /srv/git/o && cd /srv/git && git init -q --bare -b main o/private.git && git clone -q o/private.git seed 2>/dev/null && cd seed &&
echo hello >README && git add README && git -c user.name=s -c user.email=s@x.test commit -qm one && git push -q origin HEAD:main && cp -r ../o/private.git ../o/private`)
	cmd.Env = []string{"HOME=/srv", "PATH=/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making the repository: %v\n%s", err, out)
	}
}

// lead makes the hosts of a policy lead to an origin.
func (h *sandboxHost) lead(t *testing.T, policy, origin string, hosts ...string) {
	t.Helper()
	data, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]any
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	resolve := map[string]string{}
	for _, host := range hosts {
		resolve[host+":443"] = origin
	}
	p["upstream"] = map[string]any{"resolve": resolve, "ca_files": []string{h.caFile}}
	if data, err = json.Marshal(p); err != nil {
		t.Fatal(err)
	}
	h.write(t, policy, data, 0o644)
}
