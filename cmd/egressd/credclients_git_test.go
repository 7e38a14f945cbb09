package main

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
)

// gitService is git's own server behind Basic.
type gitService struct {
	*wants
	sent, chunked atomic.Int64 // bytes of bodies, and bodies without a length
}

func (s *gitService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.real(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if r.ContentLength < 0 {
		s.chunked.Add(1)
	}
	r.TransferEncoding = nil // the program reads to the end of a body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, counter{&s.sent}), r.Body}
	// What a server says of its client: git shows it as "remote:" lines.
	w.Header().Set("X-Remote-User", s.secret())
	(&cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Stderr: io.Discard, Env: []string{
		"GIT_PROJECT_ROOT=/srv/git", "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann", "HOME=/srv",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=http.receivepack", "GIT_CONFIG_VALUE_1=true",
	}}).ServeHTTP(w, r)
}

// git with a secret that is attached, and with a placeholder in every way that
// it may have come by one: a helper, a URL, a header of its configuration.
func TestCredClientsGit(t *testing.T) {
	credClients(t, func(t *testing.T, h *credHost) {
		const secret = "glpat/7Qm4x9Zr2Lp8+Kd03nWq8=1x"
		s := &gitService{wants: &wants{at: "Authorization", secret: fixed(secret), login: basic("ann")}}
		h.services["git.test"] = s
		h.gitRepository(t)
		c := credClient{rules: []any{"* git.test/**"}, hosts: []string{"git.test"}, secrets: []string{secret}, env: map[string]string{"REAL": secret},
			sandbox: map[string]any{"write_paths": []string{"."}, "cwd_allow_hidden": []string{".git"}}}
		entry := func(typ, inject string) []map[string]any {
			return []map[string]any{{"id": "git", "type": typ, "username": "ann", "target": "git.test", "source": map[string]any{"env": "REAL"}, "env": "GIT_TOKEN", "inject": inject}}
		}

		// The first request of git has no credential: it gets one.
		c.name, c.entries, c.want = "attached", entry("git_https", "missing"), "hello\nhello\nhello\nhello\nrefs/heads/big\n0\n"
		c.run = `set -e; exec 2>&1; cd /tmp
git clone -q https://git.test/o/private a; cat a/README
git -c http.version=HTTP/1.1 clone -q --depth 1 https://git.test/o/private b; cat b/README
git clone -q git@git.test:o/private.git c; cat c/README; git -C c fetch -q
git clone -q ssh://git@git.test/o/private d; cat d/README; cd d
git checkout -qb big; head -c 50000000 /dev/urandom >big; git add big
git -c core.compression=0 -c user.name=a -c user.email=a@x.test commit -qm big
git -c core.compression=0 push -q origin big 2>&1; git ls-remote -q origin big | cut -f2
git -C ../a fetch -q origin big; git -C ../a cat-file blob FETCH_HEAD:big | cmp - big; echo $?
git push -q origin :big; rm -rf /tmp/?`
		h.try(t, c)
		s.settle(t, 20, 0)
		if s.sent.Load() < 50_000_000 || s.chunked.Load() < 1 {
			t.Errorf("a push of 50 MB sent %d bytes, and %d bodies without a length", s.sent.Load(), s.chunked.Load())
		}

		// Here the first request goes bare, as it does without egressd, and git asks.
		c.name, c.entries, c.want = "swapped", entry("https_basic", "placeholder"), "hello\nhello\nhello\nhello\nhello\nrefs/heads/one\nno prompt\n"
		c.run = `set -e; exec 2>&1; cd /tmp
helper='!f() { test $1 = get && echo username=ann && echo password=$GIT_TOKEN; }; f'
basic=$(printf ann:%s $GIT_TOKEN | base64 -w0)
git -c credential.helper="$helper" clone -q https://git.test/o/private a; cat a/README
git clone -q https://ann:$GIT_TOKEN@git.test/o/private b; cat b/README; git -C b fetch -q
git -c http.extraHeader="Authorization: Basic $basic" clone -q https://git.test/o/private c; cat c/README
git -c http.https://git.test/.extraHeader="AUTHORIZATION: basic $(printf ann:%s $GIT_TOKEN | base64 -w0 | tr -d =)" clone -q https://git.test/o/private d; cat d/README
printf 'https://ann:%s@git.test\n' $GIT_TOKEN >/tmp/store; git -c credential.helper='store --file /tmp/store' clone -q https://git.test/o/private e; cat e/README
cd e; git -c credential.helper="$helper" push -q origin HEAD:one; git -c credential.helper="$helper" ls-remote -q origin one | cut -f2
git -c credential.helper="$helper" push -q origin :one
git ls-remote -q https://git.test/o/private 2>/dev/null || echo no prompt; rm -rf /tmp/? /tmp/store`
		h.try(t, c)
		s.settle(t, 20, 5)

		// The placeholder may be the user as well (FAULTS.md K1).
		s.login = func(secret string) string {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(secret+":x-oauth-basic"))
		}
		c.name, c.want = "as the user", "hello\nhello\n"
		c.run = `set -e; exec 2>&1; cd /tmp
git clone -q https://$GIT_TOKEN:x-oauth-basic@git.test/o/private a; cat a/README; git -C a fetch -q
git -c http.extraHeader="Authorization: Basic $(printf %s:x-oauth-basic $GIT_TOKEN | base64 -w0 | tr -d =)" clone -q https://git.test/o/private b; cat b/README; rm -rf /tmp/?`
		h.try(t, c)
		s.settle(t, 5, 1)
	})
}

