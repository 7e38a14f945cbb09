package proxy_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/cases"
	"github.com/egressd/egressd/internal/proxytest"
)

// credCase is one line of credentials.jsonl.
type credCase struct {
	ID, Why string
	Q       int
	Rules   []any
	Entries json.RawMessage
	Sandbox map[string]any
	Sources credSources
	Origin  string
	Resolve map[string][][]string

	credStep
	Steps         []credStep
	TokenEndpoint map[string][]credUpstream `json:"token_endpoint"`
	TokenRequests map[string]int            `json:"token_requests"`
	StartError    *credStartError           `json:"start_error"`
	Inside        json.RawMessage           // run by the built binary, in cmd/egressd
}

// credSources is what the host has before the start.
type credSources struct {
	Env   map[string]string
	Files map[string]string
	Dirs  []string
	Exec  []string
}

// credStep is a request and what must come of it, or what happens in between.
type credStep struct {
	Send      *credSend
	Upstream  []credUpstream
	Expect    *credExpect
	Parallel  int
	Advance   string
	SetFile   map[string]string `json:"set_file"`
	FileLines map[string]int    `json:"file_lines"`
}

type credSend struct {
	Method, URL string
	Headers     [][2]string
	Body        *credBody
	Trailers    [][2]string
}

// credUpstream is an answer of an origin, or of a token endpoint.
type credUpstream struct {
	Status     int
	Headers    [][2]string
	Body       credBody
	Chunks     []proxytest.Bytes
	ChunkGapMS int `json:"chunk_gap_ms"`
	Trailers   [][2]string
	Encoding   string
	Split      int
	Interim    []credUpstream
	Raw        *proxytest.Bytes
}

// credBody is a text of bytes, or a list of texts and of repeated ones.
type credBody string

