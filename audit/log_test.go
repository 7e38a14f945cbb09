package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// readLines returns the lines of a file, without their line feeds.
func readLines(t *testing.T, path string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		t.Fatalf("%s ends in a torn line", path)
	}
	lines := bytes.Split(data, []byte("\n"))
	return lines[:len(lines)-1]
}

func mustOpen(t *testing.T, c Config) *Log {
	t.Helper()
	if c.Session == "" {
		c.Session = NewSession()
	}
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustAppend(t *testing.T, l *Log, r *Record) {
	t.Helper()
	if err := l.Append(r); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(""); err != nil {
		t.Fatal(err)
	}
}

func sampleRequest() *Record {
	return &Record{
		Kind: KindRequest, Verdict: "deny", Reason: "no_rule", Hint: "GET api.github.com/user",
		Method: "GET", Scheme: "https", Host: "api.github.com", Port: 443, Path: "/user", Query: "page=2",
		Status: 403, Duration: 400 * time.Microsecond, Proto: "h2", Capture: "explicit",
		Policy: SHA256([]byte("policy")), RequestID: "r1",
	}
}

// The line of AUDIT.md, member by member.
func TestLineOfTheDesign(t *testing.T) {
	state := t.TempDir()
	at := time.Date(2026, 11, 30, 17, 2, 11, 123456789, time.UTC)
	l := mustOpen(t, Config{State: state, Session: "01J", Now: func() time.Time { return at }})
	mustAppend(t, l, sampleRequest())
	lines := readLines(t, filepath.Join(state, "audit", "01J.jsonl"))
	want := `{"v":1,"time":"2026-11-30T17:02:11.123456Z","seq":2,"session":"01J","kind":"request",` +
		`"verdict":"deny","reason":"no_rule","rule":"","hint":"GET api.github.com/user",` +
		`"method":"GET","scheme":"https","host":"api.github.com","port":443,"path":"/user","query_names":["page"],` +
		`"status":403,"bytes_out":0,"bytes_in":0,"duration_ms":0.4,"ttfb_ms":0,"upstream":"","proto":"h2","upstream_proto":"",` +
		`"credential":"","capture":"explicit","policy":"` + SHA256([]byte("policy")) + `","request_id":"r1","prev":"` + SHA256(lines[0]) + `"}`
	if got := string(lines[1]); got != want {
		t.Errorf("line:\n%s\nwant:\n%s", got, want)
	}
	mustClose(t, l)
	lines = readLines(t, l.Path())
	var end struct {
		Kind   Kind
		Counts Counts
		Prev   string
	}
	if err := json.Unmarshal(lines[2], &end); err != nil {
		t.Fatal(err)
	}
	if end.Kind != KindSessionEnd || end.Counts[KindRequest]["deny"] != 1 || end.Counts[KindSessionStart][""] != 1 || len(end.Counts) != 2 {
		t.Errorf("session_end: %s", lines[2])
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func unavailable(err error) error {
	var r interface{ Reason() string }
	if !errors.As(err, &r) || r.Reason() != "audit_unavailable" {
		return fmt.Errorf("%v instead of audit_unavailable", err)
	}
	return nil
}
