package rules_test

import (
	"fmt"

	"github.com/egressd/egressd/rules"
)

func ExampleParse() {
	r, err := rules.Parse("get API.example.com/v1/**")
	fmt.Println(r, err)
	_, err = rules.Parse("FETCH IT api.example.com/**")
	fmt.Println(err != nil)
	// Output:
	// GET api.example.com/v1/** <nil>
	// true
}

func ExampleParseMapping() {
	r, err := rules.ParseMapping(map[string]any{"rule": "POST api.example.com/upload", "max_request_bytes": 1 << 20})
	fmt.Println(r, err)
	// Output: POST api.example.com/upload <nil>
}

func ExampleNew() {
	r, err := rules.Parse("GET *.example.com/**")
	if err != nil {
		fmt.Println(err)
		return
	}
	set := rules.New([]rules.Rule{r})
	fmt.Println(set.Decide(rules.Request{Method: "GET", Scheme: "https", Host: "a.example.com", Target: "/"}).Verdict)
	fmt.Println(set.Decide(rules.Request{Method: "GET", Scheme: "https", Host: "example.org", Target: "/"}).Verdict)
	// Output:
	// allow
	// deny
}
