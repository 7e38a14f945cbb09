package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/egressd/egressd/internal/cases"
)

// matchCase is a line of rules_match.jsonl.
type matchCase struct {
	ID      string `json:"id"`
	Why     string `json:"why,omitempty"`
	Q       any    `json:"q,omitempty"`
	Rules   []any  `json:"rules"`
	Method  string `json:"method"`
	URL     string `json:"url,omitempty"`
	Scheme  string `json:"scheme,omitempty"`
	Host    string `json:"host,omitempty"`
	Port    int    `json:"port,omitempty"`
	Path    string `json:"path,omitempty"`
	Now     string `json:"now,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Reason  any    `json:"reason,omitempty"`
	Rule    *int   `json:"rule,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// All matching cases are judged by one process of the binary, as policy tests
// in CI would be: each answered, in order, as the case says.
func TestExplainBatchCases(t *testing.T) {
	var in bytes.Buffer
	var all []matchCase
	cases.Each(t, "rules_match.jsonl", func(t *testing.T, c matchCase) {
		all = append(all, c)
		c.Why, c.Q, c.Verdict, c.Reason, c.Rule, c.Hint = "", nil, "", nil, nil, ""
		if c.Rules == nil {
			c.Rules = []any{}
		}
		enc := json.NewEncoder(&in)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(c); err != nil {
			t.Fatal(err)
		}
	})
	cmd := exec.CommandContext(t.Context(), os.Getenv(binaryVariable), "explain", "--batch", "-")
	cmd.Dir, cmd.Env = t.TempDir(), []string{"HOME=" + t.TempDir()}
	cmd.Stdin = &in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("explain --batch: %v\n%s", err, stderr.Bytes())
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.DisallowUnknownFields()
	for _, c := range all {
		var got batchAnswer
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%s: reading the answer: %v", c.ID, err)
		}
		verdict := got.Verdict
		switch got.Reason {
		case "bad_host", "bad_request", "ambiguous_path":
			verdict = "refuse" // the cases' word for a denial with status 400
		}
		if got.ID != c.ID || verdict != c.Verdict || !reasonIs(c.Reason, got.Reason) {
			t.Errorf("%s: %s %s %s, want %s %v: %s", c.ID, got.ID, verdict, got.Reason, c.Verdict, c.Reason, c.Why)
		}
		if c.Rule != nil && (got.Rule == nil || got.Rule.Index != *c.Rule) {
			t.Errorf("%s: rule %+v, want %d: %s", c.ID, got.Rule, *c.Rule, c.Why)
		}
		if c.Hint != "" && got.Hint != c.Hint {
			t.Errorf("%s: hint %q, want %q: %s", c.ID, got.Hint, c.Hint, c.Why)
		}
	}
	if dec.More() {
		t.Error("more answers than cases")
	}
}

// reasonIs compares with one reason or any of a list.
func reasonIs(want any, got string) bool {
	list, ok := want.([]any)
	if !ok {
		return want == nil || want == got
	}
	for _, w := range list {
		if w == got {
			return true
		}
	}
	return false
}
