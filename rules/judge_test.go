package rules_test

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egressd/egressd/rules"
)

// reasonOf is what a refusal says of itself, "rule" for none.
func reasonOf(err error) string {
	var r interface{ Reason() string }
	switch {
	case err == nil:
		return "rule"
	case errors.As(err, &r):
		return r.Reason()
	}
	return err.Error()
}

type mapping = map[string]any

func TestHeaders(t *testing.T) {
	tests := []struct {
		rules  []any
		method string
		target string
		header map[string][]string
		want   string
	}{
		{[]any{"POST a.test/**"}, "POST", "/x", map[string][]string{"x-http_method-OVERRIDE": {"DELETE"}}, "method_not_allowed"},
		{[]any{"POST a.test/**"}, "POST", "/x", map[string][]string{"X-Http-Method": {"put"}}, "method_not_allowed"},
		{[]any{"POST,PUT a.test/**"}, "POST", "/x", map[string][]string{"X-Http-Method": {" put "}}, "rule"},
		{[]any{"POST a.test/**"}, "POST", "/x", map[string][]string{"X-Method-Override": {"", "POST"}}, "rule"},
		{[]any{"* a.test/**"}, "POST", "/x", map[string][]string{"X-Method-Override": {"connect"}}, "method_not_allowed"},
		{[]any{"GET a.test/a"}, "GET", "/a", map[string][]string{"X-Rewrite-Url": {"/b"}}, "path_not_allowed"},
		{[]any{"GET a.test/a"}, "GET", "/a", map[string][]string{"X-Original-Url": {"http://a.test/a"}}, "bad_request"},
		{[]any{"GET a.test/a"}, "GET", "/a", map[string][]string{"X_Original_URL": {"/%2e%2e/a"}}, "ambiguous_path"},
		{[]any{"* a.test/**", mapping{"rule": "!* a.test/**", "query": mapping{"x": "1"}}}, "GET", "/a", map[string][]string{"X-Original-Url": {"/a?x=1"}}, "deny_rule"},
		{[]any{"GET a.test/a", "PUT a.test/a", "GET a.test/b"}, "GET", "/a", map[string][]string{"X-Original-Url": {"/b"}, "X-Http-Method": {"PUT"}}, "path_not_allowed"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"X-Original-Url": {"/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9"}}, "bad_request"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"X-Forwarded-Host": {"A.test."}}, "rule"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"X-Forwarded-Host": {"a.test:443, a.test"}}, "rule"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"X_Forwarded_Host": {"a.test, b.test"}}, "authority_mismatch"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"X-Forwarded-Host": {"a.test:80"}}, "authority_mismatch"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"X-Forwarded-Host": {"a test"}}, "authority_mismatch"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"Forwarded": {`for=1.2.3.4;host="a.test", FOR="[::1]";Host=a.test:443`}}, "rule"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"Forwarded": {`for=1.2.3.4, host=b.test`}}, "authority_mismatch"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"Forwarded": {`for="1.2.3.4;host=b.test`}}, "authority_mismatch"},
		{[]any{"GET a.test/**"}, "GET", "/a", map[string][]string{"Forwarded": {`for="a;host=b.test,c"`}}, "rule"},
	}
	for i, c := range tests {
		_, _, _, err := compileAny(t, c.rules).Judge(someday, true, c.method, "https", "a.test", 443, c.target, c.header, 0)
		if got := reasonOf(err); got != c.want {
			t.Errorf("%d: %s %s %v: %s, want %s", i, c.method, c.target, c.header, got, c.want)
		}
	}
}

