package policy_test

import (
	"strings"
	"testing"

	"github.com/egressd/egressd/policy"
)

// The forms a rule may stand in, each with a % where a tag would stand.
var ruleForms = []string{
	"    - %GET a.test/admin/**\n",
	"    - %'GET a.test/admin/**'\n",
	"    - %\"GET a.test/admin/**\"\n",
	"    - %|\n      GET a.test/admin/**\n",
	"    - %>-\n      GET a.test/admin/**\n",
	"    - %{rule: GET a.test/admin/**}\n",
	"    - %\n      rule: GET a.test/admin/**\n",
	"    - rule: %GET a.test/admin/**\n",
	"    - {rule: %GET a.test/admin/**}\n",
	"    - %rule: GET a.test/admin/**\n",
	"    - ? %rule\n      : GET a.test/admin/**\n",
	"    - {rule: GET a.test/admin/**, %note: n}\n",
	"    - {rule: GET a.test/admin/**, query: %{a: b}}\n",
	"    - {rule: GET a.test/admin/**, query: {a: %b}}\n",
	"    - {rule: GET a.test/admin/**, note: %\"\"}\n",
}

// Every way to write a tag before a value, behind an anchor or not, is refused;
// and the same without the tag loads.
func TestTagsAreRefusedEverywhere(t *testing.T) {
	anchors := []string{"", "&a ", "&a\t", "&a\n        ", "&a # ! c\n        ", "&a\n\n\n        ", "&a # é\r\n        ", "&é "}
	tags := []string{"! ", "!x ", "!!str ", "!GET ", "!* ", "!<tag:yaml.org,2002:str> ", "!\n        ", "! # c\n        "}
	const head = "sandbox:\n  type: linux_bwrap\n  egress_rules:\n    - GET a.test/**\n"
	load := func(text string) policy.Problems {
		_, problems := policy.Load("egressd.yaml", []byte(text), policy.Options{Platform: "linux"})
		return problems.Errors()
	}
	for _, form := range ruleForms {
		clean := head + strings.Replace(form, "%", "", 1)
		if problems := load(clean); len(problems) > 0 {
			t.Errorf("%q: %v", clean, problems)
		}
		for _, anchor := range anchors {
			for _, tag := range tags {
				for _, order := range []string{anchor + tag, tag + anchor} {
					text := head + strings.Replace(form, "%", order, 1)
					problems := load(text)
					if len(problems) == 0 {
						t.Errorf("%q loads", text)
					}
					for _, p := range problems {
						if p.Kind != policy.KindType && p.Kind != policy.KindSyntax {
							t.Errorf("%q: %v", text, p)
						}
					}
				}
			}
		}
	}
}

// An anchor alone is no tag, whatever line breaks and comments follow it.
func TestAnchorsLoad(t *testing.T) {
	for _, text := range []string{
		"sandbox:\n  type: &t linux_bwrap\n  egress_rules: &r\n    - &x GET a.test/**\n    - &y # c\n      \"!GET a.test/x\"\n",
		"sandbox: &s\n  type: linux_bwrap\n  read_paths: &p\n  - a\n  mask_paths: *p\n",
		"sandbox: &s {type: linux_bwrap, read_paths: &p [&e a, *e]}\n",
		"\ufeffsandbox:\r\n  type: linux_bwrap\r\n  egress_rules:\r\n    - GET a.test/**\r\n",
		"sandbox:\r  type: linux_bwrap\r  egress_rules:\r    - GET a.test/**\r",
		"# é\n&top\nsandbox:\n  read_paths: [\"é\", 'é'  , é]\n",
		"--- # c\nsandbox: {type: linux_bwrap}\n...\n",
		"%YAML 1.1\n---\nsandbox: {type: linux_bwrap}\n",
		"tests: [GET https://a.test/x: allow]\n",
		"tests: [? GET https://a.test/x : allow]\n",
		"sandbox:\n  egress_rules:\n  - >-\n    GET\n    a.test/**\n  - |\n    GET b.test/**\n",
	} {
		if _, problems := policy.Load("egressd.yaml", []byte(text), policy.Options{Platform: "linux"}); len(problems.Errors()) > 0 {
			t.Errorf("%q: %v", text, problems.Errors())
		}
	}
}

// TestHiddenLines: a line break that most editors do not show ends no comment.
func TestHiddenLines(t *testing.T) {
	for name, text := range map[string]string{
		"next line":           "sandbox:\n  egress_rules:\n    # note\u0085    - GET evil.test/**\n",
		"line separator":      "sandbox:\n  egress_rules:\n    # note\u2028    - GET evil.test/**\n",
		"paragraph separator": "sandbox:\n  egress_rules:\n    # note\u2029    - GET evil.test/**\n",
		"a CR alone":          "sandbox:\r\n  egress_rules:\r\n    # note\r    - GET evil.test/**\r\n",
	} {
		p, problems := policy.Load("egressd.yaml", []byte(text), policy.Options{Platform: "linux"})
		if p != nil || len(problems) != 1 || problems[0].Kind != policy.KindSyntax || problems[0].Line != 3 {
			t.Errorf("%s: %v, %v", name, p, problems)
		}
	}
	if p, problems := policy.Load("egressd.yaml", []byte("sandbox:\r\n  egress_rules:\r\n    - rule: GET a.test/**\r\n      note: \"a\\u2028b\"\r\n"), policy.Options{Platform: "linux"}); p == nil {
		t.Errorf("refused: %v", problems)
	}
}