// A secret that is changed while git is at work is read anew after the refusal
// of the old one, and goes out in the same way (FAULTS.md K3). A first request
// without any is no reason to ask for it. With a ttl nothing is refused at all.
func TestCredClientsRotation(t *testing.T) {
	credClients(t, func(t *testing.T, h *credHost) {
		const before, after = "glpat-before-7Qm4x9Zr2Lp8", "glpat-after-Kd03nWq81xYt"
		var now, file atomic.Value
		s := &gitService{wants: &wants{at: "Authorization", secret: func() string { return now.Load().(string) }, login: basic("ann")}}
		h.services["git.test"] = s
		h.services["admin.test"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			now.Store(after)
			if err := os.WriteFile(file.Load().(string), []byte(after+"\n"), 0o600); err != nil {
				t.Errorf("changing the secret: %v", err)
			}
		})
		h.gitRepository(t)
		for _, x := range []struct {
			name, inject, wait string
			source             map[string]any
			came, bare         int
			refused            bool
		}{
			{name: "attached", inject: "missing", source: map[string]any{"file": "~/tok"}, came: 10, refused: true},
			{name: "swapped", inject: "placeholder", source: map[string]any{"command": "cat ${home}/tok"}, came: 10, bare: 3, refused: true},
			{name: "ttl", inject: "missing", source: map[string]any{"file": "~/tok", "ttl": "1s"}, wait: "sleep 1.1", came: 10},
		} {
			now.Store(before)
			c := credClient{name: x.name, rules: []any{"* git.test/**", "GET admin.test/"}, hosts: []string{"git.test", "admin.test"}, secrets: []string{before, after},
				files: map[string]string{"~/tok": before + "\n"}, want: "hello\nhello\n",
				entries: []map[string]any{{"id": "git", "type": "git_https", "username": "ann", "target": "git.test", "source": x.source, "env": "GIT_TOKEN", "inject": x.inject}},
				run: `set -e; exec 2>&1; cd /tmp; export GIT_CONFIG_GLOBAL=/tmp/config
git config --global credential.helper '!f() { test $1 = get && echo username=ann && echo password=$GIT_TOKEN; }; f'
git clone -q https://git.test/o/private a; cat a/README; curl -sS https://admin.test/; ` + x.wait + `
git -C a fetch -q; git clone -q https://git.test/o/private b; cat b/README
cd b; git push -q origin HEAD:two; git push -q origin :two; rm -rf /tmp/? $GIT_CONFIG_GLOBAL`}
			file.Store(filepath.Join("/home", h.next(), "tok"))
			h.try(t, c)
			var old []string
			if x.refused {
				old = []string{basic("ann")(before)}
			}
			s.mu.Lock()
			if !slices.Equal(s.foreign, old) {
				t.Errorf("%s: other logins came: %q", x.name, s.foreign)
			}
			s.foreign = nil
			s.mu.Unlock()
			s.settle(t, x.came, x.bare)
		}
	})
}
