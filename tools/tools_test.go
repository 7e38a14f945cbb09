package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/shell"
)

// sink keeps records, and room as a Log does.
type sink struct {
	mu      sync.Mutex
	records []audit.Record
	held    int
	full    error // of Reserve
	broken  error // of Append
}

func (s *sink) Reserve(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == nil {
		s.held++
	}
	return s.full
}

func (s *sink) Append(rs ...*audit.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rs {
		if r.Reserved {
			s.held--
		}
		s.records = append(s.records, *r)
	}
	return s.broken
}

func (s *sink) Release() { s.held-- }

func (s *sink) last(t *testing.T) audit.Record {
	t.Helper()
	if len(s.records) == 0 {
		t.Fatal("nothing was recorded")
	}
	return s.records[len(s.records)-1]
}

// ran is an executor that says what it was asked for.
type ran struct {
	cmds   []shell.Command
	result shell.Result
	err    error
}

func (r *ran) Start(context.Context) error   { return nil }
func (r *ran) Dispose(context.Context) error { return nil }
func (r *ran) Exec(_ context.Context, cmd shell.Command) (shell.Result, error) {
	r.cmds = append(r.cmds, cmd)
	return r.result, r.err
}

type bench struct {
	*Set
	sink *sink
	ran  *ran
	top  string // real; cwd is top/w
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// newBench is all tools over a folder with files, each a text of its name.
func newBench(t testing.TB, change func(*Config)) *bench {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.go", "b.txt", "src/c.go", "src/deep/d.go", "src/deep/e.txt", ".git/config", "node_modules/m/i.js", "src/node_modules/x.go", ".hidden/key", ".github/ci.yml", "ro/f"} {
		put(t, filepath.Join(top, "w", name), "package "+name+"\n")
	}
	put(t, top+"/out/secret.go", "package secret\n")
	for name, to := range map[string]string{"link.go": "a.go", "out.go": "../out/secret.go", "outdir": "../out", "inside": "src", "loop": ".", "togit": ".git", "abs.go": top + "/w/src/c.go"} {
		if err := os.Symlink(to, top+"/w/"+name); err != nil {
			t.Fatal(err)
		}
	}
	files, err := safepath.Open(safepath.Config{Cwd: top + "/w", Access: safepath.Write,
		Grants: []safepath.Grant{{Path: top + "/w/.hidden"}, {Path: top + "/w/ro", Access: safepath.Read}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	b := &bench{sink: &sink{}, ran: &ran{}, top: top}
	cfg := Config{Grants: Grants{Preset: "full"}, Files: files, Shell: b.ran, Record: b.sink}
	if change != nil {
		change(&cfg)
	}
	if b.Set, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

// do makes a call and sees that it was recorded, once.
func (b *bench) do(t *testing.T, name string, args any) (Result, error) {
	t.Helper()
	raw, ok := args.(string)
	if !ok {
		text, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(text)
	}
	before := len(b.sink.records)
	r, err := b.Call(t.Context(), name, json.RawMessage(raw))
	if len(b.sink.records) != before+1 || b.sink.held != 0 {
		t.Errorf("%s %s: %d records, %d rooms held", name, raw, len(b.sink.records)-before, b.sink.held)
	}
	return r, err
}

func reasonOf(err error) string {
	var r interface{ Reason() string }
	if errors.As(err, &r) {
		return r.Reason()
	}
	return ""
}

type m map[string]any

func TestGrants(t *testing.T) {
	for _, tc := range []struct {
		g    Grants
		want string
	}{
		{Grants{}, ""},
		{Grants{Allow: []string{"shell", "file_read"}}, "shell file_read"},
		{Grants{Preset: "readonly"}, "file_read grep glob"},
		{Grants{Preset: "readwrite"}, "file_read file_write file_edit grep glob"},
		{Grants{Preset: "full"}, "shell file_read file_write file_edit grep glob"},
		{Grants{Preset: "full", Deny: []string{"shell"}}, "file_read file_write file_edit grep glob"},
		{Grants{Preset: "readonly", Allow: []string{"shell"}, Deny: []string{"grep"}}, "shell file_read glob"},
		{Grants{Allow: []string{"shell"}, Deny: []string{"shell"}}, ""},
		{Grants{Deny: []string{"shell"}}, ""},
	} {
		b := newBench(t, func(c *Config) { c.Grants = tc.g })
		var names []string
		for _, tool := range b.List() {
			names = append(names, tool.Name)
			var schema struct {
				Type       string
				Properties map[string]struct{ Type string }
				Required   []string
				Additional *bool `json:"additionalProperties"`
			}
			if err := json.Unmarshal(tool.Schema, &schema); err != nil || schema.Type != "object" || schema.Additional == nil || *schema.Additional || tool.Description == "" {
				t.Errorf("%s: %v %+v", tool.Name, err, schema)
			}
			in, err := find(tool.Name).parse(json.RawMessage(`{}`))
			if (err == nil) != (len(schema.Required) == 0) {
				t.Errorf("%s without arguments: %v", tool.Name, err)
			}
			if a, ok := in.(argued); ok {
				for name := range schema.Properties {
					if a.field(name) == nil {
						t.Errorf("%s does not know its argument %s", tool.Name, name)
					}
				}
			}
		}
		if got := strings.Join(names, " "); got != tc.want {
			t.Errorf("%+v: %q", tc.g, got)
		}
		// What is not granted, and what does not exist, says the same.
		for _, name := range []string{"shell", "file_read", "file_write", "file_edit", "grep", "glob", "no_such", "", "Shell", "file_read\n", "../shell"} {
			if slices.Contains(names, name) {
				continue
			}
			_, err := b.do(t, name, m{"path": "a.go", "content": "bad", "script": "true", "pattern": "x"})
			if err == nil || !strings.HasPrefix(err.Error(), "not granted") || reasonOf(err) != "not_granted" {
				t.Errorf("%+v: %q: %v", tc.g, name, err)
			}
			if r := b.sink.last(t); r.Verdict != "deny" || r.Reason != "not_granted" || r.Kind != audit.KindFile && r.Kind != audit.KindExec || r.ExitCode != nil {
				t.Errorf("%q: recorded as %+v", name, r)
			}
		}
		if len(b.ran.cmds) != 0 {
			t.Error("something ran")
		}
	}
}

func TestNew(t *testing.T) {
	files, err := safepath.Open(safepath.Config{Cwd: t.TempDir(), Access: safepath.Read})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for _, cfg := range []Config{
		{}, {Record: &sink{}, Grants: Grants{Preset: "all"}}, {Record: &sink{}, Grants: Grants{Allow: []string{"bash"}}}, {Record: &sink{}, Grants: Grants{Deny: []string{"bash"}}},
		{Record: &sink{}, Grants: Grants{Allow: []string{"shell"}}, Files: files}, {Record: &sink{}, Grants: Grants{Allow: []string{"grep"}}, Shell: &ran{}}, {Grants: Grants{Preset: "full"}, Files: files, Shell: &ran{}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v was made", cfg)
		}
	}
	if _, err := New(Config{Record: &sink{}}); err != nil {
		t.Error(err)
	}
}

// What cannot be recorded is not done, or not answered.
func TestUnrecordable(t *testing.T) {
	b := newBench(t, nil)
	b.sink.full = &audit.Unavailable{Err: errors.New("full")}
	for name, args := range map[string]string{"file_write": `{"path":"new","content":"x"}`, "shell": `{"script":"true"}`, "file_read": `{"path":"a.go"}`} {
		if r, err := b.Call(t.Context(), name, json.RawMessage(args)); reasonOf(err) != "audit_unavailable" || r.Text != "" {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
	if _, err := os.Stat(b.top + "/w/new"); err == nil || len(b.ran.cmds) != 0 {
		t.Error("something was done")
	}
	b.sink.full, b.sink.broken = nil, &audit.Unavailable{Err: errors.New("gone")}
	if r, err := b.Call(t.Context(), "file_read", json.RawMessage(`{"path":"a.go"}`)); reasonOf(err) != "audit_unavailable" || r.Text != "" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestRecords(t *testing.T) {
	yes, zero := true, 3
	b := newBench(t, func(c *Config) { c.ChooseNetwork = true })
	b.ran.result = shell.Result{ExitCode: 3, Isolator: "linux_bwrap"}
	for _, tc := range []struct {
		name string
		args any
		want audit.Record
	}{
		{"file_read", m{"path": "link.go"}, audit.Record{Kind: audit.KindFile, Verdict: "allow", Path: b.top + "/w/a.go"}},
		{"file_read", m{"path": "none"}, audit.Record{Kind: audit.KindFile, Verdict: "allow", Path: b.top + "/w/none"}},
		{"file_read", m{"path": "out.go"}, audit.Record{Kind: audit.KindFile, Verdict: "deny", Reason: "not_granted", Path: "out.go"}},
		{"file_read", m{"path": ".hidden/key"}, audit.Record{Kind: audit.KindFile, Verdict: "deny", Reason: "not_granted", Path: ".hidden/key"}},
		{"file_write", m{"path": "ro/f", "content": ""}, audit.Record{Kind: audit.KindFile, Verdict: "deny", Reason: "not_granted", Path: b.top + "/w/ro/f"}},
		{"file_write", m{"path": "n", "content": ""}, audit.Record{Kind: audit.KindFile, Verdict: "allow", Path: b.top + "/w/n"}},
		{"file_edit", m{"path": "a.go", "old_string": "package", "new_string": "x"}, audit.Record{Kind: audit.KindFile, Verdict: "allow", Path: b.top + "/w/a.go"}},
		{"grep", m{"pattern": "x"}, audit.Record{Kind: audit.KindFile, Verdict: "allow", Path: b.top + "/w"}},
		{"glob", m{"pattern": "src/*.go"}, audit.Record{Kind: audit.KindFile, Verdict: "allow", Path: b.top + "/w/src"}},
		{"glob", m{"pattern": "../*"}, audit.Record{Kind: audit.KindFile, Verdict: "deny", Reason: "not_granted", Path: "../"}},
		{"glob", `{"pattern":"*","pattern":"/"}`, audit.Record{Kind: audit.KindFile, Verdict: "deny", Reason: "bad_request"}},
		{"shell", m{"script": "ls"}, audit.Record{Kind: audit.KindExec, Verdict: "allow", Argv: []string{"bash", "-c", "ls"}, Isolator: "linux_bwrap", ExitCode: &zero}},
		{"shell", m{"argv": []string{"ls", "-l"}, "allow_network": yes}, audit.Record{Kind: audit.KindExec, Verdict: "allow", Argv: []string{"ls", "-l"}, Isolator: "linux_bwrap allow_network=true", ExitCode: &zero}},
		{"shell", m{"script": "ls", "timeout_ms": -1}, audit.Record{Kind: audit.KindExec, Verdict: "deny", Reason: "bad_request", Argv: []string{"bash", "-c", "ls"}}},
	} {
		_, _ = b.do(t, tc.name, tc.args)
		got := b.sink.last(t)
		if !got.Reserved || got.Kind != tc.want.Kind || got.Verdict != tc.want.Verdict || got.Reason != tc.want.Reason || got.Path != tc.want.Path ||
			!slices.Equal(got.Argv, tc.want.Argv) || got.Isolator != tc.want.Isolator || (got.ExitCode == nil) != (tc.want.ExitCode == nil) || got.ExitCode != nil && *got.ExitCode != *tc.want.ExitCode {
			t.Errorf("%s %v:\ngot  %+v\nwant %+v", tc.name, tc.args, got, tc.want)
		}
	}
}

// Without containment the tools say so.
func TestUncontained(t *testing.T) {
	files, err := safepath.Open(safepath.Config{Cwd: t.TempDir(), Unconfined: true, Warn: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	b := newBench(t, func(c *Config) { c.Files = files })
	for _, tool := range b.List() {
		if strings.Contains(tool.Description, "NOT contained (cwd: null)") != (tool.Name != "shell") {
			t.Errorf("%s: %s", tool.Name, tool.Description)
		}
	}
	if r, err := b.do(t, "file_read", m{"path": b.top + "/out/secret.go"}); err != nil || r.Text != "package secret\n" {
		t.Error(r, err)
	}
}

func TestShell(t *testing.T) {
	b := newBench(t, nil)
	b.ran.result = shell.Result{Stdout: []byte("out <&>\xff"), Stderr: []byte("err"), ExitCode: 124, StderrCut: true, Isolator: "linux_bwrap"}
	r, err := b.do(t, "shell", m{"argv": []string{"a", "$b", ""}, "cwd": "src", "timeout_ms": 1500})
	if err != nil || r.Text != `{"stdout":"out <&>�","stderr":"err","exit_code":124,"truncated":true,"isolator":"linux_bwrap"}` || !r.Truncated || r.Command.ExitCode != 124 {
		t.Errorf("%+v %v", r, err)
	}
	if c := b.ran.cmds[0]; !slices.Equal(c.Argv, []string{"a", "$b", ""}) || c.Script != "" || c.Cwd != "src" || c.Timeout.Milliseconds() != 1500 || c.AllowNetwork != nil {
		t.Errorf("%+v", c)
	}
	if _, err := b.do(t, "shell", m{"script": "echo $x"}); err != nil || b.ran.cmds[1].Script != "echo $x" || b.ran.cmds[1].Argv != nil {
		t.Errorf("%+v %v", b.ran.cmds[1], err)
	}
	for _, args := range []string{`{}`, ``, `null`, `[]`, `"x"`, `{"script":""}`, `{"argv":[]}`, `{"argv":[""]}`, `{"script":"a","argv":["b"]}`, `{"script":"a","timeout_ms":-1}`, `{"script":"a","timeout_ms":86400001}`,
		`{"script":"a","timeout_ms":1.5}`, `{"script":"a","timeout_ms":"9"}`, `{"script":["a"]}`, `{"argv":"a"}`, `{"argv":[1]}`, `{"script":"a\u0000b"}`, `{"argv":["a","\u0000"]}`, `{"script":"a","cwd":"\u0000"}`, `{"script":"a","allow_network":"yes"}`,
		`{"Script":"a"}`, `{"script":"a","script":"b"}`, `{"script":"a","env":{}}`, `{"script":"a"}{}`, `{"script":"a"`, `{"script":"a"} x`, "{\"script\":\"\xff\"}"} {
		if _, err := b.do(t, "shell", args); reasonOf(err) != "bad_request" {
			t.Errorf("%s: %v", args, err)
		}
	}
	if _, err := b.do(t, "shell", m{"script": "a", "allow_network": true}); reasonOf(err) != "not_granted" || !strings.Contains(err.Error(), "allow_network") {
		t.Error(err)
	}
	if _, err := b.do(t, "shell", m{"script": "a", "allow_network": false}); err != nil || *b.ran.cmds[2].AllowNetwork {
		t.Error(err)
	}
	if len(b.ran.cmds) != 3 {
		t.Errorf("%d commands ran", len(b.ran.cmds))
	}
	b.ran.err = errors.New("no_sandbox_available")
	if _, err := b.do(t, "shell", m{"script": "a"}); err == nil || !strings.Contains(err.Error(), "no_sandbox_available") {
		t.Error(err)
	}
	if r := b.sink.last(t); r.Verdict != "error" || r.ExitCode != nil {
		t.Errorf("%+v", r)
	}
	chosen := newBench(t, func(c *Config) { c.ChooseNetwork = true })
	if _, err := chosen.do(t, "shell", m{"script": "a", "allow_network": false}); err != nil || chosen.ran.cmds[0].AllowNetwork == nil || *chosen.ran.cmds[0].AllowNetwork {
		t.Error(err)
	}
}

// A thousand calls, good and bad, at a time and one after another, leave no
// descriptor and no goroutine.
func TestNothingLeft(t *testing.T) {
	b := newBench(t, func(c *Config) { c.OnCall = func(context.Context, Request) error { return nil } })
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names) + runtime.NumGoroutine()
	}
	before := count()
	var wait sync.WaitGroup
	for n := range 4 {
		wait.Go(func() {
			for range 50 {
				for _, call := range [][2]string{
					{"file_read", `{"path":"src/c.go"}`}, {"file_read", `{"path":"out.go"}`}, {"glob", `{"pattern":"**/*.go"}`}, {"grep", `{"pattern":"package"}`},
					{"file_edit", `{"path":"b.txt","old_string":"none","new_string":"x"}`},
				} {
					_, _ = b.Call(t.Context(), call[0], json.RawMessage(call[1]))
				}
				_, _ = b.Call(t.Context(), "file_read", json.RawMessage(fmt.Sprintf(`{"path":"src/deep/%d"}`, n)))
			}
		})
	}
	wait.Wait()
	for tries := 0; count() > before; tries++ {
		if tries == 200 {
			t.Fatalf("%d descriptors and goroutines became %d", before, count())
		}
		time.Sleep(10 * time.Millisecond)
	}
}
