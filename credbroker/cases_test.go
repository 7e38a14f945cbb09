package credbroker_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/internal/cases"
)

// brokerCase is a line of credentials.jsonl as far as a broker alone can be
// tried with it: what the rules, the connection and the sandbox do is run in
// packages proxy and cmd/egressd.
type brokerCase struct {
	ID, Why string
	Q       any
	Rules   []any
	Entries []json.RawMessage
	Sandbox struct {
		LeakPass []string `json:"leak_pass"`
		Rest     any      `json:"read_paths"`
		Write    any      `json:"write_paths"`
		Redact   string   `json:"redact"`
		OnLeak   string   `json:"on_leak"`
	}
	Sources struct {
		Env   map[string]string
		Files map[string]string
		Dirs  []string
		Exec  []string
	}
	Origin, Resolve any
	Send            *caseSend
	Upstream        []caseAnswer
	Expect          caseExpect
	Steps           []struct {
		Send      *caseSend
		Upstream  []caseAnswer
		Expect    caseExpect
		Parallel  int
		Advance   string
		SetFile   map[string]string `json:"set_file"`
		FileLines map[string]int    `json:"file_lines"`
	}
	TokenEndpoint map[string][]caseAnswer `json:"token_endpoint"`
	TokenRequests map[string]int          `json:"token_requests"`
	StartError    *struct {
		Entry      string
		Has, Lacks []string
		WithinS    float64 `json:"within_s"`
	} `json:"start_error"`
	Inside any
}

type caseSend struct {
	Method, URL string
	Headers     [][2]string
	Body        caseBody
	Trailers    [][2]string
}

type caseAnswer struct {
	Status     int
	Headers    [][2]string
	Body       caseBody
	Chunks     []string
	ChunkGapMS int `json:"chunk_gap_ms"`
	Trailers   [][2]string
	Encoding   string
	Split      int
	Interim    []struct {
		Status  int
		Headers [][2]string
	}
	Raw string
}

type caseExpect struct {
	Status       int
	Reason       words
	Seen         json.RawMessage
	Headers      map[string]any
	Lacks        []string
	Body         *string
	BodyHas      []string `json:"body_has"`
	BodyLacks    []string `json:"body_lacks"`
	HeadersLack  []string `json:"headers_lack"`
	Trailers     map[string]any
	Interim      any
	DecodedLacks []string `json:"decoded_lacks"`
	JSONValid    bool     `json:"json_valid"`
	JSONLacks    []string `json:"json_lacks"`
	WellFramed   bool     `json:"well_framed"`
	First        bool     `json:"first_byte_before_last_chunk"`
	Event        string
	AuditHas     []string `json:"audit_has"`
	AuditLacks   []string `json:"audit_lacks"`
	StderrLacks  []string `json:"stderr_lacks"`
}

type caseSeen struct {
	Target  *string
	Headers map[string]any
	Lacks   []string
	Body    *string
	Within  []string `json:"accept_encoding_within"`
}

type words []string

func (w *words) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(w))
}

// caseBody is text of bytes, or parts of it that repeat.
type caseBody []byte

func (c *caseBody) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if json.Unmarshal(b, &parts) != nil {
		parts = []json.RawMessage{b}
	}
	for _, p := range parts {
		var text string
		var r struct {
			Repeat string
			Times  int
		}
		if json.Unmarshal(p, &text) == nil {
			*c = append(*c, text...)
		} else if err := json.Unmarshal(p, &r); err != nil {
			return err
		} else {
			*c = append(*c, strings.Repeat(r.Repeat, r.Times)...)
		}
	}
	return nil
}

// latin are the bytes that a text of U+0000 to U+00FF stands for.
func latin(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r))
	}
	return b.String()
}

// The groups that a broker alone decides. first needs rules, inside a sandbox.
var brokerGroups = []string{"attach", "scope", "own", "swap", "leak", "method", "plain", "hop", "range", "leakpass", "canary",
	"refresh", "quiet", "source", "databricks", "oauth", "aws", "echo", "echoform", "cut", "edge", "stored", "tag", "stream", "frame", "layer"}

// onTheWire are lines of those groups that are about a connection.
var onTheWire = []string{"cr-plain-05", "cr-quiet-02", "cr-quiet-04"}

