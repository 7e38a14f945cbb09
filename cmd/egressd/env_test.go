package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/egressd/egressd/ca"
)

// No variable is set twice, and the example of docs/serve.md, whose clients no
// --env-out can be written for, has them all.
func TestVariablesOnce(t *testing.T) {
	inside := append(proxyVariables(insideLayout.url("")), ca.Variables("/b.pem", "/certs")...)
	outside := clientVariables("http://127.0.0.1:3128", "/egressd/ca.pem")
	for _, list := range [][]string{inside, outside} {
		var seen []string
		for _, kv := range list {
			name, _, _ := strings.Cut(kv, "=")
			if slices.Contains(seen, name) {
				t.Errorf("%s stands there twice", name)
			}
			seen = append(seen, name)
		}
	}
	_, example, _ := strings.Cut(readDocument(t, docRoot+"/docs/serve.md"), "$ { printf")
	example, _, _ = strings.Cut(example, "docker run")
	words := strings.Fields(example)
	for _, kv := range outside {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(words, name) {
			t.Errorf("the example of docs/serve.md lacks %s", name)
		}
	}
}