func (b *credBody) UnmarshalJSON(data []byte) error {
	var one proxytest.Bytes
	if json.Unmarshal(data, &one) == nil {
		*b = credBody(one)
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, item := range list {
		var p piece
		if err := json.Unmarshal(item, &p); err != nil {
			return err
		}
		*b += credBody(p.text)
	}
	return nil
}

type credExpect struct {
	Status  anyOf
	Reason  anyOf
	Seen    *credSeens
	Headers map[string]values
	Lacks   []string
	Body    *proxytest.Bytes

	BodyHas      []proxytest.Bytes `json:"body_has"`
	BodyLacks    []proxytest.Bytes `json:"body_lacks"`
	HeadersLack  []string          `json:"headers_lack"`
	Trailers     map[string]values
	Interim      []wireAnswer
	DecodedLacks []string `json:"decoded_lacks"`
	JSONValid    bool     `json:"json_valid"`
	JSONLacks    []string `json:"json_lacks"`
	WellFramed   bool     `json:"well_framed"`
	FirstByte    bool     `json:"first_byte_before_last_chunk"`
	Event        string
	AuditHas     []string `json:"audit_has"`
	AuditLacks   []string `json:"audit_lacks"`
	StderrLacks  []string `json:"stderr_lacks"`
}

// UnmarshalJSON tells a seen of null, which is nothing, from one that is absent.
func (e *credExpect) UnmarshalJSON(data []byte) error {
	type plain credExpect
	if err := strictJSON(data, (*plain)(e)); err != nil {
		return err
	}
	var has map[string]json.RawMessage
	if err := json.Unmarshal(data, &has); err != nil {
		return err
	}
	if seen, ok := has["seen"]; ok && string(seen) == "null" {
		e.Seen = &credSeens{}
	}
	return nil
}

// credSeens are the requests that the origin must have got, in order.
type credSeens []credSeen

type credSeen struct {
	Target  *string
	Headers map[string]values
	Lacks   []string
	Body    *proxytest.Bytes
	Accepts []string `json:"accept_encoding_within"`
}

func (s *credSeens) UnmarshalJSON(data []byte) error {
	var one credSeen
	if data[0] == '{' {
		if err := strictJSON(data, &one); err != nil {
			return err
		}
		*s = credSeens{one}
		return nil
	}
	return strictJSON(data, (*[]credSeen)(s))
}

// credStartError is what a run that does not start says.
type credStartError struct {
	Entry   string
	Has     []string
	Lacks   []string
	WithinS int `json:"within_s"`
}

// TestCredentialCases runs every line of credentials.jsonl against a Server with
// a real broker, but what a line says of the inside of a sandbox: that, and the
// lines that say nothing else, are run in cmd/egressd by the built binary.
func TestCredentialCases(t *testing.T) {
	cases.Each(t, "credentials.jsonl", func(t *testing.T, c credCase) {
		t.Parallel()
		switch {
		case c.StartError != nil:
			runStartError(t, c)
		case len(c.steps()) > 0:
			runCredCase(t, c, false)
		case c.Inside == nil:
			t.Error("the line says nothing")
		}
	})
}

// TestCredentialCasesHTTP2 has the same requests made over HTTP/2, where they
// can be: the outcome is the same.
func TestCredentialCasesHTTP2(t *testing.T) {
	cases.Each(t, "credentials.jsonl", func(t *testing.T, c credCase) {
		t.Parallel()
		for _, s := range c.steps() {
			if s.Send != nil && !s.Send.isHTTP2() {
				return
			}
		}
		if c.StartError == nil && len(c.steps()) > 0 {
			runCredCase(t, c, true)
		}
	})
}

// steps are the steps of a line; a line that has none but a request is one.
func (c *credCase) steps() []credStep {
	if c.Send == nil {
		return c.Steps
	}
	return append([]credStep{c.credStep}, c.Steps...)
}

func runCredCase(t *testing.T, c credCase, http2 bool) {
	h := newCredHouse(t, c)
	h.http2 = http2
	steps := c.steps()
	for i, step := range steps {
		if !h.step(t, c, step) {
			t.Fatalf("step %d failed", i+1)
		}
	}
	for url, want := range c.TokenRequests {
		if got := h.tokens.requests(url); got != want {
			t.Errorf("%s got %d requests, want %d", url, got, want)
		}
	}
	h.checkQuiet(t, c)
}

// step does one step, and is false where it failed.
func (h *credHouse) step(t *testing.T, c credCase, s credStep) bool {
	for path, text := range s.SetFile {
		h.host.write(path, text)
	}
	if s.Advance != "" {
		d, err := time.ParseDuration(s.Advance)
		if err != nil {
			t.Fatalf("advance: %v", err)
		}
		h.host.advance(d)
	}
	for path, want := range s.FileLines {
		if got := strings.Count(h.host.read(path), "\n"); got != want {
			t.Errorf("%s has %d lines, want %d", path, got, want)
		}
	}
	if s.Send == nil {
		return !t.Failed()
	}
	times := max(1, s.Parallel)
	before := h.origin.Seen()
	var lastChunk moment
	var scripts []proxytest.Script
	for range times {
		for _, u := range s.Upstream {
			scripts = append(scripts, u.script(h, &lastChunk))
		}
	}
	h.origin.Then(scripts...)
	answers := make([]credAnswer, times)
	done := make(chan struct{})
	for i := range answers {
		go func() {
			defer func() { done <- struct{}{} }()
			answers[i] = h.send(t, *s.Send)
		}()
	}
	for range answers {
		<-done
	}
	for _, a := range answers {
		h.checkAnswer(t, s, a, lastChunk.get())
	}
	h.checkSeen(t, c, s, before, times)
	h.checkRecords(t, s)
	if t.Failed() {
		for _, a := range answers {
			t.Logf("client got:\n%.4096s", show([]proxytest.Answer{a.Answer}))
		}
		for _, text := range h.origin.Seen().Bytes[len(before.Bytes):] {
			t.Logf("origin got: %.4096q", text)
		}
	}
	return !t.Failed()
}

var filled = regexp.MustCompile(`\$\{(ph|b64|b64nopad|pct|upper):([^{}]*)\}`)

// fill puts placeholders and encodings in, the inner ones first.
func (h *credHouse) fill(s string) string {
	for {
		at := filled.FindStringSubmatchIndex(s)
		if at == nil {
			return s
		}
		kind, text := s[at[2]:at[3]], s[at[4]:at[5]]
		s = s[:at[0]] + h.encode(kind, text) + s[at[1]:]
	}
}

func (h *credHouse) encode(kind, text string) string {
	switch kind {
	case "ph":
		id, part, _ := strings.Cut(text, ":")
		ph := h.broker.Placeholder(id, part)
		if ph == "" {
			h.t.Fatalf("entry %q has no placeholder %q", id, part)
		}
		return ph
	case "b64":
		return base64.StdEncoding.EncodeToString([]byte(text))
	case "b64nopad":
		return base64.RawStdEncoding.EncodeToString([]byte(text))
	case "upper":
		return strings.ToUpper(text)
	}
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02X", text[i])
	}
	return b.String()
}

func (h *credHouse) fillAll(list []proxytest.Bytes) []proxytest.Bytes {
	out := slices.Clone(list)
	for i := range out {
		out[i] = proxytest.Bytes(h.fill(string(out[i])))
	}
	return out
}

func (h *credHouse) fillValues(m map[string]values) map[string]values {
	out := map[string]values{}
	for name, v := range m {
		out[name] = h.fillAll(v)
	}
	return out
}