func TestCases(t *testing.T) {
	seen := 0
	data, err := os.ReadFile(filepath.Join(cases.Dir(t), "credentials.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var c brokerCase
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		group := strings.Split(c.ID, "-")[1]
		if !slices.Contains(brokerGroups, group) || slices.Contains(onTheWire, c.ID) || c.Send == nil && c.Steps == nil && c.StartError == nil {
			continue
		}
		seen++
		t.Run(c.ID, func(t *testing.T) { newCaseRun(t, &c).run() })
	}
	if seen < 180 {
		t.Errorf("%d cases", seen)
	}
}

type caseRun struct {
	*testing.T
	c      *brokerCase
	broker *credbroker.Broker
	home   string

	mu     sync.Mutex
	now    time.Time
	seen   []*http.Request
	bodies []string
	events []string
	asked  map[string]int
}

func newCaseRun(t *testing.T, c *brokerCase) *caseRun {
	r := &caseRun{T: t, c: c, home: t.TempDir(), now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), asked: map[string]int{}}
	for name, text := range c.Sources.Files {
		r.writeFile(name, text)
	}
	for _, name := range c.Sources.Exec {
		if err := os.Chmod(r.path(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *caseRun) path(name string) string {
	return strings.Replace(name, "~", r.home, 1)
}

func (r *caseRun) writeFile(name, text string) {
	path := r.path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(strings.ReplaceAll(text, "${home}", r.home)), 0o600)); err != nil {
		r.Fatal(err)
	}
}

func (r *caseRun) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *caseRun) sources() source.Config {
	path := "/usr/local/bin:/usr/bin:/bin"
	if p := r.c.Sources.Env["PATH"]; p != "" {
		path = strings.ReplaceAll(p, "${home}", r.home)
	}
	var safe []string
	for _, dir := range strings.Split(path, ":") {
		if !strings.HasPrefix(dir, r.home+"/proj") {
			safe = append(safe, dir)
		}
	}
	return source.Config{
		Getenv: func(name string) string { return strings.ReplaceAll(r.c.Sources.Env[name], "${home}", r.home) },
		Home:   r.home, Env: []string{"HOME=" + r.home, "PATH=" + strings.Join(safe, ":")},
		LookPath: func(name string) (string, error) {
			if strings.HasPrefix(name, r.home+"/proj") {
				return "", fmt.Errorf("%s lies where a sandbox writes", name)
			}
			for _, dir := range safe {
				if path := filepath.Join(dir, name); !strings.Contains(name, "/") {
					if _, err := exec.LookPath(path); err == nil {
						return path, nil
					}
				}
			}
			if strings.HasPrefix(name, "/") {
				return name, nil
			}
			return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
		},
		Transport: endpoint{r}, Now: r.clock,
	}
}

// endpoint answers the broker's own calls.
type endpoint struct{ r *caseRun }

func (e endpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	at := req.URL.String()
	n := e.r.asked[at]
	e.r.asked[at]++
	answers := e.r.c.TokenEndpoint[at]
	if len(answers) == 0 {
		return nil, fmt.Errorf("nobody at %s", at)
	}
	return e.r.answer(answers[min(n, len(answers)-1)], req), nil
}

