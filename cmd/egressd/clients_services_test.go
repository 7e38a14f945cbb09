package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func (h *clientsHost) service(w http.ResponseWriter, r *http.Request) {
	switch r.Host {
	case "git.test":
		h.git(w, r)
	case "npm.test":
		h.npmRegistry(w, r)
	case "pypi.test":
		h.pipIndex(w, r)
	default:
		http.Error(w, "no such service", http.StatusNotFound)
	}
}

// git is git's own server, a CGI program. It reads a body without a length to
// its end, which Go's handler does not offer: so the coding is hidden from it.
func (h *clientsHost) git(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength < 0 {
		h.chunked.Add(1)
	}
	r.TransferEncoding = nil
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, counter{&h.sent}), r.Body}
	(&cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Stderr: io.Discard, Env: []string{
		"GIT_PROJECT_ROOT=/srv/git", "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann", "HOME=/srv",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}).ServeHTTP(w, r)
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// repository makes a bare repository with one commit, of the unprivileged user.
func (h *clientsHost) repository(t *testing.T) {
	t.Helper()
	script := `cd /srv/git && git init -q --bare -b main r.git && cp -r r.git secret.git && git clone -q r.git seed 2>/dev/null && cd seed &&
echo hello >README && git add README && git -c user.name=s -c user.email=s@x.test commit -qm one && git push -q origin HEAD:main`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = []string{"HOME=/srv", "PATH=/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making the repository: %v\n%s", err, out)
	}
}

// banner is a server that speaks first, as databases do, and then sends back
// what it gets, with a certificate of its own or without TLS.
func (h *clientsHost) banner(t *testing.T, first string, secure *tls.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	addr := l.Addr().String()
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := io.WriteString(c, first); err == nil {
					_, _ = io.Copy(c, c)
				}
			}()
		}
	}()
	return addr
}

// npmTarball is a package with a program and a script that npm runs as its
// child, which asks for something itself (FAULTS.md C6).
func npmTarball(t *testing.T) []byte {
	t.Helper()
	files := map[string]string{
		"package/package.json": `{"name":"tiny","version":"1.0.0","bin":{"tiny":"cli.js"},"scripts":{"install":"node install.js"}}`,
		"package/cli.js":       "#!/usr/bin/env node\nconsole.log('hi from tiny')\n",
		"package/install.js": `require('https').get('https://ok.test/pub/a', r => { r.resume(); require('fs').writeFileSync('installed', String(r.statusCode)) })` +
			".on('error', e => { console.error('install.js: ' + e.message); process.exit(1) })\n",
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// npmRegistry is as much of the registry's API as npm install asks for.
func (h *clientsHost) npmRegistry(w http.ResponseWriter, r *http.Request) {
	sum := sha512.Sum512(h.tarball)
	switch r.URL.Path {
	case "/tiny":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name":"tiny","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"tiny","version":"1.0.0","bin":{"tiny":"cli.js"},"hasInstallScript":true,
"dist":{"tarball":"https://npm.test/tiny/-/tiny-1.0.0.tgz","integrity":"sha512-%s"}}}}`, base64.StdEncoding.EncodeToString(sum[:]))
	case "/tiny/-/tiny-1.0.0.tgz":
		_, _ = w.Write(h.tarball)
	case "/-/npm/v1/security/advisories/bulk":
		_, _ = io.WriteString(w, "{}")
	default:
		http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
	}
}

// pipWheel is a package as PEP 427 has it, made by hand.
func pipWheel(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	const info = "tiny-1.0.dist-info/"
	for _, f := range [][2]string{
		{"tiny.py", "def hi(): return 'hi from tiny'\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", "tiny.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		w, err := z.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// pipIndex is an index of PEP 503. The file of "locked" is one that no rule allows.
func (h *clientsHost) pipIndex(w http.ResponseWriter, r *http.Request) {
	link := func(path string) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><a href="%s#sha256=%x">%s</a>`, path, sha256.Sum256(h.wheel), filepath.Base(path))
	}
	switch {
	case r.URL.Path == "/simple/tiny/":
		link("/files/tiny-1.0-py3-none-any.whl")
	case r.URL.Path == "/simple/locked/":
		link("/locked/locked-1.0-py3-none-any.whl")
	case strings.HasPrefix(r.URL.Path, "/files/tiny-"):
		_, _ = w.Write(h.wheel)
	default:
		http.NotFound(w, r)
	}
}