func TestJudgeRefuses(t *testing.T) {
	set := compileAny(t, []any{"* a.test:*/**", "CONNECT a.test:5432", "GET [2001:db8::1]/**", "GET a.test/**"})
	for _, c := range []struct {
		method, scheme, host string
		port                 int
		target, want         string
		status               int
	}{
		{"CONNECT", "https", "a.test", 443, "/x", "method_not_allowed", 0},
		{"CONNECT", "https", "a.test", 5432, "a.test:5432", "bad_request", 0},
		{"GET", "https", "2001:db8::1", 443, "/x", "rule", 0},
		{"GET", "https", "2001:DB8::1", 443, "/x", "bad_host", 0},
		{"GET", "ftp", "a.test", 443, "/x", "bad_request", 0},
		{"GET", "https", "a.test", 70000, "/x", "bad_request", 0},
		{"G T", "https", "a.test", 443, "/x", "bad_request", 0},
		{"", "https", "a.test", 443, "/x", "bad_request", 0},
		{"OPTIONS", "https", "a.test", 443, "*", "bad_request", 0},
		{"GET", "https", "a.test", 443, "/" + strings.Repeat("a", 16<<10), "bad_request", 414},
		{"GET", "https", "a.test", 443, "/" + strings.Repeat("a", 16<<10-1), "rule", 0},
		{"GET", "https", "a.test", 443, "/x?y#z", "bad_request", 0},
		{"GET", "https", "a.test", 443, "", "bad_request", 0},
	} {
		_, _, _, err := set.Judge(someday, true, c.method, c.scheme, c.host, c.port, c.target, nil, 0)
		if got := reasonOf(err); got != c.want {
			t.Errorf("%s %s:%d %.20s: %s, want %s", c.method, c.host, c.port, c.target, got, c.want)
		}
		var d *rules.Denial
		if errors.As(err, &d) && d.Status() != c.status {
			t.Errorf("%s %s %.20s: status %d, want %d", c.method, c.host, c.target, d.Status(), c.status)
		}
	}
}

func TestNilAndZeroSetDeny(t *testing.T) {
	for _, set := range []*rules.Set{nil, {}, rules.New(nil)} {
		_, _, _, err := set.Judge(someday, true, "GET", "https", "a.test", 443, "/", nil, 0)
		if reasonOf(err) != "no_rule" {
			t.Errorf("Judge: %v", err)
		}
		if _, inspect, err := set.Connect(someday, true, "a.test", 5432); inspect || reasonOf(err) != "no_rule" {
			t.Errorf("Connect: %v %v", inspect, err)
		}
		if set.Knows("a.test") || set.Ports("a.test") != nil || set.Addresses() != nil {
			t.Error("an empty set knows something")
		}
		set.Adopt(rules.New(nil))
		set.Explain(rules.Request{Method: "GET", Scheme: "https", Host: "a.test", Target: "/"})
	}
}

// A rule that the parser would not have made is refused in its direction.
func TestUnsoundRules(t *testing.T) {
	allow := rules.Rule{Methods: []string{"GET"}, Host: "a.test", Path: "/**"}
	for _, r := range []rules.Rule{
		{}, {Methods: []string{"GET"}, Host: "A.test", Path: "/**"}, {Methods: []string{"GET"}, Host: "a.test"},
		{Methods: []string{"get"}, Host: "a.test", Path: "/**"}, {Methods: []string{"GET"}, Host: "a.test", Path: "/../**"},
		{Methods: []string{"GET"}, Host: "a.test", Path: "/**", Query: map[string]string{}},
		{Methods: []string{"GET"}, Host: "a.test", Path: "/**", Query: map[string]string{"a": "\x01"}},
		{Methods: []string{"GET"}, Host: "a.test", Path: "/**", Limited: true, MaxRequestBytes: -1},
		{Methods: []string{"CONNECT"}, Host: "a.test", Path: "/**"},
	} {
		q := rules.Request{Method: "GET", Scheme: "https", Host: "a.test", Target: "/x", At: someday}
		if d := rules.New([]rules.Rule{r}).Decide(q); d.Verdict == rules.Allow {
			t.Errorf("%#v allows", r)
		}
		r.Deny = true
		if d := rules.New([]rules.Rule{allow, r}).Decide(q); d.Reason != "deny_rule" {
			t.Errorf("%#v: %s", r, d.Reason)
		}
	}
}