func (r *caseRun) run() {
	var entries []credbroker.Entry
	for _, raw := range r.c.Entries {
		entries = append(entries, entryOf(r.T, strings.ReplaceAll(string(raw), "${home}", r.home)))
	}
	broker, err := credbroker.New(r.Context(), credbroker.Config{Entries: entries, LeakPass: r.c.Sandbox.LeakPass, Strict: r.c.Sandbox.Redact == "strict", Sources: r.sources()})
	if want := r.c.StartError; want != nil {
		var start *credbroker.StartError
		if !errors.As(err, &start) {
			r.Fatalf("%s\nstart: %v", r.c.Why, err)
		}
		for _, s := range append(want.Has, want.Entry) {
			if !strings.Contains(start.Explain(), s) {
				r.Errorf("%q is not in %s", s, start.Explain())
			}
		}
		for _, s := range want.Lacks {
			if strings.Contains(start.Explain(), s) {
				r.Errorf("%q is in %s", s, start.Explain())
			}
		}
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	r.broker = broker
	if r.c.Send != nil {
		r.exchange(r.c.Send, r.c.Upstream, r.c.Expect, 1)
	}
	for _, s := range r.c.Steps {
		for name, text := range s.SetFile {
			r.writeFile(name, text)
		}
		if s.Advance != "" {
			d, err := time.ParseDuration(s.Advance)
			if err != nil {
				r.Fatal(err)
			}
			r.mu.Lock()
			r.now = r.now.Add(d)
			r.mu.Unlock()
		}
		if s.Send != nil {
			r.exchange(s.Send, s.Upstream, s.Expect, max(1, s.Parallel))
		}
		for name, want := range s.FileLines {
			data, err := os.ReadFile(r.path(name))
			if n := bytes.Count(data, []byte("\n")); err != nil || n != want {
				r.Errorf("%s: %d lines, want %d (%v)", name, n, want, err)
			}
		}
	}
	for at, want := range r.c.TokenRequests {
		if r.asked[at] != want {
			r.Errorf("%s was asked %d times, want %d", at, r.asked[at], want)
		}
	}
}

// fill puts placeholders and encodings into a text of a case.
func (r *caseRun) fill(s string) string {
	for {
		start := strings.LastIndex(s, "${")
		if start < 0 {
			return s
		}
		for start >= 0 {
			end := strings.Index(s[start:], "}")
			kind, rest, ok := "", "", false
			if end > 0 {
				kind, rest, ok = strings.Cut(s[start+2:start+end], ":")
			}
			text := ""
			switch {
			case !ok:
				start = strings.LastIndex(s[:start], "${")
				continue
			case kind == "ph":
				id, part, _ := strings.Cut(rest, ":")
				if text = r.broker.Placeholder(id, part); text == "" {
					r.Fatalf("no placeholder %s", rest)
				}
			case kind == "b64":
				text = base64.StdEncoding.EncodeToString([]byte(rest))
			case kind == "b64nopad":
				text = base64.RawStdEncoding.EncodeToString([]byte(rest))
			case kind == "pct":
				for _, c := range []byte(rest) {
					text += fmt.Sprintf("%%%02X", c)
				}
			case kind == "upper":
				text = strings.ToUpper(rest)
			default:
				start = strings.LastIndex(s[:start], "${")
				continue
			}
			s = s[:start] + text + s[start+end+1:]
			break
		}
		if start < 0 {
			return s
		}
	}
}

func (r *caseRun) request(s *caseSend) *http.Request {
	target := r.fill(s.URL)
	scheme, rest, _ := strings.Cut(target, "://")
	host, path, _ := strings.Cut(rest, "/")
	path, query, _ := strings.Cut("/"+path, "?")
	req := &http.Request{
		Method: s.Method, URL: &url.URL{Scheme: scheme, Host: host, Opaque: path, RawQuery: query}, Host: host,
		Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	for _, h := range s.Headers {
		if !slices.Contains([]string{"Connection", "Te", "Proxy-Authorization"}, http.CanonicalHeaderKey(h[0])) {
			req.Header.Add(h[0], r.fill(h[1]))
		}
	}
	if len(s.Body) > 0 {
		body := latin(r.fill(string(s.Body)))
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	if len(s.Trailers) > 0 {
		req.ContentLength, req.Trailer = -1, http.Header{}
		req.Body = &trailing{req.Body, func() {
			for _, h := range s.Trailers {
				req.Trailer.Add(h[0], r.fill(h[1]))
			}
		}}
	}
	return req
}

// trailing has its trailers once it has ended.
type trailing struct {
	io.ReadCloser
	end func()
}

func (b *trailing) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.end()
	}
	return n, err
}

func (r *caseRun) answer(a caseAnswer, req *http.Request) *http.Response {
	body := []byte(latin(r.fill(string(a.Body))))
	res := &http.Response{StatusCode: a.Status, Header: http.Header{}, Request: req, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Trailer: http.Header{}}
	if res.StatusCode == 0 {
		res.StatusCode = 200
	}
	res.Status = fmt.Sprint(res.StatusCode, " Of The Origin")
	for _, h := range a.Headers {
		res.Header.Add(h[0], h[1])
	}
	if a.Encoding == "gzip" {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body)
		_ = z.Close()
		body = b.Bytes()
	}
	if a.Encoding != "" {
		res.Header.Set("Content-Encoding", a.Encoding)
	}
	res.ContentLength = int64(len(body))
	if a.Chunks != nil {
		res.ContentLength = -1
		body = []byte(latin(strings.Join(a.Chunks, "")))
	}
	res.Body = &trailing{io.NopCloser(bytes.NewReader(body)), func() {
		for _, h := range a.Trailers {
			res.Trailer.Add(h[0], h[1])
		}
	}}
	if req.Method == "HEAD" {
		res.Body = http.NoBody
	}
	return res
}

