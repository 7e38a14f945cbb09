package policy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/egressd/egressd/internal/cases"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/rules"
)

// Whatever Load reads: it ends soon, does not panic, tells errors in order and
// inside the file, and what loads has no tag and only rules that the parser of
// rules reads the same way.
func FuzzLoad(f *testing.F) {
	data, err := os.ReadFile(filepath.Join(cases.Dir(f), "config.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var c struct{ YAML string }
		if err := json.Unmarshal(line, &c); err != nil {
			f.Fatal(err)
		}
		f.Add(c.YAML)
	}
	f.Add("a: &a [x, *a]\nsandbox: &b {<<: [*b, *a]}\n")
	f.Add("sandbox: {egress_rules: [&a ! GET a.test, ? b : c]}\ninclude: [github, ./egressd.yaml]\ntools: {agents: [x]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		p, problems := policy.Load("egressd.yaml", []byte(text), policy.Options{
			Platform: "linux",
			ReadFile: func(string) ([]byte, error) { return []byte(text), nil },
		})
		if d := time.Since(start); d > 5*time.Second {
			t.Fatalf("it took %v", d)
		}
		for i, problem := range problems {
			if problem.Line < 1 || problem.Col < 1 || strings.ContainsAny(problem.String(), "\n\r") {
				t.Errorf("odd problem %q", problem)
			}
			if last := problems[max(i-1, 0)]; last.File == problem.File && (last.Line > problem.Line || last.Line == problem.Line && last.Col > problem.Col) {
				t.Errorf("%v after %v", problem, last)
			}
		}
		if p == nil {
			if len(problems.Errors()) == 0 {
				t.Error("neither a policy nor an error")
			}
			return
		}
		if len(problems.Errors()) > 0 {
			t.Errorf("a policy and %v", problems)
		}
		noTags(t, text)
		for i, r := range p.Rules {
			again, err := rules.ParseMapping(r.Mapping())
			if err != nil || again.String() != r.String() || r.Deny != strings.HasPrefix(r.String(), "!") {
				t.Errorf("rule %d: %v is not %v (%v)", i, again, r, err)
			}
		}
		p.Grants()
	})
}

// noTags looks for tags in another way than the loader does: with every !
// that begins a word outside of quotes taken away, the document must not have
// become another one. It looks only at texts that are plain enough for that.
func noTags(t *testing.T, text string) {
	if strings.ContainsAny(text, "\"'|>#") || !strings.Contains(text, "!") {
		return
	}
	var words []string
	for _, w := range strings.Fields(text) {
		if strings.HasPrefix(w, "!") {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return
	}
	var with, without yaml.Node
	if yaml.Unmarshal([]byte(text), &with) != nil {
		return
	}
	if yaml.Unmarshal([]byte(strings.ReplaceAll(text, "!", "x")), &without) != nil {
		return
	}
	if a, b := texts(&with), texts(&without); strings.ReplaceAll(a, "!", "x") != b {
		t.Errorf("%q loads, and a tag stands in it", text)
	}
}

func texts(n *yaml.Node) string {
	s := n.Value + "\x00"
	for _, c := range n.Content {
		s += texts(c)
	}
	return s
}
