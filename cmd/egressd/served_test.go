package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// place is a user's home for one test, an origin, and how to call the binary
// there.
type place struct {
	dir    string
	env    []string
	origin *testOrigin
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{dir: t.TempDir(), origin: newTestOrigin(t)}
	for _, sub := range []string{"home", "run", "tmp"} {
		if err := os.Mkdir(filepath.Join(p.dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{"HOME=" + p.path("home"), "XDG_RUNTIME_DIR=" + p.path("run"), "TMPDIR=" + p.path("tmp"),
		"PATH=" + os.Getenv("PATH")}
	return p
}

func (p *place) path(parts ...string) string {
	return filepath.Join(append([]string{p.dir}, parts...)...)
}

// write puts a file in place whole, as editors do.
func (p *place) write(t *testing.T, name, text string) string {
	t.Helper()
	path := p.path(name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// policy writes a policy with these rules, whose hosts are all the origin.
func (p *place) policy(t *testing.T, rules ...string) string {
	t.Helper()
	quoted, err := json.Marshal(append([]string{}, rules...))
	if err != nil {
		t.Fatal(err)
	}
	return p.write(t, "policy.yaml", fmt.Sprintf(`
sandbox: {egress_rules: %s}
upstream:
  resolve: {"api.test:443": %q, "api.test:80": %q, "raw.test:5000": %q, "down.test:443": "127.0.0.1:1", "bad.test:443": %q}
  ca_files: [%q]
limits: {shutdown_grace: 20s}
`, quoted, p.origin.https, p.origin.http, p.origin.raw, p.origin.bad, p.origin.caFile))
}

func (p *place) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Getenv(binaryVariable), args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// call runs the binary to its end.
func (p *place) call(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return finish(t, p.command(t, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", cmd, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// lockedBuffer is written by a process while the test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// served is a running `egressd serve`.
type served struct {
	*place
	cmd     *exec.Cmd
	stderr  lockedBuffer
	ended   chan struct{} // closed when it has ended
	listen  string
	session string
}

// serve starts the proxy and waits for its ready line.
func (p *place) serve(t *testing.T, flags ...string) *served {
	t.Helper()
	s := &served{place: p, ended: make(chan struct{})}
	s.cmd = p.command(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--ca-out", p.path("ca.pem")}, flags...)...)
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadBytes('\n')
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = s.cmd.Wait() // its status is looked at where it matters
		close(s.ended)
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); <-s.ended })
	if err != nil {
		t.Fatalf("no ready line: %v\n%s", err, s.stderr.String())
	}
	var ready struct{ Listen, CA, Session string }
	if err := json.Unmarshal(line, &ready); err != nil || ready.CA != p.path("ca.pem") || len(ready.Session) != 26 {
		t.Fatalf("the ready line is %q (%v)", line, err)
	}
	s.listen, s.session = ready.Listen, ready.Session
	return s
}

func (s *served) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// wait waits for the end and returns the status.
func (s *served) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(limit):
		t.Fatalf("egressd serve has not ended after %v\n%s", limit, s.stderr.String())
	}
	return s.cmd.ProcessState.ExitCode()
}

// stop ends it as a supervisor does.
func (s *served) stop(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t, 25*time.Second); code != 0 {
		t.Errorf("exit status %d\n%s", code, s.stderr.String())
	}
}

// says waits until stderr holds the text.
func (s *served) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, "stderr lacks "+text, func() bool { return strings.Contains(s.stderr.String(), text) })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// client honours proxy variables and trusts the session.
func (s *served) client(t *testing.T) *http.Client {
	t.Helper()
	data, err := os.ReadFile(s.path("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(data)
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: s.listen}), TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

func (s *served) get(t *testing.T, target string) (status int, body string) {
	t.Helper()
	return get(t, s.client(t), target)
}

func get(t *testing.T, c *http.Client, target string) (status int, body string) {
	t.Helper()
	resp, err := c.Get(target)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	return resp.StatusCode, string(data)
}

// records are the records of the session's file.
func (s *served) records(t *testing.T) []map[string]any {
	t.Helper()
	return readRecords(t, s.path("home/.local/state/egressd/audit", s.session+".jsonl"))
}

func readRecords(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for line := range strings.Lines(string(data)) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// count says how many records hold all of these members.
func countRecords(all []map[string]any, members map[string]any) (n int) {
	for _, r := range all {
		fits := true
		for k, v := range members {
			fits = fits && r[k] == v
		}
		if fits {
			n++
		}
	}
	return n
}

// testOrigin answers on every door of the internet that a test needs.
type testOrigin struct {
	caFile, https, http, raw, bad string

	mu      sync.Mutex
	seen    int
	login   string        // the Authorization of the last request
	badSeen int           // bytes of a request that came to the origin with the bad certificate
	free    chan struct{} // closed when streams may end
}

func newTestOrigin(t *testing.T) *testOrigin {
	t.Helper()
	ca := proxytest.NewCA(t)
	o := &testOrigin{caFile: ca.File(t), free: make(chan struct{})}
	serve := func(cfg *tls.Config) string {
		l := listenLoopback(t)
		addr := l.Addr().String()
		if cfg != nil {
			l = tls.NewListener(l, cfg)
		}
		srv := &http.Server{Handler: o, ErrorLog: log.New(io.Discard, "", 0)}
		t.Cleanup(func() { srv.Close() })
		go func() { _ = srv.Serve(l) }()
		return addr
	}
	o.https, o.http = serve(ca.ServerConfig("api.test", "", "http/1.1")), serve(nil)
	o.bad = serve(ca.ServerConfig("bad.test", "expired", "http/1.1"))
	echo := listenLoopback(t)
	t.Cleanup(func() { echo.Close() })
	o.raw = echo.Addr().String()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	return o
}

func listenLoopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (o *testOrigin) lastLogin() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.login
}

func (o *testOrigin) requests() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

// ServeHTTP greets, or with /sse streams one event and waits until it is free.
func (o *testOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.seen++
	o.login = r.Header.Get("Authorization")
	if r.Host == "bad.test" {
		o.badSeen++
	}
	o.mu.Unlock()
	if r.URL.Path != "/sse" {
		_, _ = io.WriteString(w, "hello "+r.URL.Path)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: first\n\n")
	_ = http.NewResponseController(w).Flush()
	select {
	case <-o.free:
		_, _ = io.WriteString(w, "data: last\n\n")
	case <-r.Context().Done():
	}
}
