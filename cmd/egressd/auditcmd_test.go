package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mixed makes a session of every sort of record that serve can write.
func mixed(t *testing.T) *served {
	t.Helper()
	p := newPlace(t)
	s := p.serve(t, "--policy", p.policy(t, "GET api.test/**", "GET down.test/**", "GET bad.test/**", "CONNECT raw.test:5000"))
	c := s.client(t)
	for target, want := range map[string]int{
		"https://api.test/a": 200, "http://api.test/b": 200, "https://other.test/": 403, "https://down.test/": 502,
		"https://bad.test/": 502, "http://api.test/%2e%2e/x": 400,
	} {
		if code, body := get(t, c, target); code != want {
			t.Errorf("%s: %d %s", target, code, body)
		}
	}
	s.tunnel(t).Close()
	raw, err := net.Dial("tcp", s.listen)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(raw, "\x16\x03\x01 nonsense\r\n\r\n")
	_, _ = io.ReadAll(raw)
	raw.Close()
	eventually(t, "the tunnel's end is not recorded", func() bool {
		return countRecords(s.records(t), map[string]any{"kind": "request", "host": "raw.test"}) == 1
	})
	if _, _, code := p.call(t, "reload"); code != 0 {
		t.Error("reload failed")
	}
	s.stop(t)
	return s
}

// The counts of session_end are those of the records.
func TestAuditCounts(t *testing.T) {
	t.Parallel()
	s := mixed(t)
	counts := checkCounts(t, s.records(t))
	if counts["request"]["allow"] < 3 || counts["request"]["deny"] < 2 || counts["request"]["error"] != 2 {
		t.Errorf("the requests: %v", counts)
	}
	if s.origin.badSeen != 0 {
		t.Error("a request went to an origin with a bad certificate")
	}
}

// checkCounts compares what session_end counts with the records, and returns
// their number by kind and verdict.
func checkCounts(t *testing.T, all []map[string]any) map[string]map[string]int {
	t.Helper()
	counts := map[string]map[string]int{}
	var said any
	for i, r := range all {
		kind, _ := r["kind"].(string)
		verdict, _ := r["verdict"].(string)
		if r["seq"] != float64(i+1) && r["seq"] != float64(i) {
			t.Errorf("record %d has seq %v", i, r["seq"])
		}
		if kind == "session_end" {
			said = r["counts"]
			continue
		}
		if counts[kind] == nil {
			counts[kind] = map[string]int{}
		}
		counts[kind][verdict]++
	}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]map[string]int
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("counts %s: %v", text, err)
	}
	delete(got, "session_end")
	if fmt.Sprint(got) != fmt.Sprint(counts) {
		t.Errorf("session_end counts %v, the records are %v", got, counts)
	}
	return counts
}

