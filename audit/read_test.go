package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sampleState is a state folder with three sessions: one ended and rotated, one
// that was cut, one that runs.
func sampleState(t *testing.T) (string, *Log) {
	t.Helper()
	state := t.TempDir()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { at = at.Add(time.Second); return at }
	l := mustOpen(t, Config{State: state, Session: "01AAX", MaxSize: 1000, Now: now})
	for _, host := range []string{"a.test", "www.a.test", "evila.test", "B.test"} {
		r := sampleRequest()
		r.Host, r.Time = host, now()
		mustAppend(t, l, r)
	}
	mustAppend(t, l, &Record{Kind: KindDNS, Host: "a.test", Qtype: "A", Verdict: "allow"})
	mustClose(t, l)
	l = mustOpen(t, Config{State: state, Session: "01AAY", Now: now})
	mustAppend(t, l, &Record{Kind: KindLeak, Verdict: "deny", Reason: "credential_leak", Credential: "c1", Host: "a.test"})
	l.dropFiles() // as a kill leaves it
	l = mustOpen(t, Config{State: state, Session: "01BBB", Now: now})
	return state, l
}

func TestSessions(t *testing.T) {
	state, running := sampleState(t)
	defer running.Close("")
	sessions, err := Sessions(state)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sessions {
		got = append(got, s.ID+" "+string(s.State))
		if s.Bytes == 0 || s.Start.IsZero() || s.Last.Before(s.Start) {
			t.Errorf("%+v", s)
		}
	}
	if s := strings.Join(got, ", "); s != "01AAX ended, 01AAY cut, 01BBB open" {
		t.Error(s)
	}
	for prefix, want := range map[string]string{"01b": "01BBB", "01AAX": "01AAX", "01aay": "01AAY"} {
		if s, err := Find(state, prefix); err != nil || s.ID != want {
			t.Errorf("%s: %s, %v", prefix, s.ID, err)
		}
	}
	if _, err := Find(state, "02"); !errors.Is(err, ErrNoSession) {
		t.Error(err)
	}
	if _, err := Find(state, "01A"); err == nil || !strings.Contains(err.Error(), "01AAX, 01AAY") {
		t.Error(err)
	}
	if none, err := Sessions(t.TempDir()); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}

func TestList(t *testing.T) {
	state, running := sampleState(t)
	defer running.Close("")
	sessions, err := Sessions(state)
	if err != nil {
		t.Fatal(err)
	}
	var chains []Chain
	for _, s := range sessions {
		chains = append(chains, s.Chain)
	}
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		f    Filter
		want string // session and seq
	}{
		{Filter{Session: "01AAY"}, "01AAY/1 01AAY/2"},
		{Filter{Session: "01b"}, "01BBB/1"},
		{Filter{Host: "a.test"}, "01AAX/2 01AAX/6 01AAY/2"},
		{Filter{Host: "*.A.test"}, "01AAX/2 01AAX/3 01AAX/6 01AAY/2"},
		{Filter{Host: "b.test"}, "01AAX/5"},
		{Filter{Verdict: "allow"}, "01AAX/6"},
		{Filter{Reason: "credential_leak"}, "01AAY/2"},
		{Filter{Kind: KindRequest, Limit: 2}, "01AAX/4 01AAX/5"},
		{Filter{Limit: 3}, "01AAY/1 01AAY/2 01BBB/1"},
		{Filter{Kind: KindRequest, Since: at.Add(3 * time.Second), Until: at.Add(5 * time.Second)}, "01AAX/3 01AAX/4"},
		{Filter{Kind: KindExec}, ""},
	} {
		var got []string
		for line, err := range List(t.Context(), chains, tc.f) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s/%d", line.Record.Session, line.Record.Seq))
			if again, err := Parse(line.Raw); err != nil || again.Seq != line.Record.Seq {
				t.Errorf("raw: %s", line.Raw)
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%+v: %s, want %s", tc.f, s, tc.want)
		}
	}
	if n := 0; true {
		for range List(t.Context(), chains, Filter{}) {
			if n++; n == 2 {
				break
			}
		}
	}
}

