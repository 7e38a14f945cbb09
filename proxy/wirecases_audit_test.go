package proxy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
)

// errorReasons are those of verdict error; the others deny, but for these that
// allow.
var (
	errorReasons = []string{"dns", "connect", "upstream_tls", "upstream_reset", "timeout", "client_gone", "internal"}
	allowReasons = []string{"rule", "approved", "learned"}
)

func verdictOf(reason string) string {
	switch {
	case slices.Contains(allowReasons, reason):
		return "allow"
	case slices.Contains(errorReasons, reason):
		return "error"
	}
	return "deny"
}

// checkRecords holds the record against what the client got: one request for
// each answer, with its status and reason, and a connection's record only where
// no request came.
func checkRecords(t *testing.T, h *house, c wireCase, got talked) {
	t.Helper()
	var want []string // "status reason" of each answer
	for i, a := range got.answers {
		switch {
		case a.Reset && a.Status == 0:
			continue // the library's own reset: no request
		case method(got.methods, i) == "CONNECT" && a.Status == 200 && !h.origin.Raw && !got.h2:
			continue // inspected: what comes inside is the request
		}
		want = append(want, fmt.Sprintf("%d %s", a.Status, answerReason(i, c, got)))
	}
	wanted := len(want)
	if !got.h2 && len(got.methods) > len(got.answers) {
		wanted++ // perhaps: the head of what got no answer may have been whole
	}
	records := h.sink.wait(audit.KindRequest, wanted, time.Second)
	if len(records) < len(want) {
		records = h.sink.wait(audit.KindRequest, len(want), 3*time.Second)
	}
	if len(records) < len(want) && h.origin.Raw {
		// A tunnel's or switch's final record comes with its end.
		h.stop()
		records = h.sink.wait(audit.KindRequest, len(want), 3*time.Second)
	}
	var have []string
	cut := 0
	for _, r := range records {
		checkRecord(t, r)
		if r.Status == 0 && r.Reason == "client_gone" && len(got.methods) > len(got.answers) {
			cut++ // a request without an answer, since its client has gone
			continue
		}
		have = append(have, fmt.Sprintf("%d %s", r.Status, r.Reason))
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("records of requests say %q, the client got %q", have, want)
	}
	checkConnections(t, h, c, len(want)+cut)
	checkSecrets(t, h, c)
	for end := time.Now().Add(2 * time.Second); h.sink.held() > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := h.sink.held(); n != 0 {
		t.Errorf("%d reservations were neither used nor released", n)
	}
}

// answerReason is the reason that a record of the answer must have: the
// problem's where it is ours, else one that lets through.
func answerReason(i int, c wireCase, got talked) string {
	a := got.answers[i]
	switch {
	case i < len(c.Expect) && c.Expect[i].Broken:
		return "upstream_reset"
	case method(got.methods, i) == "CONNECT" && a.Status == 200 && len(c.Never) > 0:
		return "authority_mismatch" // opened, then broken off by the name in the hello
	}
	for _, f := range a.Fields {
		if rest, ok := strings.CutPrefix(f.Value, "egressd; error=http_request_denied; details=\""); ok && strings.EqualFold(f.Name, "Proxy-Status") {
			return strings.TrimSuffix(rest, "\"")
		}
	}
	return "rule"
}

// checkRecord holds one request's record to the closed sets.
func checkRecord(t *testing.T, r audit.Record) {
	t.Helper()
	if r.Verdict != verdictOf(r.Reason) {
		t.Errorf("record says verdict %q for reason %q", r.Verdict, r.Reason)
	}
	if r.RequestID == "" {
		t.Errorf("record has no request_id: %+v", r)
	}
	if r.Verdict == "allow" && r.Rule == "" && r.Host != "egressd.internal" && r.Method != "TRACE" {
		t.Errorf("record allows without a rule: %+v", r)
	}
	if r.Capture != "explicit" && r.Capture != "transparent" {
		t.Errorf("record has capture %q", r.Capture)
	}
}

// checkConnections wants a record of kind connection where no request came, and
// none else.
func checkConnections(t *testing.T, h *house, c wireCase, requests int) {
	t.Helper()
	list := h.sink.of(audit.KindConnection)
	if requests > 0 && c.Idle == 0 && len(list) > 0 {
		t.Errorf("a connection that brought %d requests has a record of its own: %+v", requests, list)
	}
	if requests > 0 {
		return
	}
	// The client has gone by now, or the proxy has closed.
	if list = h.sink.wait(audit.KindConnection, 1, 3*time.Second); len(list) == 0 {
		t.Errorf("a connection that brought no request has no record")
	}
	for _, r := range list {
		if r.Verdict != verdictOf(r.Reason) || r.Reason == "" {
			t.Errorf("connection has verdict %q and reason %q", r.Verdict, r.Reason)
		}
	}
}

// checkSecrets looks for what a record must never hold: values of headers that
// carry secrets, and user names of addresses.
func checkSecrets(t *testing.T, h *house, c wireCase) {
	t.Helper()
	never := []string{"bob@", "evil@"}
	for _, s := range c.Send {
		for line := range strings.Lines(string(s.text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "authorization", "proxy-authorization", "cookie":
				never = append(never, strings.TrimSpace(value))
			}
			if target, ok := strings.CutSuffix(strings.TrimSpace(line), " HTTP/1.1"); ok {
				if _, query, ok := strings.Cut(target, "?"); ok {
					for pair := range strings.SplitSeq(query, "&") {
						if name, value, ok := strings.Cut(pair, "="); ok && len(value) > 1 {
							never = append(never, name+"="+value)
						}
					}
				}
			}
		}
	}
	for _, kind := range audit.Kinds() {
		for _, r := range h.sink.of(kind) {
			r.Query = "" // what the writer takes the names from, never the values
			text, err := json.Marshal(r)
			if err != nil {
				t.Errorf("encoding record: %v", err)
			}
			for _, s := range never {
				if strings.Contains(string(text), s) {
					t.Errorf("record holds %q: %s", s, text)
				}
			}
		}
	}
}
