package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/cases"
	"github.com/egressd/egressd/policy"
)

type configCase struct {
	ID, Why, YAML string
	OK            bool
	Platform      string
	File          string
	Q             int
	Warnings      []struct {
		Kind string
		Line int
	}
	NoWarning []string `json:"no_warning"`
	Errors    []struct {
		Line, Col     *int
		Kind, Problem string
	}
}

// The acceptance cases of the loader: config.jsonl.
func TestConfigCases(t *testing.T) {
	cases.Each(t, "config.jsonl", func(t *testing.T, c configCase) {
		if c.Platform == "" {
			c.Platform = "linux"
		}
		if c.File == "" {
			c.File = "egressd.yaml"
		}
		p, problems := policy.Load(c.File, []byte(c.YAML), policy.Options{Platform: c.Platform, Home: "/home/u"})
		if c.OK {
			for _, e := range problems.Errors() {
				t.Errorf("%s: %v", c.Why, e)
			}
			if p == nil {
				t.Fatal("no policy")
			}
			for _, w := range c.Warnings {
				if !slices.ContainsFunc(problems, func(p policy.Problem) bool {
					return p.Warning && p.Kind == w.Kind && (w.Line == 0 || w.Line == p.Line)
				}) {
					t.Errorf("%s: no warning %s on line %d in %v", c.Why, w.Kind, w.Line, problems)
				}
			}
			for _, p := range problems {
				if slices.Contains(c.NoWarning, p.Kind) {
					t.Errorf("%s: %v", c.Why, p)
				}
			}
			return
		}
		if p != nil {
			t.Errorf("%s: it loads", c.Why)
		}
		lines := map[int]bool{}
		anywhere := false
		for _, e := range c.Errors {
			if e.Line != nil {
				lines[*e.Line] = true
			} else {
				anywhere = true
			}
			if !slices.ContainsFunc(problems, func(p policy.Problem) bool {
				return !p.Warning && p.Kind == e.Kind && (e.Line == nil || *e.Line == p.Line) && (e.Col == nil || *e.Col == p.Col) &&
					(e.Problem == "" || e.Problem == p.Problem)
			}) {
				t.Errorf("%s: no error %s in:\n%s", c.Why, describe(e.Line, e.Col, e.Kind, e.Problem), list(problems))
			}
		}
		for _, p := range problems.Errors() {
			if !lines[p.Line] && !anywhere {
				t.Errorf("%s: also %v", c.Why, p)
			}
		}
	})
}

func describe(line, col *int, kind, problem string) string {
	n := func(p *int) string {
		if p == nil {
			return "?"
		}
		return fmt.Sprint(*p)
	}
	return fmt.Sprintf("%s:%s %s %s", n(line), n(col), kind, problem)
}

func list(ps policy.Problems) string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}