// A bad line is said, and what stands behind it is read.
func TestListBadLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	mustClose(t, mustOpen(t, Config{File: path, Session: "S1"}))
	lines := readLines(t, path)
	text := bytes.Join([][]byte{lines[0], []byte("not json"), bytes.Repeat([]byte("x"), maxLine+9), nil, lines[1], []byte("torn")}, []byte("\n"))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var bad []int
	good := 0
	for _, err := range List(t.Context(), []Chain{{Path: path}}, Filter{}) {
		var le *LineError
		if errors.As(err, &le) {
			bad = append(bad, le.Line)
		} else if err == nil {
			good++
		}
	}
	if fmt.Sprint(bad) != "[2 3 4]" || good != 2 {
		t.Errorf("bad %v, good %d", bad, good)
	}
	if _, err := FileChain(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestTail(t *testing.T) {
	l := mustOpen(t, Config{State: t.TempDir(), Session: "S1", MaxSize: 700})
	mustAppend(t, l, sampleRequest())
	mustAppend(t, l, sampleRequest())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []uint64
	for line, err := range Tail(ctx, Chain{Path: l.Path()}, Filter{Limit: 1}, true) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, line.Record.Seq)
		switch line.Record.Seq {
		case 3: // the last that was there
			mustAppend(t, l, sampleRequest())
		case 4:
			mustClose(t, l)
		}
	}
	if fmt.Sprint(got) != "[3 4 5]" || ctx.Err() != nil {
		t.Errorf("%v, %v", got, ctx.Err())
	}
	// It ends with its context too.
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	for range Tail(short, Chain{Path: l.Path()}, Filter{}, false) {
	}
}

// A follower shows nothing of a torn line, and goes on when the next session
// has moved it aside.
func TestTailTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	mustClose(t, mustOpen(t, Config{File: path, Session: "S1"}))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(strings.Repeat("torn", 300))
	f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []string
	for line, err := range Tail(ctx, Chain{Path: path}, Filter{}, false) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(line.Record.Kind))
		if len(got) == 2 {
			time.AfterFunc(250*time.Millisecond, func() { mustClose(t, mustOpen(t, Config{File: path, Session: "S2"})) })
		}
		if len(got) == 5 {
			break
		}
	}
	if s := strings.Join(got, " "); s != "session_start session_end recovered session_start session_end" {
		t.Error(s)
	}
}

func TestConsole(t *testing.T) {
	at := time.Date(2026, 11, 30, 17, 2, 11, 123456789, time.UTC)
	code := 2
	for _, tc := range []struct {
		r      Record
		colour bool
		want   string
	}{
		{*sampleRequest(), false, "deny no_rule GET https://api.github.com/user?page=… 403 400µs request=r1 hint=GET api.github.com/user"},
		{*sampleRequest(), true, "\x1b[31mdeny\x1b[0m no_rule GET https://api.github.com/user?page=… 403 400µs request=r1 hint=GET api.github.com/user"},
		{Record{Kind: KindRequestOpen, Verdict: "allow", Reason: "rule", Method: "CONNECT", Host: "::1", Port: 5432, Rule: "CONNECT [::1]:5432"}, false,
			"allow open CONNECT [::1]:5432 rule=CONNECT [::1]:5432"},
		{Record{Kind: KindDNS, Verdict: "allow", Host: "\x1b[2Jok.test\u202e", Qtype: "A"}, false, `allow dns \u001b[2Jok.test\u202e A`},
		{Record{Kind: KindRequest, Verdict: "x\x1b]0;y\a", Method: "\n", Path: "/\u0085\u2028\\"}, true, `x\u001b]0;y\u0007 \n /\u0085\u2028\ 0s`},
		{Record{Kind: KindExec, Argv: []string{"ls", "-l"}, Isolator: "linux_bwrap", ExitCode: &code}, false, "exec ls -l isolator=linux_bwrap exit=2"},
		{Record{Kind: KindSessionEnd, Counts: Counts{KindRequest: {"deny": 1, "allow": 2}, KindDNS: {"": 3}}}, false, "session_end dns=3 request/allow=2 request/deny=1"},
	} {
		if tc.r.Query != "" {
			tc.r.QueryNames = []string{"page"}
		}
		tc.r.Time = at
		want := "2026-11-30T17:02:11.123Z " + tc.want
		if got := string(AppendConsole(nil, &tc.r, tc.colour)); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}