func TestConnect(t *testing.T) {
	set := compileAny(t, []any{
		"CONNECT db.test:5432", "GET a.test/**", "GET api.test:8443/**", "GET any.test:*/x", "!CONNECT no.test:22",
		mapping{"rule": "CONNECT rate.test:9000", "rate": "1/h"}, mapping{"rule": "CONNECT old.test:9001", "until": "2026-01-01T00:00:00Z"},
	})
	for _, c := range []struct {
		host    string
		port    int
		rule    string
		inspect bool
		reason  string
	}{
		{"DB.test", 5432, "CONNECT db.test:5432", false, "rule"},
		{"other.test", 5432, "", false, "no_rule"},
		{"db.test", 5433, "", false, "port_not_allowed"},
		{"a.test", 443, "", true, "rule"},
		{"unknown.test", 443, "", true, "rule"},
		{"unknown.test", 80, "", true, "rule"},
		{"unknown.test", 8443, "", true, "rule"},
		{"any.test", 31337, "", true, "rule"},
		{"a.test", 31337, "", false, "port_not_allowed"},
		{"no.test", 22, "", false, "deny_rule"},
		{"old.test", 9001, "", false, "expired"},
		{"rate.test", 9000, "CONNECT rate.test:9000", false, "rule"},
		{"rate.test", 9000, "", false, "rate_limited"},
		{"127.1", 443, "", false, "bad_host"},
		{"a.test", 0, "", false, "bad_request"},
	} {
		rule, inspect, err := set.Connect(someday, true, c.host, c.port)
		if rule != c.rule || inspect != c.inspect || reasonOf(err) != c.reason {
			t.Errorf("%s:%d: %q %v %v, want %+v", c.host, c.port, rule, inspect, err, c)
		}
	}
	if _, inspect, _ := compileAny(t, []any{"GET https://a.test/**"}).Connect(someday, true, "a.test", 80); inspect {
		t.Error("80 is looked into though no rule covers http")
	}
}

func TestNames(t *testing.T) {
	set := compileAny(t, []any{
		"GET a.test:8443/**", "CONNECT *.db.test:5432", "GET *:9000/x", "!GET b.test:7000/x", "GET 192.0.2.1:80/x",
		"CONNECT [2001:db8::1]:22", "GET 192.0.2.2/x", "GET a.test:443/x",
	})
	for host, want := range map[string][]int{
		"a.test": {8443, 9000}, "x.y.db.test": {5432, 9000}, "db.test": {5432, 9000}, "b.test": {9000}, "192.0.2.1": nil, "2001:db8::1": {22},
	} {
		if got := set.Ports(host); !reflect.DeepEqual(got, want) {
			t.Errorf("Ports(%s) = %v, want %v", host, got, want)
		}
		if !set.Knows(host) {
			t.Errorf("%s is not known", host)
		}
	}
	if set.Knows("192.0.2.9") {
		t.Error("an address is known by a rule for any name")
	}
	if got, want := set.Addresses(), []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("[2001:db8::1]:22")}; !reflect.DeepEqual(got, want) {
		t.Errorf("Addresses() = %v", got)
	}
}

