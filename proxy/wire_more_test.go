package proxy_test

import (
	"os"
	"strings"
	"testing"
)

// TestWireMore runs testdata/http_wire_more.jsonl, lines in the form of
// http_wire.jsonl for what the acceptance cases do not look at.
func TestWireMore(t *testing.T) {
	data, err := os.ReadFile("testdata/http_wire_more.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var c wireCase
		if err := strictJSON([]byte(line), &c); err != nil {
			t.Fatalf("reading %s: %v", line, err)
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			runWireCase(t, c)
		})
	}
}
