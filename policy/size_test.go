package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/policy"
)

// A long policy and one that aliases blow up are both read in bounded time.
func TestLoadIsBounded(t *testing.T) {
	var long strings.Builder
	long.WriteString("sandbox:\n  egress_rules:\n")
	for i := range 20000 {
		fmt.Fprintf(&long, "    - GET h%d.test/**\n", i)
	}
	var many strings.Builder
	many.WriteString("sandbox:\n  egress_rules:\n    - GET a.test/**\n  credential_proxy:\n")
	for i := range 3000 {
		fmt.Fprintf(&many, "    - {type: https_bearer, target: h%d.test, source: {env: T}}\n", i)
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'm'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	merges := "a: &a {k: v}\n"
	for c := 'b'; c < 'm'; c++ {
		merges += fmt.Sprintf("%c: &%c {<<: [%s]}\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	for name, text := range map[string]string{
		"long":    long.String(),
		"many":    many.String(),
		"bomb":    bomb + "sandbox: {read_paths: *l}\n",
		"merges":  merges + "sandbox: *l\n",
		"entries": "x: &e {type: https_bearer, target: a.test, source: {env: T}}\nsandbox:\n  egress_rules: []\n  credential_proxy: [" + strings.Repeat("*e,", 12000) + "]\n",
		"deep":    strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"deeper":  strings.Repeat("[", 200000),
		"wide":    "sandbox: {" + strings.Repeat("a: b, ", 50000) + "}\n",
	} {
		start := time.Now()
		p, problems := policy.Load("config.yaml", []byte(text), policy.Options{Platform: "linux"})
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s: %v", name, d)
		} else {
			t.Logf("%s: %v, %d problems", name, d, len(problems))
		}
		if loads := name == "long" || name == "many"; loads != (p != nil) {
			t.Errorf("%s: policy %v, %.300v", name, p != nil, problems)
		}
	}
}