func TestSizes(t *testing.T) {
	limit := func(rule string, n int) any { return mapping{"rule": rule, "max_request_bytes": n} }
	for i, c := range []struct {
		rules  []any
		target string
		length int64
		reason string
		limit  int64
		rule   string
	}{
		{[]any{limit("POST a.test/**", 10)}, "/x", 10, "rule", 10, "POST a.test/**"},
		{[]any{limit("POST a.test/**", 10)}, "/x", 11, "body_too_large", -1, ""},
		{[]any{limit("POST a.test/**", 0)}, "/x", 1, "body_too_large", -1, ""},
		{[]any{limit("POST a.test/**", 10), limit("POST a.test/x", 50)}, "/x", 20, "rule", 50, "POST a.test/x"},
		{[]any{limit("POST a.test/**", 10), limit("POST a.test/x", 50)}, "/x", -1, "rule", 50, "POST a.test/x"},
		{[]any{limit("POST a.test/**", 10), "POST a.test/x"}, "/x", -1, "rule", -1, "POST a.test/x"},
		{[]any{limit("POST a.test/*", 10), limit("POST a.test/*/*", 50)}, "/x%2Fy", 20, "body_too_large", -1, ""},
		{[]any{limit("POST a.test/*", 10), limit("POST a.test/*/*", 50)}, "/x%2Fy", 9, "rule", 10, "POST a.test/*"},
		// A rule that covers all is no harm where two that share do better.
		{[]any{limit("POST a.test/**", 5), limit("POST a.test/*", 10), limit("POST a.test/*/*", 50)}, "/x%2Fy", 9, "rule", 10, "POST a.test/*"},
		{[]any{limit("POST a.test/**", 5), limit("POST a.test/*", 10), limit("POST a.test/*/*", 50)}, "/x%2Fy", -1, "rule", 10, "POST a.test/*"},
	} {
		rule, limit, _, err := compileAny(t, c.rules).Judge(someday, true, "POST", "https", "a.test", 443, c.target, nil, c.length)
		if reasonOf(err) != c.reason || limit != c.limit || rule != c.rule {
			t.Errorf("%d: %q %d %v, want %+v", i, rule, limit, err, c)
		}
	}
}

