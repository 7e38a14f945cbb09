package proxy_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// checkAnswers compares what the client got with expect.
func checkAnswers(t *testing.T, c wireCase, got talked) {
	t.Helper()
	for i, want := range c.Expect {
		if i >= len(got.answers) {
			break
		}
		for _, fault := range want.faults(got.answers[i], method(got.methods, i)) {
			t.Errorf("answer %d: %s", i+1, fault)
		}
	}
	if len(got.answers) != len(c.Expect) {
		t.Errorf("client got %d answers, want %d", len(got.answers), len(c.Expect))
	}
	then := proxytest.Bytes("")
	if n := len(c.Expect); n > 0 && c.Expect[n-1].Then != nil {
		then = *c.Expect[n-1].Then
	}
	if string(got.then) != string(then) {
		t.Errorf("behind the last answer came %q, want %q", got.then, then)
	}
	if c.Closed != nil && *c.Closed != got.closed {
		t.Errorf("closed by the proxy: %v, want %v", got.closed, *c.Closed)
	}
	if t.Failed() {
		t.Logf("client got:\n%s", show(got.answers))
	}
}

func method(methods []string, i int) string {
	if i < len(methods) {
		return methods[i]
	}
	return "GET"
}

// faults lists in what the answer is not the wanted one.
func (want wireAnswer) faults(a proxytest.Answer, method string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if a.Reset && a.Status == 0 {
		if !want.Status.holds("reset") {
			fault("stream was reset, want status %v", want.Status)
		}
		return faults
	}
	if !want.Status.holds(a.Status) {
		fault("status %d, want %v", a.Status, want.Status)
	}
	if want.Reason != nil {
		faults = append(faults, want.reasonFaults(a, method)...)
	}
	for name, v := range want.Headers {
		if !v.fit(a.Fields, name) {
			fault("%s is %q, want %q", name, proxytest.Values(a.Fields, name), v)
		}
	}
	for _, name := range want.Lacks {
		if v := proxytest.Values(a.Fields, name); v != nil {
			fault("%s is there: %q", name, v)
		}
	}
	if want.Body != nil && a.Body != string(*want.Body) {
		fault("body %q, want %q", a.Body, *want.Body)
	}
	for _, s := range want.BodyHas {
		if !strings.Contains(a.Body, string(s)) {
			fault("body lacks %q", s)
		}
	}
	for _, s := range want.BodyLack {
		if strings.Contains(a.Body, string(s)) {
			fault("body has %q", s)
		}
	}
	for name, v := range want.Trailers {
		if !v.fit(a.Trailers, name) {
			fault("trailer %s is %q, want %q", name, proxytest.Values(a.Trailers, name), v)
		}
	}
	if want.Interim != nil {
		faults = append(faults, want.interimFaults(a)...)
	}
	if want.Broken == a.Whole {
		fault("whole: %v", a.Whole)
	}
	return append(faults, want.problemFaults(a)...)
}

// reasonFaults looks for the reason in both places; an answer to HEAD has no
// document.
func (want wireAnswer) reasonFaults(a proxytest.Answer, method string) (faults []string) {
	var details string
	for _, member := range proxytest.Values(a.Fields, "Proxy-Status") {
		if rest, ok := strings.CutPrefix(member, "egressd; error=http_request_denied; details=\""); ok {
			details = strings.TrimSuffix(rest, "\"")
		}
	}
	if !want.Reason.holds(details) {
		faults = append(faults, fmt.Sprintf("Proxy-Status says %q (%q), want %v", details, proxytest.Values(a.Fields, "Proxy-Status"), want.Reason))
	}
	if method == "HEAD" {
		return faults
	}
	var doc struct{ Code string }
	if err := json.Unmarshal([]byte(a.Body), &doc); err != nil {
		return append(faults, fmt.Sprintf("no problem document: %v in %q", err, a.Body))
	}
	if !want.Reason.holds(doc.Code) || doc.Code != details {
		faults = append(faults, fmt.Sprintf("code is %q, want %v", doc.Code, want.Reason))
	}
	return faults
}

func (want wireAnswer) interimFaults(a proxytest.Answer) (faults []string) {
	if len(a.Interim) != len(want.Interim) {
		return []string{fmt.Sprintf("%d interim answers, want %d", len(a.Interim), len(want.Interim))}
	}
	for i, w := range want.Interim {
		in := a.Interim[i]
		in.Whole = true
		for _, f := range w.faults(in, "GET") {
			faults = append(faults, fmt.Sprintf("interim %d: %s", i+1, f))
		}
	}
	return faults
}

