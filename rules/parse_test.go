package rules_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/cases"
	"github.com/egressd/egressd/rules"
)

type parseCase struct {
	ID, Why string
	Q       int
	Rule    any
	OK      *parsed
	Error   any
}

type parsed struct {
	Deny            bool
	Methods         []string
	Scheme          *string
	Host            string
	Port            any
	Path            *string
	Note            string
	Query           map[string]string
	MaxRequestBytes *int64 `json:"max_request_bytes"`
	Rate            *struct{ Count, Seconds int }
	Until           *time.Time
}

// parseAny reads a rule as egress_rules holds it.
func parseAny(v any) (rules.Rule, error) {
	switch v := v.(type) {
	case string:
		return rules.Parse(v)
	case map[string]any:
		return rules.ParseMapping(v)
	}
	return rules.Rule{}, &rules.ParseError{Kind: "wrong_type"}
}

// oneOf says whether got is the wanted string or one of a list.
func oneOf(got string, want any) bool {
	switch w := want.(type) {
	case string:
		return got == w
	case []any:
		return slices.Contains(w, any(got))
	}
	return false
}

func TestParseCases(t *testing.T) {
	cases.Each(t, "rules_parse.jsonl", func(t *testing.T, c parseCase) {
		r, err := parseAny(c.Rule)
		if c.OK == nil {
			var p *rules.ParseError
			if !errors.As(err, &p) || !oneOf(p.Kind, c.Error) {
				t.Fatalf("got %+v, %v; want %v: %s", r, err, c.Error, c.Why)
			}
			return
		}
		if err != nil {
			t.Fatalf("%v: %s", err, c.Why)
		}
		if got, want := asParsed(r), *c.OK; !equalJSON(t, got, want) {
			t.Errorf("got %+v, want %+v: %s", got, want, c.Why)
		}
		again, err := rules.ParseMapping(r.Mapping())
		if err != nil || !equalJSON(t, asParsed(again), asParsed(r)) {
			t.Errorf("printed and parsed again: %v, %v", again, err)
		}
	})
}

func asParsed(r rules.Rule) parsed {
	p := parsed{Deny: r.Deny, Methods: r.Methods, Host: r.Host, Note: r.Note, Query: r.Query}
	if r.Scheme != "" {
		p.Scheme = &r.Scheme
	}
	switch r.Port {
	case 0:
	case rules.AnyPort:
		p.Port = "*"
	default:
		p.Port = float64(r.Port)
	}
	if !r.Tunnel {
		p.Path = &r.Path
	}
	if r.Limited {
		p.MaxRequestBytes = &r.MaxRequestBytes
	}
	if r.Rate.Count > 0 {
		p.Rate = &struct{ Count, Seconds int }{r.Rate.Count, int(r.Rate.Per / time.Second)}
	}
	if !r.Until.IsZero() {
		p.Until = &r.Until
	}
	return p
}

func equalJSON(t *testing.T, a, b parsed) bool {
	t.Helper()
	a.Methods, b.Methods = slices.Sorted(slices.Values(a.Methods)), slices.Sorted(slices.Values(b.Methods))
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return string(x) == string(y)
}
