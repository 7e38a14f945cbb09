package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// credHost is a host whose internet wants a secret everywhere.
type credHost struct {
	*sandboxHost
	origin  string
	program string // testdata/client

	mu       sync.Mutex
	services map[string]http.Handler // by the name that was asked for
	number   int
}

// credClient is a real client at work in a sandbox with credentials: what it
// runs, and what it must say with every placeholder written as KEY.
type credClient struct {
	name    string
	rules   []any
	entries []map[string]any
	sandbox map[string]any
	env     map[string]string // of egressd's own
	files   map[string]string // of the home
	exec    []string          // those of them that are programs
	hosts   []string          // that lead to the origin
	secrets []string          // that must be nowhere
	user    clientUser        // ann, unless it is given
	run     string
	want    string
}

// credClients runs a test of clients in namespaces of its own.
func credClients(t *testing.T, f func(t *testing.T, h *credHost)) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		// It is read before the folders of the host are laid over.
		program, err := os.ReadFile(os.Getenv(clientVariable))
		if err != nil {
			t.Fatalf("reading the client program: %v", err)
		}
		h := &credHost{sandboxHost: newSandboxHost(t), services: map[string]http.Handler{}, program: string(program)}
		h.origin = h.serve(t, &http.Server{Handler: http.HandlerFunc(h.answer), TLSConfig: h.ca.ServerConfig("origin.test", "", "h2", "http/1.1")})
		f(t, h)
	})
}

func (h *credHost) answer(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	s := h.services[r.Host]
	h.mu.Unlock()
	if s == nil {
		http.Error(w, "no such service", http.StatusNotFound)
		return
	}
	s.ServeHTTP(w, r)
}

// searchInside prints what a program can find out about itself and its host.
const searchInside = `
set +e
printf '\n--- inside\n'
env
cat "$DATABRICKS_CONFIG_FILE" ~/.config/gh/* ~/.aws/* /etc/gitconfig 2>/dev/null
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null
find ~ /tmp /run /dev/shm -type f -size -200k -exec cat {} + 2>/dev/null
:
`

var anyPlaceholder = regexp.MustCompile(`oa_cred_[A-Za-z0-9_-]{43}`)

// next names the home of the client that is tried next.
func (h *credHost) next() string { return fmt.Sprintf("client%d", h.number) }

// try runs a client and returns what was recorded.
func (h *credHost) try(t *testing.T, c credClient) (text string) {
	t.Helper()
	t.Run(c.name, func(t *testing.T) {
		in := insideCase{ID: h.next(), Rules: c.rules, Entries: c.entries, Sandbox: c.sandbox}
		in.Sources.Files, in.Sources.Exec = c.files, c.exec
		h.number++
		home := filepath.Join("/home", in.ID)
		h.layOut(t, home, in)
		h.lead(t, filepath.Join("/srv", in.ID, "policy.yaml"), h.origin, c.hosts...)
		cmd := exec.CommandContext(t.Context(), h.bin, "run", "--policy", filepath.Join("/srv", in.ID, "policy.yaml"), "--", "sh", "-c", c.run+searchInside)
		cmd.Dir = filepath.Join(home, "proj")
		cmd.Env = []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=" + annName, "LOGNAME=" + annName}
		for name, value := range c.env {
			cmd.Env = append(cmd.Env, name+"="+strings.ReplaceAll(value, "${home}", home))
		}
		if c.user.name == "" {
			c.user = clientUsers[0]
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.user.credential()}
		out, errs, code := finish(t, cmd)
		said, _, ended := strings.Cut(out, "\n--- inside\n")
		if said = anyPlaceholder.ReplaceAllString(said, "KEY"); said != c.want || code != 0 || !ended {
			t.Errorf("%d, it said %q\nnot %q\nstderr %s", code, cut(said), c.want, errs)
		}
		text = records(t, home)
		for what, text := range map[string]string{"the sandbox": out, "egressd's words": errs, "the record": text} {
			for _, secret := range c.secrets {
				for _, s := range spelled(secret) {
					if strings.Contains(text, s) {
						t.Errorf("%s holds %q", what, s)
					}
				}
			}
		}
		if anyPlaceholder.MatchString(text) {
			t.Error("a placeholder is recorded")
		}
	})
	return text
}

// spelled are the ways in which an echo spells a secret.
func spelled(secret string) []string {
	var list []string
	for shift := range 3 { // as a whole, and behind what stands before it
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), secret...))
		list = append(list, text[4:len(text)-2])
	}
	return append(list, secret, hex.EncodeToString([]byte(secret)), url.QueryEscape(secret))
}

// wants is a service that answers only to a real secret, and shows it to its
// sender in every way that it knows.
type wants struct {
	at     string // a field, or a parameter after "?"
	secret func() string
	login  func(secret string) string // what the field holds

	mu      sync.Mutex
	came    int      // requests with it
	bare    int      // requests with nothing
	foreign []string // what else stood in its place
}

func bearer(secret string) string { return "Bearer " + secret }

func basic(user string) func(string) string {
	return func(secret string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret))
	}
}

func fixed(secret string) func() string { return func() string { return secret } }

// real says whether a request has the secret, and counts it.
func (s *wants) real(r *http.Request) bool {
	got := r.Header.Get(s.at)
	if name, ok := strings.CutPrefix(s.at, "?"); ok {
		got = r.URL.Query().Get(name)
	}
	if scheme, rest, ok := strings.Cut(got, " "); ok && strings.EqualFold(scheme, "basic") {
		got = "Basic " + rest // RFC 9110, 11.1: in any case
	}
	want := s.secret()
	if s.login != nil {
		want = s.login(want)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch got {
	case want:
		s.came++
	case "":
		s.bare++
	default:
		s.foreign = append(s.foreign, got)
	}
	return got == want
}

// settle checks that so many requests came with the secret at least, and so
// many with nothing, or none where that is nought; and forgets them.
func (s *wants) settle(t *testing.T, came, bare int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.came < came || s.bare < bare || bare == 0 && s.bare > 0 || len(s.foreign) > 0 {
		t.Errorf("%d requests with the secret, not %d; %d with nothing, not %d; with something else: %q", s.came, came, s.bare, bare, s.foreign)
	}
	s.came, s.bare, s.foreign = 0, 0, nil
}

func (s *wants) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.real(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="origin"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	secret := s.secret()
	w.Header().Set("X-Echo", secret)
	w.Header().Set("Content-Type", "application/json")
	quoted, _ := json.Marshal("<" + secret + ">")
	text := fmt.Sprintf(`{"you":"real","raw":%q,"hex":%q,"base64":%q,"json":%s,"url":%q}`+"\n", secret, hex.EncodeToString([]byte(secret)),
		base64.RawStdEncoding.EncodeToString([]byte(secret)), quoted, url.QueryEscape(secret))
	if r.FormValue("slow") != "" { // across writes, without a length
		for c := range slices.Chunk([]byte(text), 7) {
			_, _ = w.Write(c)
			_ = http.NewResponseController(w).Flush()
		}
		return
	}
	_, _ = bytes.NewBufferString(text).WriteTo(w)
}

// shown is what an answer of wants looks like inside.
const shown = `{"you":"real","raw":"KEY","hex":"KEY","base64":"KEY","json":"\u003cKEY\u003e","url":"KEY"}` + "\n"
