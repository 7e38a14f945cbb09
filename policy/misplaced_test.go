package policy_test

import (
	"strings"
	"testing"

	"github.com/egressd/egressd/policy"
)

// Mistakes that are made often are told with what to write instead.
func TestAdvice(t *testing.T) {
	for _, c := range []struct{ text, line string }{
		{"egress_rules: [GET a.test]\n", `egressd.yaml:1:1: error unknown_key: egress_rules is no key of a policy: it belongs below sandbox:`},
		{"sandbox: {}\nwrite_paths: [.]\n", `egressd.yaml:2:1: error unknown_key: write_paths is no key of a policy: it belongs below sandbox:`},
		{"os_env:\n  egress_rules: []\n", `egressd.yaml:2:3: error unknown_key: egress_rules is no key of os_env: it belongs below sandbox:`},
		{"cwd: .\n", `egressd.yaml:1:1: error unknown_key: cwd is no key of a policy: it belongs below os_env:`},
		{"tests:\n  - \"DELETE https://a.test/b: deny\"\n", "egressd.yaml:2:5: error wrong_type: text where a test belongs: write it as - DELETE https://a.test/b: deny, with a blank"},
		{"tests:\n  - GET https://a.test/b\n", "egressd.yaml:2:5: error wrong_type: text where a test belongs: write it as - GET https://a.test/b: allow, with a blank"},
		{"tests:\n  - GET https://a.test/b deny\n", "egressd.yaml:2:5: error wrong_type: text where a test belongs: write it as - GET https://a.test/b: deny, with a blank"},
		{"tests:\n  - GET https://a.test/b:allow\n", "egressd.yaml:2:5: error wrong_type: text where a test belongs: write it as - GET https://a.test/b: allow, with a blank"},
		{"tests: [x]\n", "egressd.yaml:1:9: error wrong_type: text where a test belongs: write it as - GET https://a.test/x: allow, with a blank"},
		{"sandbox: {egress_rules: [a.test]}\n", `egressd.yaml:1:26: error bad_rule: unknown_method: a rule is METHOD HOST/PATH, and this is no HTTP method; * stands alone for any ("a.test"); did you mean "GET a.test"?`},
	} {
		_, problems := policy.Load("egressd.yaml", []byte(c.text), policy.Options{Platform: "linux"})
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.line) {
			t.Errorf("%q: %v\nwant %s", c.text, problems, c.line)
		}
	}
	// An agent's file is not ours alone: there it is a note.
	p, problems := policy.Load("config.yaml", []byte("model: x\negress_rules: []\n"), policy.Options{Platform: "linux"})
	if p == nil || len(p.Notes) != 2 || strings.Contains(p.Notes[0].Text, "belongs") || !strings.HasSuffix(p.Notes[1].Text, "it belongs below sandbox:") {
		t.Errorf("%v, %+v", problems, p)
	}
}