func (r *caseRun) exchange(s *caseSend, upstream []caseAnswer, want caseExpect, parallel int) {
	r.mu.Lock()
	r.seen, r.bodies, r.events = nil, nil, nil
	r.mu.Unlock()
	sent := 0
	var all sync.WaitGroup
	for range parallel {
		all.Go(func() {
			req := r.request(s)
			var interim []textproto.MIMEHeader
			ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
				interim = append(interim, h)
				return nil
			}})
			res, err := r.broker.RoundTrip(req.WithContext(ctx), func(out *http.Request) (*http.Response, error) {
				body := ""
				if out.Body != nil {
					b, err := io.ReadAll(out.Body)
					out.Body.Close()
					if err != nil {
						return nil, err
					}
					body = string(b)
				}
				r.mu.Lock()
				kept := *out
				kept.Header = maps.Clone(out.Header)
				r.seen, r.bodies = append(r.seen, &kept), append(r.bodies, body)
				a := caseAnswer{Body: caseBody("ok")}
				if sent < len(upstream) {
					a = upstream[sent]
				}
				sent++
				r.mu.Unlock()
				for _, i := range a.Interim {
					h := textproto.MIMEHeader{}
					for _, f := range i.Headers {
						h.Add(f[0], f[1])
					}
					_ = httptrace.ContextClientTrace(out.Context()).Got1xxResponse(i.Status, h)
				}
				return r.answer(a, out), nil
			}, func(kind, verdict, credential string) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.events = append(r.events, kind+" "+verdict+" "+credential)
			})
			r.judge(want, res, err)
			for _, h := range interim {
				if strings.Contains(fmt.Sprint(h), "tok-live") {
					r.Errorf("interim: %v", h)
				}
			}
		})
	}
	all.Wait()
	r.checkSeen(want, parallel)
	if want.Event != "" && !slices.ContainsFunc(r.events, func(e string) bool { return strings.HasPrefix(e, want.Event) }) {
		r.Errorf("%s: no %s in %q", r.c.Why, want.Event, r.events)
	}
}

func (r *caseRun) judge(want caseExpect, res *http.Response, err error) {
	if len(want.Reason) > 0 {
		var reason interface{ Reason() string }
		if err == nil || !errors.As(err, &reason) || !slices.Contains(want.Reason, reason.Reason()) {
			r.Errorf("%s\nerror %v, want %v", r.c.Why, err, want.Reason)
			return
		}
		text := err.Error()
		var detail interface{ Detail() string }
		if errors.As(err, &detail) {
			text += detail.Detail()
		}
		for _, s := range slices.Concat(want.BodyLacks, want.AuditLacks, want.StderrLacks) {
			if strings.Contains(text, s) {
				r.Errorf("%q is in %s", s, text)
			}
		}
		for _, s := range want.BodyHas {
			if !strings.Contains(text, s) {
				r.Errorf("%q is not in %s", s, text)
			}
		}
		return
	}
	if err != nil {
		r.Errorf("%s\n%v", r.c.Why, err)
		return
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.Error(err)
	}
	if res.StatusCode != want.Status {
		r.Errorf("status %d, want %d", res.StatusCode, want.Status)
	}
	if want.Body != nil && string(body) != latin(r.fill(*want.Body)) {
		r.Errorf("%s\nbody %q, want %q", r.c.Why, body, r.fill(*want.Body))
	}
	for _, s := range want.BodyLacks {
		if strings.Contains(string(body), s) {
			r.Errorf("%s\nbody has %q", r.c.Why, s)
		}
	}
	for name, v := range want.Headers {
		if got := res.Header.Get(name); got != r.fill(fmt.Sprint(v)) {
			r.Errorf("%s\n%s: %q, want %v", r.c.Why, name, got, v)
		}
	}
	for _, name := range want.Lacks {
		if v, ok := res.Header[http.CanonicalHeaderKey(name)]; ok {
			r.Errorf("%s\nanswer has %s: %q", r.c.Why, name, v)
		}
	}
}