// list and tail show the record to a person, filter it, and print it as it is.
func TestAuditList(t *testing.T) {
	t.Parallel()
	s := mixed(t)
	out, errs, code := s.call(t, "audit", "list")
	if code != 0 || errs != "" || strings.Count(out, "\n") != len(s.records(t)) {
		t.Errorf("list: %d %s%s", code, out, errs)
	}
	for _, x := range []struct {
		args string
		want int // lines
	}{
		{"list --kind request --host down.test", 1}, {"list --kind request --verdict error", 2}, {"list --limit 2", 2},
		{"list --session " + s.session[:12] + " --kind session_end", 1}, {"list --host *.test --reason no_rule", 1},
		{"tail -n 3", 3}, {"list --since 1h --kind reload", 1}, {"list --until 1h", 0}, {"list --json --kind session_start", 1},
	} {
		out, errs, code := s.call(t, append([]string{"audit"}, strings.Fields(x.args)...)...)
		if code != 0 || strings.Count(out, "\n") != x.want {
			t.Errorf("%s: %d, %d lines, not %d\n%s%s", x.args, code, strings.Count(out, "\n"), x.want, out, errs)
		}
	}
	out, _, _ = s.call(t, "audit", "list", "--json")
	file := s.path("home/.local/state/egressd/audit", s.session+".jsonl")
	if data, err := os.ReadFile(file); err != nil || string(data) != out {
		t.Errorf("list --json differs from the file (%v)", err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the record's mode: %v %v", st, err)
	}
}

// tail -f goes on with what is added, until Ctrl-C.
func TestAuditFollow(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.serve(t, "--policy", p.policy(t, "GET api.test/**"))
	cmd := p.command(t, "audit", "tail", "-f", "--kind", "request")
	var out lockedBuffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s.get(t, fmt.Sprintf("https://api.test/follow-%d", i))
		eventually(t, "tail -f does not go on", func() bool { return strings.Contains(out.String(), fmt.Sprintf("/follow-%d", i)) })
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("tail -f after Ctrl-C: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("tail -f does not end on Ctrl-C")
	}
	if o, _, code := p.call(t, "audit", "verify"); code != 0 || !strings.Contains(o, "is open: it has no end") {
		t.Errorf("verify of a running session: %d %s", code, o)
	}
}

// tail -f without a file goes on with the sessions that start later, beside one
// another, ended or killed; with --session it stays with one.
func TestAuditFollowSessions(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	policy := p.policy(t, "GET api.test/**")
	var all, one lockedBuffer
	follow := func(out *lockedBuffer, args ...string) (end func()) {
		cmd := p.command(t, append([]string{"audit", "tail", "-f"}, args...)...)
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("tail -f after Ctrl-C: %v", err)
			}
		}
	}
	said := func(s *served, path string) {
		t.Helper()
		s.get(t, "http://api.test/"+path)
		eventually(t, "tail -f does not show "+path, func() bool { return strings.Contains(all.String(), "api.test/"+path+" ") })
	}
	defer follow(&all)() // before there is any record
	first := p.serve(t, "--policy", policy)
	defer follow(&one, "--session", first.session)()
	said(first, "first")
	second := p.serve(t, "--policy", policy)
	said(second, "second")
	said(first, "beside")
	second.stop(t)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	third := p.serve(t, "--policy", policy)
	said(third, "third")
	third.stop(t)
	eventually(t, "not both ends are shown", func() bool { return strings.Count(all.String(), " session_end ") == 2 })
	if starts := strings.Count(all.String(), "Z session_start"); starts != 3 {
		t.Errorf("%d sessions start, not 3:\n%s", starts, all.String())
	}
	if text := one.String(); strings.Contains(text, "second") || strings.Contains(text, "third") || !strings.Contains(text, "api.test/beside ") {
		t.Errorf("--session shows others, or not its own:\n%s", text)
	}
}

// verify finds what was changed, taken out, moved or cut off.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	s := mixed(t)
	data, err := os.ReadFile(s.path("home/.local/state/egressd/audit", s.session+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines = lines[:len(lines)-1]
	join := func(parts ...[]string) string {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(strings.Join(p, ""))
		}
		return b.String()
	}
	n := len(lines)
	for _, x := range []struct {
		name, text string
		code       int
		want       string
	}{
		{"whole", string(data), 0, "ok, "},
		{"changed", strings.Replace(string(data), `"verdict":"deny"`, `"verdict":"allow"`, 1), 1, "changed"},
		{"missing", join(lines[:3], lines[4:]), 1, "missing"},
		{"moved", join(lines[:3], lines[4:5], lines[3:4], lines[5:]), 1, "reordered"},
		{"cut", join(lines[:n-1]), 0, "it has no end"},
		{"torn", join(lines[:n-1]) + lines[n-1][:20], 0, "it has no end"},
		{"empty", "", 0, ""},
	} {
		file := s.write(t, x.name+".jsonl", x.text)
		out, errs, code := s.call(t, "audit", "verify", file)
		if code != x.code || !strings.Contains(out, x.want) {
			t.Errorf("%s: %d, not %d\n%s%s", x.name, code, x.code, out, errs)
		}
		out, _, again := s.call(t, "audit", "verify", "--json", "--audit", file)
		if again != code || !json.Valid([]byte(out)) {
			t.Errorf("%s with --json: %d %q", x.name, again, out)
		}
	}
}

// One record is one session's at a time, and a file that nobody holds is
// gone on with.
func TestAuditFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	record := p.path("record.jsonl")
	args := []string{"--policy", p.policy(t, "GET api.test/**"), "--audit", record}
	s := p.serve(t, args...)
	_, errs, code := p.call(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	if code != 1 || !strings.Contains(errs, "record.jsonl") || !strings.Contains(errs, "in use") {
		t.Errorf("a record in use: %d %s", code, errs)
	}
	s.stop(t)
	p.serve(t, args...).stop(t)
	out, _, code := p.call(t, "audit", "verify", record)
	if code != 0 || !strings.Contains(out, "of 2 sessions") {
		t.Errorf("verify: %d %s", code, out)
	}
	if n := countRecords(readRecords(t, record), map[string]any{"kind": "session_end"}); n != 2 {
		t.Errorf("%d ends, not 2", n)
	}
}