func TestRates(t *testing.T) {
	rated := func(rule, rate string) any { return mapping{"rule": rule, "rate": rate} }
	set := compileAny(t, []any{rated("GET a.test/**", "2/min")})
	ask := func(set *rules.Set, at time.Time, target string) (func(), error) {
		_, _, refund, err := set.Judge(at, true, "GET", "https", "a.test", 443, target, nil, 0)
		return refund, err
	}
	refund, err := ask(set, someday, "/1")
	if err != nil || refund == nil {
		t.Fatal(err)
	}
	refund()
	refund() // a second time takes nothing back
	for range 2 {
		if _, err := ask(set, someday.Add(10*time.Second), "/2"); err != nil {
			t.Fatal(err)
		}
	}
	_, err = ask(set, someday.Add(20*time.Second), "/3")
	var d *rules.Denial
	if !errors.As(err, &d) || d.Reason() != "rate_limited" || d.RetryAfter() != 50*time.Second || d.Rule() == "" {
		t.Fatalf("%#v", err)
	}
	if _, _, _, err := set.Judge(someday.Add(20*time.Second), false, "GET", "https", "a.test", 443, "/", nil, 0); err != nil {
		t.Error("without charge a rate is not asked:", err)
	}
	// A reload goes on where the old set was; other rules begin anew.
	again := compileAny(t, []any{"GET b.test/**", rated("GET a.test/**", "2/min"), rated("GET a.test/new", "1/min")})
	again.Adopt(set)
	if _, err := ask(again, someday.Add(20*time.Second), "/3"); reasonOf(err) != "rate_limited" {
		t.Error("a reload made room:", err)
	}
	if _, err := ask(again, someday.Add(20*time.Second), "/new"); err != nil {
		t.Error("a new rule has no room:", err)
	}
	if _, err := ask(again, someday.Add(70*time.Second), "/3"); err != nil {
		t.Error("after the minute there is room:", err)
	}
	// Every rate of rules that share the readings counts, or none.
	both := compileAny(t, []any{rated("GET a.test/*", "5/h"), rated("GET a.test/*/*", "1/h"), "GET a.test/free"})
	for i, want := range []string{"rule", "rate_limited", "rate_limited"} {
		if _, err := ask(both, someday, "/x%2Fy"); reasonOf(err) != want {
			t.Errorf("request %d: %v", i, err)
		}
	}
	for i := range 5 {
		want := "rule"
		if i == 4 {
			want = "rate_limited" // one of five went with the first request only
		}
		if _, err := ask(both, someday, "/x"); reasonOf(err) != want {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if _, err := ask(both, someday, "/free"); err != nil {
		t.Error(err)
	}
	// A rule that is used up does not stand before two that share the readings.
	spare := compileAny(t, []any{rated("GET a.test/**", "1/h"), "GET a.test/*", "GET a.test/*/*"})
	for range 3 {
		if _, err := ask(spare, someday, "/x%2Fy"); err != nil {
			t.Error(err)
		}
	}
}

func TestRateHoldsUnderLoad(t *testing.T) {
	for _, count := range []int{50, 5000} {
		set := compileAny(t, []any{mapping{"rule": "GET a.test/**", "rate": fmt.Sprintf("%d/min", count)}})
		var passed atomic.Int64
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range count {
					at := someday.Add(time.Duration(i*4+g) * time.Millisecond)
					if _, _, _, err := set.Judge(at, true, "GET", "https", "a.test", 443, "/", nil, 0); err == nil {
						passed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := int(passed.Load()); n != count {
			t.Errorf("%d of a rate of %d passed", n, count)
		}
	}
}

// TestEnds: the moments at which an allow rule ends, and no other.
func TestEnds(t *testing.T) {
	noon := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	var list []rules.Rule
	for text, until := range map[string]string{"GET a.test/**": "2027-01-01T12:00:00Z", "CONNECT b.test:22": "2027-01-01T14:00:00Z", "!* a.test/x": "2027-01-01T13:00:00Z"} {
		r, err := rules.ParseMapping(map[string]any{"rule": text, "until": until})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	s := rules.New(list)
	for _, tt := range []struct {
		from, to time.Duration
		want     bool
	}{
		{-time.Hour, -time.Second, false}, {-time.Second, 0, true}, {0, time.Second, false}, {30 * time.Minute, 90 * time.Minute, false},
		{time.Hour, 2 * time.Hour, true}, {-time.Hour, 9 * time.Hour, true}, {2 * time.Hour, 9 * time.Hour, false},
	} {
		if got := s.Ends(noon.Add(tt.from), noon.Add(tt.to)); got != tt.want {
			t.Errorf("from %v to %v: %v", tt.from, tt.to, got)
		}
	}
	if (*rules.Set)(nil).Ends(noon, noon.Add(time.Hour)) {
		t.Error("no rules end")
	}
}

// TestDenies: a deny rule in force that speaks of the host and port, whatever
// else it says.
func TestDenies(t *testing.T) {
	var list []rules.Rule
	for _, m := range []map[string]any{
		{"rule": "!GET a.test/x", "query": map[string]any{"k": "v"}}, {"rule": "!* *.b.test:8443"}, {"rule": "!CONNECT c.test:22"},
		{"rule": "!* d.test", "until": "2020-01-01T00:00:00Z"}, {"rule": "GET a.test:9000"}, {"rule": "!* e.test:*"},
	} {
		r, err := rules.ParseMapping(m)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	s, now := rules.New(list), time.Now()
	for _, tt := range []struct {
		host string
		port int
		want bool
	}{
		{"a.test", 443, true}, {"a.test", 80, true}, {"a.test", 9000, false}, {"x.b.test", 8443, true}, {"x.b.test", 443, false},
		{"c.test", 22, true}, {"c.test", 443, false}, {"d.test", 443, false}, {"e.test", 25, true}, {"f.test", 443, false},
	} {
		if got := s.Denies(now, tt.host, tt.port); got != tt.want {
			t.Errorf("%s:%d: %v", tt.host, tt.port, got)
		}
	}
	if !(*rules.Set)(nil).Denies(now, "a.test", 443) {
		t.Error("no rules let something pass")
	}
}
