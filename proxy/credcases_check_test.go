package proxy_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
)

// checkAnswer holds one answer against expect.
func (h *credHouse) checkAnswer(t *testing.T, s credStep, got credAnswer, last time.Time) {
	t.Helper()
	want := *s.Expect
	if len(proxytest.Values(got.Fields, "Content-Encoding")) > 0 {
		plain, err := gunzipped(got.Body)
		if err != nil {
			t.Errorf("undoing the coding of the answer: %v", err)
		}
		got.Body = plain
	}
	plain := wireAnswer{Status: want.Status, Reason: want.Reason, Lacks: want.Lacks, Headers: h.fillValues(want.Headers),
		Trailers: h.fillValues(want.Trailers), BodyHas: h.fillAll(want.BodyHas), BodyLack: h.fillAll(want.BodyLacks)}
	if want.Body != nil {
		body := proxytest.Bytes(h.fill(string(*want.Body)))
		plain.Body = &body
	}
	for _, in := range want.Interim {
		in.Headers = h.fillValues(in.Headers)
		plain.Interim = append(plain.Interim, in)
	}
	for _, fault := range plain.faults(got.Answer, s.Send.Method) {
		t.Errorf("answer: %s", fault)
	}
	h.checkForms(t, want, got)
	if want.FirstByte && (got.firstByte.IsZero() || !got.firstByte.Before(last)) {
		t.Errorf("the first byte came at %v, the last chunk was sent at %v", got.firstByte, last)
	}
}

// checkForms looks at the answer in the ways that a client may read it.
func (h *credHouse) checkForms(t *testing.T, want credExpect, got credAnswer) {
	t.Helper()
	fields := slices.Concat(got.Fields, got.Trailers)
	for _, in := range got.Interim {
		fields = append(fields, in.Fields...)
	}
	all := got.Body
	for _, f := range fields {
		all += "\n\n" + f.Name + ": " + f.Value
		for _, text := range want.HeadersLack {
			if text = h.fill(text); strings.Contains(f.Name+": "+f.Value, text) {
				t.Errorf("header %s has %q", f.Name, text)
			}
		}
	}
	for _, text := range want.DecodedLacks {
		if run := decodedIn(all, h.fill(text)); run != "" {
			t.Errorf("%q decodes to what has %q", run, text)
		}
	}
	var doc any
	err := json.Unmarshal([]byte(got.Body), &doc)
	if (want.JSONValid || want.JSONLacks != nil) && err != nil {
		t.Errorf("body is no JSON: %v: %q", err, got.Body)
	}
	for _, text := range want.JSONLacks {
		if stringsHave(doc, h.fill(text)) {
			t.Errorf("JSON holds %q: %q", text, got.Body)
		}
	}
	if length := proxytest.Values(got.Fields, "Content-Length"); want.WellFramed && (!got.Whole || length != nil && !slices.Equal(length, []string{fmt.Sprint(len(got.raw))})) {
		t.Errorf("whole %v, Content-Length %q, %d bytes", got.Whole, length, len(got.raw))
	}
}