func (want wireAnswer) problemFaults(a proxytest.Answer) (faults []string) {
	if want.Problem == nil {
		return nil
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(a.Body), &doc); err != nil {
		return []string{fmt.Sprintf("no problem document: %v in %q", err, a.Body)}
	}
	for name, v := range want.Problem {
		got, there := doc[name]
		if v == "*" && there && got != "" && got != nil {
			continue
		}
		if !reflect.DeepEqual(got, v) {
			faults = append(faults, fmt.Sprintf("problem member %s is %v, want %v", name, got, v))
		}
	}
	return faults
}

// settle waits until the origin has what it must get, at most a second: an
// answer may reach the client before the origin's recorder is done.
func settle(h *house, c wireCase) {
	for range 100 {
		s := h.origin.Seen()
		all := strings.Join(s.Bytes, "")
		if (c.Seen == nil || len(s.Requests) >= len(*c.Seen)) && (c.Raw == nil || len(all) >= len(*c.Raw)) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// checkSeen compares what reached the origin and the resolver.
func checkSeen(t *testing.T, h *house, c wireCase) {
	t.Helper()
	s := h.origin.Seen()
	all := strings.Join(s.Bytes, "\n")
	if c.Raw != nil && all != string(*c.Raw) {
		t.Errorf("origin got %q, want %q", all, *c.Raw)
	}
	for _, never := range c.Never {
		if strings.Contains(all, string(never)) || strings.Contains(strings.Join(s.Wire, "\n"), string(never)) {
			t.Errorf("origin got %q", never)
		}
	}
	for _, name := range c.NoLookup {
		if slices.Contains(h.resolver.Asked(), name) {
			t.Errorf("%s was looked up", name)
		}
	}
	for _, addr := range c.NeverDialled {
		if slices.ContainsFunc(s.Dialled, func(d dialledAddr) bool { return d.Addr().Unmap().String() == addr }) {
			t.Errorf("%s was dialled", addr)
		}
	}
	if c.Seen == nil {
		return
	}
	if !c.PartialOK && (s.Partial > 0 || len(s.Faults) > 0) {
		t.Errorf("origin got %d bytes outside whole requests, faults %q: %q", s.Partial, s.Faults, s.Bytes)
	}
	requests := s.Requests
	if c.ALPN == "h2" {
		requests = inOrder(requests, *c.Seen)
	}
	if len(requests) != len(*c.Seen) {
		t.Errorf("origin got %d whole requests, want %d:\n%q", len(requests), len(*c.Seen), s.Bytes)
		return
	}
	for i, want := range *c.Seen {
		for _, fault := range want.faults(requests[i]) {
			t.Errorf("request %d at the origin: %s\n%q", i+1, fault, s.Bytes)
		}
	}
}

// inOrder sorts requests by the place of their line in want: streams may reach
// the origin in any order.
func inOrder(requests []proxytest.Message, want []wireSeen) []proxytest.Message {
	place := func(m proxytest.Message) int {
		return slices.IndexFunc(want, func(w wireSeen) bool { return string(w.Line) == m.Line })
	}
	return slices.SortedStableFunc(slices.Values(requests), func(a, b proxytest.Message) int { return place(a) - place(b) })
}

func (want wireSeen) faults(m proxytest.Message) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if m.Line != string(want.Line) {
		fault("line %q, want %q", m.Line, want.Line)
	}
	for name, v := range want.Headers {
		if !v.fit(m.Fields, name) {
			fault("%s is %q, want %q", name, proxytest.Values(m.Fields, name), v)
		}
	}
	for _, name := range want.Lacks {
		if v := proxytest.Values(m.Fields, name); v != nil {
			fault("%s is there: %q", name, v)
		}
	}
	if want.Body != nil && m.Body != string(*want.Body) {
		fault("body %q, want %q", m.Body, *want.Body)
	}
	for name, v := range want.Trailers {
		if !v.fit(m.Trailers, name) {
			fault("trailer %s is %q, want %q", name, proxytest.Values(m.Trailers, name), v)
		}
	}
	return faults
}

// show prints answers for a person.
func show(answers []proxytest.Answer) string {
	var b strings.Builder
	for i, a := range answers {
		fmt.Fprintf(&b, "%d: %d whole=%v reset=%v interim=%d %v trailers=%v\n   %q\n", i+1, a.Status, a.Whole, a.Reset, len(a.Interim), a.Fields, a.Trailers, a.Body)
	}
	return b.String()
}
