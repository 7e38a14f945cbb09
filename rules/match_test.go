package rules_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/cases"
	"github.com/egressd/egressd/rules"
)

type matchCase struct {
	ID, Why            string
	Q                  int
	Rules              []any
	Method, URL        string
	Scheme, Host, Path string
	Port               int
	Now                time.Time
	Verdict, Hint      string
	Reason             any
	Rule               *int
}

// someday is the time of a decision that says none.
var someday = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// split takes a URL apart without decoding or cleaning anything.
func split(t *testing.T, url string) (scheme, host string, port int, target string) {
	t.Helper()
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		t.Fatalf("url %q has no scheme", url)
	}
	authority, target := rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, target = rest[:i], rest[i:]
	}
	port = map[string]int{"https": 443, "http": 80}[scheme]
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		n, err := strconv.Atoi(authority[i+1:])
		if err != nil {
			t.Fatal(err)
		}
		authority, port = authority[:i], n
	}
	return scheme, authority, port, target
}

func compileAny(t testing.TB, list []any) *rules.Set {
	t.Helper()
	var parsed []rules.Rule
	for _, v := range list {
		r, err := parseAny(v)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, r)
	}
	return rules.New(parsed)
}

// verdict is the word of the cases: a denial with status 400 is a refusal.
func verdict(d rules.Decision) string {
	switch d.Reason {
	case "bad_host", "bad_request", "ambiguous_path":
		return "refuse"
	}
	return d.Verdict
}

func TestMatchCases(t *testing.T) {
	cases.Each(t, "rules_match.jsonl", func(t *testing.T, c matchCase) {
		set := compileAny(t, c.Rules)
		r := rules.Request{Method: c.Method, Scheme: c.Scheme, Host: c.Host, Port: c.Port, Target: c.Path, At: c.Now}
		if c.URL != "" {
			r.Scheme, r.Host, r.Port, r.Target = split(t, c.URL)
		}
		if r.At.IsZero() {
			r.At = someday
		}
		d := set.Decide(r)
		if verdict(d) != c.Verdict || !oneOf(d.Reason, c.Reason) {
			t.Errorf("%s %v, want %s %v: %s", verdict(d), d.Reason, c.Verdict, c.Reason, c.Why)
		}
		if c.Rule != nil && *c.Rule != d.Index {
			t.Errorf("rule %d, want %d: %s", d.Index, *c.Rule, c.Why)
		}
		if c.Hint != "" && c.Hint != d.Hint {
			t.Errorf("hint %q, want %q: %s", d.Hint, c.Hint, c.Why)
		}
		if c.Method == "CONNECT" {
			return
		}
		rule, _, _, err := set.Judge(r.At, true, r.Method, r.Scheme, r.Host, r.Port, r.Target, nil, 0)
		if (err == nil) != (d.Verdict == rules.Allow) || err == nil && rule != d.Rule.String() {
			t.Errorf("Judge says %q %v, Decide %+v", rule, err, d)
		}
	})
}
