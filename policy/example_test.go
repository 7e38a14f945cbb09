package policy_test

import (
	"fmt"

	"github.com/egressd/egressd/policy"
)

func ExampleLoad() {
	p, problems := policy.Load("/srv/egressd.yaml", []byte("sandbox:\n  egress_rules: [\"GET api.example.com/**\"]\n"), policy.Options{})
	fmt.Println(len(p.Rules), problems.Err())
	_, problems = policy.Load("/srv/egressd.yaml", []byte("sandbox:\n  egress_rule: []\n"), policy.Options{})
	for _, e := range problems.Errors() {
		fmt.Println(e)
	}
	// Output:
	// 1 <nil>
	// /srv/egressd.yaml:2:3: error unknown_key: "egress_rule" is no key of sandbox: is egress_rules meant?
}
