package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// freePort is one on which nobody listens now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func scrape(t *testing.T, addr string) string {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("scraping: %d %v", resp.StatusCode, err)
	}
	return string(text)
}

// sum adds the values of the series that a pattern of their beginning matches.
func sum(t *testing.T, text, series string) (total float64) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^`+series+`\S* (\S+)$`).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		total += v
	}
	return total
}

// The numbers are those of the record: requests by how they were judged, uses,
// leaks and redactions of credentials, policies.
func TestMetrics(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "home/tok", "tok-live-first-7Qm4x9Zr\n")
	addr := freePort(t)
	policy := p.credentialPolicy(t, "")
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "policy.yaml", string(text)+fmt.Sprintf("metrics: {listen: %q}\n", addr))
	s := p.serve(t, "--policy", policy, "--env-out", p.path("env"))
	if text := scrape(t, addr); sum(t, text, `egressd_credential_leaks_total`) != 0 || !strings.Contains(text, `egressd_credential_leaks_total{credential="trap"} 0`) {
		t.Errorf("before anything happened:\n%s", text)
	}
	env, err := os.ReadFile(p.path("env"))
	if err != nil {
		t.Fatal(err)
	}
	placeholder := regexp.MustCompile(`API_TOKEN='?(oa_cred_[\w-]+)`).FindSubmatch(env)
	canary := regexp.MustCompile(`BACKUP_KEY='?(oa_cred_[\w-]+)`).FindSubmatch(env)
	if placeholder == nil || canary == nil {
		t.Fatalf("no placeholders in %s", env)
	}
	for _, url := range []string{
		"https://api.test/a", "https://api.test/b", "https://other.test/", "https://api.test/" + string(placeholder[1]),
		"https://api.test/?k=" + string(canary[1]),
	} {
		s.get(t, url)
	}
	p.write(t, "policy.yaml", "sandbox: {egress_rules: [nonsense]}")
	if _, _, code := p.call(t, "reload"); code != 1 {
		t.Errorf("a reload of nonsense: %d", code)
	}
	got := scrape(t, addr)
	for series, want := range map[string]float64{
		`egressd_requests_total\{`: 5, `egressd_requests_total\{.*verdict="allow"`: 2, `egressd_requests_total\{.*reason="credential_leak"`: 2,
		`egressd_requests_total\{.*reason="no_rule"`:           1,
		`egressd_credential_uses_total\{credential="api"`:      2,
		`egressd_credential_leaks_total\{credential="api"`:     1,
		`egressd_credential_leaks_total\{credential="trap"`:    1,
		`egressd_credential_leaks_total\{credential="unknown"`: 0,
		`egressd_audit_records_total\{kind="session_start"`:    1,
		`egressd_request_duration_seconds_count`:               5,
		`egressd_ttfb_seconds_count`:                           2,
		`egressd_policy_generation`:                            1, `egressd_policy_stale`: 1,
		`egressd_build_info`: 1,
	} {
		if v := sum(t, got, series); v != want {
			t.Errorf("%s: %v, want %v", series, v, want)
		}
	}
	if strings.Contains(got, "api.test") || strings.Contains(got, string(placeholder[1])) || strings.Contains(got, "tok-live") {
		t.Errorf("a host, a placeholder or a secret is in the metrics:\n%s", got)
	}
	if lint, err := exec.LookPath("promtool"); err != nil {
		t.Error("promtool (Debian's prometheus) is needed here")
	} else {
		cmd := exec.CommandContext(t.Context(), lint, "check", "metrics")
		cmd.Stdin = strings.NewReader(got)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	}
	if code, _ := s.get(t, "http://"+addr+"/metrics"); code != 403 {
		t.Errorf("through the proxy the metrics answer %d", code)
	}
	s.stop(t)
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("the metrics are served behind the end")
	}
}

// A port in use starts nothing, and only /metrics is there.
func TestMetricsListen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := p.write(t, "policy.yaml", fmt.Sprintf("sandbox: {egress_rules: []}\nmetrics: {listen: %q}\n", l.Addr()))
	if _, errs, code := p.call(t, "serve", "--policy", file); code != 125 && code != 1 || !strings.Contains(errs, "opening metrics.listen") || !strings.Contains(errs, "address already in use") {
		t.Errorf("a port in use: %d %s", code, errs)
	}
	addr := freePort(t)
	p.write(t, "policy.yaml", fmt.Sprintf("sandbox: {egress_rules: []}\nmetrics: {listen: %q}\n", addr))
	s := p.serve(t, "--policy", file)
	for path, want := range map[string]int{"/metrics": 200, "/": 404, "/metrics/": 404, "/debug/pprof/": 404} {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	resp, err := http.Post("http://"+addr+"/metrics", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 {
		t.Errorf("POST: %d", resp.StatusCode)
	}
	s.stop(t)
}