var (
	lineEnds   = strings.NewReplacer("\r", "", "\n", "", `\r`, "", `\n`, "", `\/`, "/")
	base64Runs = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}`)
	toStandard = strings.NewReplacer("-", "+", "_", "/")
)

// decodedIn gives a base64 run of the text, line breaks ignored, in which the
// secret stands, in any alignment; "" for none.
func decodedIn(text, secret string) string {
	for part := range strings.SplitSeq(text, "\n\n") {
		for _, run := range base64Runs.FindAllString(lineEnds.Replace(part), -1) {
			letters := toStandard.Replace(run)
			for from := range min(4, len(letters)) {
				whole := letters[from:]
				if len(whole)%4 == 1 {
					whole = whole[:len(whole)-1]
				}
				plain, err := base64.RawStdEncoding.DecodeString(whole)
				if err == nil && bytes.Contains(plain, []byte(secret)) {
					return run
				}
			}
		}
	}
	return ""
}

// stringsHave looks for text in every string of a JSON value.
func stringsHave(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return stringsHave(v, text) })
	case map[string]any:
		for name, v := range v {
			if strings.Contains(name, text) || stringsHave(v, text) {
				return true
			}
		}
	}
	return false
}

// checkSeen compares what the step brought to the origin: each request of the
// list in turn, that often.
func (h *credHouse) checkSeen(t *testing.T, c credCase, s credStep, before proxytest.Seen, times int) {
	t.Helper()
	if s.Expect.Seen == nil {
		t.Error("the case says nothing of the origin")
		return
	}
	wanted := times * len(*s.Expect.Seen)
	seen := h.origin.Seen()
	for end := time.Now().Add(time.Second); len(seen.Requests)-len(before.Requests) < wanted && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		seen = h.origin.Seen()
	}
	requests := seen.Requests[len(before.Requests):]
	if len(requests) != wanted || seen.Partial != 0 || len(seen.Faults) != 0 {
		t.Errorf("origin got %d requests, want %d; %d bytes beside them, faults %q", len(requests), wanted, seen.Partial, seen.Faults)
		return
	}
	for i, m := range requests {
		for _, fault := range h.seenFaults((*s.Expect.Seen)[i/times], m) {
			t.Errorf("request %d at the origin: %s", i+1, fault)
		}
	}
	// What is refused for its credential is not even dialled or looked up.
	if wanted == 0 && c.Origin == "" && c.Resolve == nil {
		if len(seen.Dialled) != len(before.Dialled) || len(h.resolver.Asked()) > len(before.Dialled) {
			t.Errorf("the origin was looked up or dialled: %q, %v", h.resolver.Asked(), seen.Dialled)
		}
	}
}

func (h *credHouse) seenFaults(want credSeen, m proxytest.Message) (faults []string) {
	line := m.Line
	if want.Target != nil {
		parts := strings.Split(m.Line, " ")
		if len(parts) != 3 || parts[1] != h.fill(*want.Target) {
			faults = append(faults, fmt.Sprintf("line %q, want target %q", m.Line, h.fill(*want.Target)))
		}
	}
	w := wireSeen{Line: proxytest.Bytes(line), Headers: h.fillValues(want.Headers), Lacks: want.Lacks}
	if want.Body != nil {
		body := proxytest.Bytes(h.fill(string(*want.Body)))
		w.Body = &body
	}
	faults = append(faults, w.faults(m)...)
	if v := proxytest.Values(m.Fields, "Via"); v != nil {
		faults = append(faults, fmt.Sprintf("Via is %q", v))
	}
	if v := proxytest.Values(m.Fields, "User-Agent"); v != nil { // no client of a case sends one
		faults = append(faults, fmt.Sprintf("User-Agent is %q", v))
	}
	if want.Accepts == nil {
		return faults
	}
	accepts := proxytest.Values(m.Fields, "Accept-Encoding")
	for coding := range strings.SplitSeq(strings.Join(accepts, ","), ",") {
		if coding, _, _ = strings.Cut(coding, ";"); !slices.Contains(want.Accepts, strings.Trim(coding, " ")) {
			faults = append(faults, fmt.Sprintf("Accept-Encoding is %q, want within %q", accepts, want.Accepts))
		}
	}
	return faults
}

// recordText is what the record of the house looks like when it is written.
func (h *credHouse) recordText(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(audit.Config{File: file, Session: "case", Query: audit.QueryFull, Mask: h.broker.Mask})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range audit.Kinds() {
		for _, r := range h.sink.of(kind) {
			r.Reserved = false
			if err := log.Append(&r); err != nil {
				t.Errorf("recording: %v", err)
			}
		}
	}
	if err := log.Close("exit"); err != nil {
		t.Errorf("closing the record: %v", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkRecords looks for the event of the step, and that every request has its
// record with the reason that the client was told.
func (h *credHouse) checkRecords(t *testing.T, s credStep) {
	t.Helper()
	want := s.Expect
	h.asked += max(1, s.Parallel)
	requests := h.sink.wait(audit.KindRequest, h.asked, 2*time.Second)
	if len(requests) != h.asked {
		t.Errorf("%d records of requests, want %d", len(requests), h.asked)
		return
	}
	for _, r := range requests[h.asked-max(1, s.Parallel):] {
		checkRecord(t, r)
		if !want.Status.holds(r.Status) || want.Reason != nil && !want.Reason.holds(r.Reason) || want.Reason == nil && r.Reason != "rule" {
			t.Errorf("record says %d %s", r.Status, r.Reason)
		}
	}
	if want.Event != "" {
		events := h.sink.wait(audit.Kind(want.Event), 1, time.Second)
		if len(events) == 0 {
			t.Errorf("no record of kind %s", want.Event)
		}
		for _, e := range events {
			if !slices.ContainsFunc(requests, func(r audit.Record) bool { return r.RequestID == e.RequestID }) {
				t.Errorf("%s is of no request: %+v", want.Event, e)
			}
		}
	}
	if want.AuditHas == nil && want.AuditLacks == nil && want.StderrLacks == nil {
		return
	}
	text := h.recordText(t)
	for _, has := range want.AuditHas {
		if !strings.Contains(text, h.fill(has)) {
			t.Errorf("record lacks %q: %s", has, text)
		}
	}
	for _, lacks := range want.AuditLacks {
		if strings.Contains(text, h.fill(lacks)) {
			t.Errorf("record has %q: %s", lacks, text)
		}
	}
	for _, lacks := range want.StderrLacks {
		if log := h.log.String(); strings.Contains(log, h.fill(lacks)) {
			t.Errorf("log has %q: %s", lacks, log)
		}
	}
}

// checkQuiet looks for every secret and placeholder of the case where none may
// ever stand.
func (h *credHouse) checkQuiet(t *testing.T, c credCase) {
	t.Helper()
	text, log := h.recordText(t), h.log.String()
	for name, secret := range c.Sources.Env {
		if secret = strings.TrimSpace(secret); name == "PATH" || len(secret) < 8 {
			continue
		}
		if strings.Contains(text, secret) || strings.Contains(log, secret) {
			t.Errorf("record or log has the secret of %s: %s%s", name, text, log)
		}
	}
	if strings.Contains(text, "oa_cred_") {
		t.Errorf("record has a placeholder: %s", text)
	}
	if n := h.sink.held(); n != 0 {
		t.Errorf("%d reservations were neither used nor released", n)
	}
}
