package metrics

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
)

func page(t *testing.T, c *Counts, accept string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
	r.Header.Set("Accept", accept)
	c.Handler().ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// Each record moves what it is about and nothing else.
func TestCount(t *testing.T) {
	for _, x := range []struct {
		record audit.Record
		want   []string
	}{
		{audit.Record{Kind: audit.KindRequest, Verdict: "allow", Reason: "rule", Rule: "GET a.test/**", Method: "GET", BytesIn: 5, BytesOut: 7, Duration: 20 * time.Millisecond, TTFB: time.Millisecond},
			[]string{`egressd_requests_total{method="GET",reason="rule",rule="1a7810e1",verdict="allow"} 1`, `egressd_request_bytes_total{direction="in"} 5`,
				`egressd_request_bytes_total{direction="out"} 7`, `egressd_request_duration_seconds_count 1`, `egressd_ttfb_seconds_count 1`, `egressd_audit_records_total{kind="request"} 1`}},
		{audit.Record{Kind: audit.KindRequest, Verdict: "error", Reason: "upstream_tls", Method: "BREW"},
			[]string{`egressd_requests_total{method="other",reason="upstream_tls",rule="",verdict="error"} 1`, `egressd_upstream_errors_total{reason="upstream_tls"} 1`}},
		{audit.Record{Kind: audit.KindRequestOpen, Verdict: "allow", Reason: "rule"}, []string{`egressd_audit_records_total{kind="request_open"} 1`}},
		{audit.Record{Kind: audit.KindDNS, Verdict: "deny"}, []string{`egressd_dns_questions_total{verdict="deny"} 1`}},
		{audit.Record{Kind: audit.KindCredential, Credential: "a"}, []string{`egressd_credential_uses_total{credential="a"} 1`}},
		{audit.Record{Kind: audit.KindLeak, Credential: "a"}, []string{`egressd_credential_leaks_total{credential="a"} 1`}},
		{audit.Record{Kind: audit.KindLeak}, []string{`egressd_credential_leaks_total{credential="unknown"} 1`}},
		{audit.Record{Kind: audit.KindRedaction, Credential: "a"}, []string{`egressd_redactions_total{credential="a"} 1`}},
		{audit.Record{Kind: audit.KindReload, Verdict: "allow"}, []string{`egressd_policy_generation 2`, `egressd_policy_stale 0`}},
		{audit.Record{Kind: audit.KindReload, Verdict: "deny"}, []string{`egressd_policy_generation 1`, `egressd_policy_stale 1`}},
	} {
		c := New("1.2.3")
		before := page(t, c, "")
		x.record.Time = time.Now()
		c.Count(&x.record)
		after := page(t, c, "")
		for _, want := range append(x.want, `egressd_build_info{version="1.2.3"} 1`) {
			if !strings.Contains(after, want+"\n") {
				t.Errorf("%+v: no %s in\n%s", x.record, want, after)
			}
		}
		if x.record.Kind == audit.KindRequestOpen && strings.Contains(after, "egressd_requests_total{") != strings.Contains(before, "egressd_requests_total{") {
			t.Error("what is still open is counted as a request")
		}
	}
}

// Whoever makes requests does not choose how many series there are.
func TestClosedLabels(t *testing.T) {
	c := New("")
	for i := range 1000 {
		c.Count(&audit.Record{Kind: audit.KindRequest, Verdict: "allow", Reason: "rule", Host: fmt.Sprint(i), Path: fmt.Sprint(i),
			Method: fmt.Sprintf("M%d", i), Rule: fmt.Sprintf("GET h%d.test/**", i)})
	}
	text := page(t, c, "")
	if n := strings.Count(text, "egressd_requests_total{"); n != ruleMost+1 {
		t.Errorf("%d series, want one for each of %d rules and one for the others", n, ruleMost)
	}
	if !strings.Contains(text, `rule="other",verdict="allow"} 800`) {
		t.Errorf("rules beyond the first are not counted together")
	}
}

// OpenMetrics carries the ids by which a record is found.
func TestExemplars(t *testing.T) {
	c := New("")
	c.Count(&audit.Record{Kind: audit.KindRequest, Verdict: "deny", Reason: "no_rule", Method: "GET", RequestID: "q7", Duration: time.Second, Time: time.Now()})
	c.Count(&audit.Record{Kind: audit.KindLeak, Credential: "a", RequestID: "q8"})
	text := page(t, c, "application/openmetrics-text; version=1.0.0")
	for _, want := range []string{`verdict="deny"} 1.0 # {request_id="q7"} 1.0`, `credential="a"} 1.0 # {request_id="q8"} 1.0`, `le="1.0"} 1 # {request_id="q7"} 1.0`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	c := New("")
	r := &audit.Record{Kind: audit.KindRequest, Verdict: "allow", Reason: "rule", Rule: "GET a.test/**", Method: "GET", RequestID: "0123456789abcdef", Duration: time.Millisecond, TTFB: time.Millisecond, Time: time.Now()}
	for b.Loop() {
		c.Count(r)
	}
}