func (r *caseRun) checkSeen(want caseExpect, parallel int) {
	if len(want.Seen) == 0 {
		return
	}
	if string(want.Seen) == "null" {
		if len(r.seen) > 0 {
			r.Errorf("%s\nthe origin got %v", r.c.Why, r.seen[0].Header)
		}
		return
	}
	var list []caseSeen
	if json.Unmarshal(want.Seen, &list) != nil {
		list = make([]caseSeen, 1)
		if err := json.Unmarshal(want.Seen, &list[0]); err != nil {
			r.Fatal(err)
		}
	}
	if len(r.seen) != len(list)*parallel {
		r.Fatalf("%s\nthe origin got %d requests, want %d", r.c.Why, len(r.seen), len(list)*parallel)
	}
	for i, got := range r.seen {
		w := list[i%len(list)]
		target := got.URL.Opaque
		if got.URL.RawQuery != "" {
			target += "?" + got.URL.RawQuery
		}
		if w.Target != nil && target != *w.Target {
			r.Errorf("%s\ntarget %q, want %q", r.c.Why, target, *w.Target)
		}
		for name, v := range w.Headers {
			if g := got.Header[http.CanonicalHeaderKey(name)]; len(g) != 1 || g[0] != r.fill(fmt.Sprint(v)) {
				r.Errorf("%s\n%s: %q, want %q", r.c.Why, name, g, v)
			}
		}
		for _, name := range w.Lacks {
			if v, ok := got.Header[http.CanonicalHeaderKey(name)]; ok {
				r.Errorf("%s\nthe origin got %s: %q", r.c.Why, name, v)
			}
		}
		if w.Body != nil && r.bodies[i] != latin(r.fill(*w.Body)) {
			r.Errorf("%s\nbody %q, want %q", r.c.Why, r.bodies[i], *w.Body)
		}
	}
}

// entryOf reads an entry as the policy's loader does, for what the cases write.
func entryOf(t *testing.T, raw string) credbroker.Entry {
	var m struct {
		ID, Type, Target, Header, Param, Username, Inject, Own, Linger, Default string
		Targets, Profiles                                                       []string
		Env                                                                     words
		Source, SessionToken                                                    *struct {
			Env, File, TTL string
			Command        any
		}
		Session *struct{ Env string } `json:"session_token"`
		Ranges  bool
		Canary  bool
		Issue   bool
		KeyID   string `json:"access_key_id"`
		URL     string `json:"token_url"`
		Client  string `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	e := credbroker.Entry{
		ID: m.ID, Type: m.Type, Env: m.Env, Header: m.Header, Param: m.Param, Username: m.Username, Inject: m.Inject, Own: m.Own,
		Ranges: m.Ranges, Canary: m.Canary, Issue: m.Issue, AccessKeyID: m.KeyID, TokenURL: m.URL, ClientID: m.Client,
		Profiles: m.Profiles, Default: m.Default, Grant: "client_credentials",
	}
	if e.Username == "" && slices.Contains([]string{"https_basic", "git_https", "gh_basic"}, e.Type) {
		e.Username = "x-access-token"
	}
	e.Linger, _ = time.ParseDuration(m.Linger)
	if m.Target != "" {
		m.Targets = []string{m.Target}
	}
	if len(m.Targets) == 0 && m.Type == "gh_basic" {
		m.Targets = []string{"github.com", "gist.github.com", "api.github.com", "uploads.github.com"}
	}
	for _, text := range m.Targets {
		target := credbroker.Target{Text: text, Port: 443}
		host, path, ok := strings.Cut(text, "/")
		if ok {
			target.Path = "/" + path
		}
		host, port, ok := strings.Cut(host, ":")
		if ok {
			fmt.Sscan(port, &target.Port)
		}
		target.Host = strings.ToLower(host)
		e.Targets = append(e.Targets, target)
	}
	if m.Source != nil {
		e.Source = &credbroker.Source{Env: m.Source.Env, File: m.Source.File}
		e.Source.TTL, _ = time.ParseDuration(m.Source.TTL)
		switch c := m.Source.Command.(type) {
		case []any:
			for _, w := range c {
				e.Source.Command = append(e.Source.Command, w.(string))
			}
		case string: // no case has more than quotes around one word
			for i, w := range strings.Split(c, "'") {
				if i%2 == 0 {
					e.Source.Command = append(e.Source.Command, strings.Fields(w)...)
				} else {
					e.Source.Command = append(e.Source.Command, w)
				}
			}
		}
	}
	if m.Session != nil {
		e.SessionToken = &credbroker.Source{Env: m.Session.Env}
	}
	return e
}
