package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/egressd/egressd/policy"
)

// Allow rules for the sandbox's own loopback get a note, which is no warning.
func TestNoteLoopback(t *testing.T) {
	text := `sandbox:
  egress_rules:
    - GET localhost:8080/**
    - "GET *.LOCALHOST/**"
    - rule: GET app.localhost/**
    - CONNECT 127.0.0.2:5432
    - "GET [::1]:*/**"
    - GET localhost.test/**
    - GET 10.0.0.1/**
    - "!GET localhost/admin"
`
	p, problems := policy.Load("egressd.yaml", []byte(text), policy.Options{Platform: "linux"})
	if p == nil {
		t.Fatal(problems)
	}
	var lines []string
	for _, note := range p.Notes {
		if note.Kind != policy.NoteLoopback || !strings.HasPrefix(note.String(), fmt.Sprintf("egressd.yaml:%d:7: note loopback_host: inside the sandbox ", note.Line)) {
			t.Errorf("the note reads %s", note)
		}
		lines = append(lines, fmt.Sprint(note.Line))
	}
	if got := strings.Join(lines, " "); got != "3 4 5 6 7" {
		t.Errorf("notes at lines %s", got)
	}
	if want := `localhost is the sandbox's own: a service of the host is reached by upstream.resolve {"NAME:8080": "127.0.0.1:8080"} and a rule for NAME`; len(p.Notes) == 0 || !strings.HasSuffix(p.Notes[0].Text, want) {
		t.Errorf("%v does not end in %s", p.Notes, want)
	}
	for _, w := range problems.Warnings() {
		if w.Kind == policy.NoteLoopback {
			t.Errorf("it is a warning: %s", w)
		}
	}
}
