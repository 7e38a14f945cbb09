package proxy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/internal/proxytest"
	"github.com/egressd/egressd/netguard"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/proxy"
)

// credHost is the machine of a case: a home with the sources in it, variables,
// and a clock that the case moves.
type credHost struct {
	t     testing.TB
	home  string
	env   map[string]string
	later atomic.Int64 // nanoseconds
}

func newCredHost(t testing.TB, s credSources) *credHost {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	host := &credHost{t: t, home: home, env: map[string]string{"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin"}}
	for name, v := range s.Env {
		host.env[name] = host.filled(v)
	}
	for _, dir := range append([]string{"~/proj"}, s.Dirs...) {
		if err := os.MkdirAll(host.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range s.Files {
		host.write(path, text)
	}
	for _, path := range s.Exec {
		if err := os.Chmod(host.path(path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return host
}

func (c *credHost) filled(s string) string { return strings.ReplaceAll(s, "${home}", c.home) }

func (c *credHost) path(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		return c.home + rest
	}
	return path
}

func (c *credHost) write(path, text string) {
	c.t.Helper()
	file := c.path(path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// read is the text of a file, "" where there is none.
func (c *credHost) read(path string) string {
	c.t.Helper()
	text, err := os.ReadFile(c.path(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
	return string(text)
}

func (c *credHost) advance(d time.Duration) { c.later.Add(int64(d)) }

func (c *credHost) now() time.Time { return time.Now().Add(time.Duration(c.later.Load())) }

// sources is how the broker reads this machine, whose working folder a sandbox
// writes to.
func (c *credHost) sources(transport http.RoundTripper) source.Config {
	unsafe := []string{c.home + "/proj"}
	var environ []string
	for name, v := range c.env {
		environ = append(environ, name+"="+v)
	}
	return source.Config{
		Getenv:    func(name string) string { return c.env[name] },
		Home:      c.home,
		Env:       source.Environment(environ, source.SafePath(c.env["PATH"], unsafe)),
		LookPath:  source.Finder(c.env["PATH"], unsafe),
		Transport: transport,
		Now:       c.now,
	}
}

// loadCase is the policy of a case, read as a file of it would be.
func (c *credHost) loadCase(k credCase) (*policy.Policy, error) {
	sandbox := map[string]any{}
	for name, v := range k.Sandbox {
		sandbox[name] = v
	}
	sandbox["egress_rules"] = append([]any{}, k.Rules...)
	sandbox["credential_proxy"] = json.RawMessage(c.filled(string(k.Entries)))
	text, err := json.Marshal(map[string]any{"sandbox": sandbox})
	if err != nil {
		return nil, err
	}
	p, problems := policy.Load(c.home+"/egressd.yaml", text, policy.Options{Platform: "linux", Home: c.home})
	if p == nil {
		return nil, fmt.Errorf("loading policy: %v", problems)
	}
	return p, nil
}

// newBroker starts the broker of a case.
func (c *credHost) newBroker(k credCase, transport http.RoundTripper, warn func(string)) (*credbroker.Broker, error) {
	p, err := c.loadCase(k)
	if err != nil {
		return nil, err
	}
	return credbroker.New(c.t.Context(), credbroker.Config{
		Entries: p.Credentials, LeakPass: p.Sandbox.LeakPass, Strict: p.Sandbox.Redact == "strict",
		Sources: c.sources(transport), Warn: warn,
	})
}

// runStartError starts what must not start.
func runStartError(t *testing.T, c credCase) {
	host := newCredHost(t, c.Sources)
	begun := time.Now()
	_, err := host.newBroker(c, newTokens(t, c, proxytest.NewCA(t)).transport(), func(string) {})
	if err == nil {
		t.Fatal("the run starts")
	}
	if limit := time.Duration(c.StartError.WithinS) * time.Second; limit > 0 && time.Since(begun) > limit {
		t.Errorf("the start took %v to fail", time.Since(begun))
	}
	said := err.Error()
	var start *credbroker.StartError
	if errors.As(err, &start) {
		said = start.Explain() // what the user reads
	}
	for _, text := range append([]string{c.StartError.Entry}, c.StartError.Has...) {
		if !strings.Contains(said, text) {
			t.Errorf("%q lacks %q", said, text)
		}
	}
	for _, text := range c.StartError.Lacks {
		if strings.Contains(said+err.Error(), text) {
			t.Errorf("%q has %q", said, text)
		}
	}
}

// credHouse is a house with the broker of a case.
type credHouse struct {
	*house
	host   *credHost
	broker *credbroker.Broker
	tokens *tokens
	log    *logBuffer
	asked  int  // requests so far
	http2  bool // what the client speaks
}

func newCredHouse(t *testing.T, c credCase) *credHouse {
	t.Helper()
	h := &credHouse{host: newCredHost(t, c.Sources), log: &logBuffer{}}
	roots := proxytest.NewCA(t)
	h.tokens = newTokens(t, c, roots)
	broker, err := h.host.newBroker(c, h.tokens.transport(), func(text string) { fmt.Fprintln(h.log, text) })
	if err != nil {
		t.Fatalf("starting the broker: %v", err)
	}
	h.broker = broker
	h.house = newHouseWith(t, c.Rules, casePolicy{}, roots)
	h.house.broker = broker
	h.origin.Flaw, h.resolver.Answers = c.Origin, c.Resolve
	if c.Origin == "unresolved" {
		h.origin.Flaw, h.resolver.Unresolved = "", true
	}
	h.restart(func(config *proxy.Config) {
		config.Policy = h.policy(c.Rules)
		config.Log = slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	return h
}

// logBuffer takes what the operator would read.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// tokens is a server behind every token endpoint of a case.
type tokens struct {
	t       testing.TB
	answers map[string][]credUpstream
	roots   *proxytest.CA
	addr    string

	mu    sync.Mutex
	count map[string]int
}

func newTokens(t testing.TB, c credCase, roots *proxytest.CA) *tokens {
	t.Helper()
	k := &tokens{t: t, answers: c.TokenEndpoint, roots: roots, count: map[string]int{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: k, TLSConfig: roots.ServerConfig("127.0.0.1", "")}
	go server.ServeTLS(l, "", "")
	t.Cleanup(func() { server.Close() })
	k.addr = l.Addr().String()
	return k
}

// transport reaches the endpoints as the broker's own calls do: past the guard.
func (k *tokens) transport() http.RoundTripper {
	dialer := &netguard.Dialer{
		Guard:    netguard.New(netguard.Config{}),
		Resolver: &proxytest.Resolver{},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, k.addr)
		},
	}
	t := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: k.roots.Pool()}}
	k.t.Cleanup(t.CloseIdleConnections)
	return t
}

// requests is how many came to the URL.
func (k *tokens) requests(url string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count[url]
}

// ServeHTTP gives the answers of a URL in order, the last again and again.
func (k *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	url := "https://" + r.Host + r.URL.Path
	k.mu.Lock()
	n := k.count[url]
	k.count[url]++
	k.mu.Unlock()
	list := k.answers[url]
	if len(list) == 0 {
		http.NotFound(w, r)
		return
	}
	a := list[min(n, len(list)-1)]
	for _, f := range a.Headers {
		w.Header().Add(f[0], f[1])
	}
	w.WriteHeader(a.Status)
	io.WriteString(w, string(a.Body))
}

func gunzipped(text string) (string, error) {
	r, err := gzip.NewReader(bytes.NewReader([]byte(text)))
	if err != nil {
		return "", err
	}
	plain, err := io.ReadAll(r)
	return string(plain), err
}
