package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnCall(t *testing.T) {
	var asked []Request
	answer := error(nil)
	b := newBench(t, func(c *Config) {
		c.Grants = Grants{Preset: "full", Deny: []string{"glob"}}
		c.OnCall = func(_ context.Context, r Request) error { asked = append(asked, r); return answer }
	})
	if _, err := b.do(t, "file_read", m{"path": "a.go", "limit": 5}); err != nil || len(asked) != 1 || asked[0].Tool != "file_read" || string(asked[0].Arguments) != `{"path":"a.go","limit":5}` || asked[0].Cwd != b.top+"/w" {
		t.Errorf("%+v %v", asked, err)
	}
	// What is not granted, or no call, is not asked about.
	for name, args := range map[string]string{"glob": `{"pattern":"*"}`, "none": `{}`, "file_read": `{"path":"a.go","Path":"b"}`, "shell": `{}`} {
		if _, err := b.do(t, name, args); err == nil || len(asked) != 1 {
			t.Errorf("%s: %v, asked %d", name, err, len(asked))
		}
	}
	answer = errors.New("  \nno\x1b[2J writing here\nsecond line")
	if _, err := b.do(t, "file_write", m{"path": "new", "content": "x"}); err == nil || err.Error() != "no[2J writing here" || reasonOf(err) != "approval_denied" {
		t.Errorf("%v", err)
	}
	if r := b.sink.last(t); r.Verdict != "deny" || r.Reason != "approval_denied" || r.Path != b.top+"/w/new" {
		t.Errorf("%+v", r)
	}
	answer = errors.New("")
	if _, err := b.do(t, "shell", m{"script": "true"}); err == nil || err.Error() != "not granted by tools.on_call" {
		t.Error(err)
	}
	if _, err := os.Stat(b.top + "/w/new"); err == nil || len(b.ran.cmds) != 0 {
		t.Error("something was done")
	}
}

// Over 30 s is a no, also from who does not heed its context, and also a yes
// that comes later.
func TestOnCallLate(t *testing.T) {
	b := newBench(t, nil)
	synctest.Test(t, func(t *testing.T) {
		b.Set.cfg.OnCall = func(context.Context, Request) error { time.Sleep(time.Hour); return nil }
		begin := time.Now()
		_, err := b.do(t, "shell", m{"script": "true"})
		if reasonOf(err) != "approval_timeout" || !strings.HasPrefix(err.Error(), "not granted") || time.Since(begin) != askTime {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		time.Sleep(2 * time.Hour)
	})
	if len(b.ran.cmds) != 0 {
		t.Error("it ran")
	}
}

func TestHook(t *testing.T) {
	dir := t.TempDir()
	call := Request{Tool: "shell", Arguments: json.RawMessage(`{"script":"id"}`), Cwd: "/w"}
	hook := func(script string) Hook {
		return Hook{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "ONLY=this"}, Dir: dir}
	}
	for script, want := range map[string]string{
		"exit 0":                          "",
		"cat > call; exit 0":              "",
		"echo no matter; exit 0":          "",
		"echo first; echo second; exit 1": "first",
		"echo; echo; echo third; exit 1":  "third",
		"echo err >&2; exit 7":            "err",
		"echo err >&2; echo out; exit 7":  "out",
		`printf '\033[2Jx\007\n'; exit 1`: "[2Jx",
		"kill -9 $$":                      "-",
		"exit 1":                          "-",
		"yes | head -c 1000000; exit 1":   "y",
		"env | grep -v ^PWD= | grep -v ^_= | grep -v ^SHLVL= | sort | tr '\\n' ' '; exit 1": "ONLY=this PATH=/usr/bin:/bin",
		"pwd; exit 1": dir,
	} {
		err := hook(script).Decide(t.Context(), call)
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%s: %v", script, err)
			}
		case err == nil, want != "-" && err.Error() != want, want == "-" && err.Error() != "":
			t.Errorf("%s: %v, want %s", script, err, want)
		}
	}
	if text, err := os.ReadFile(dir + "/call"); err != nil || string(text) != `{"tool":"shell","arguments":{"script":"id"},"cwd":"/w"}`+"\n" {
		t.Errorf("it read %q: %v", text, err)
	}
	for _, h := range []Hook{{}, {Argv: []string{"sh"}}, {Argv: []string{"./sh"}}, {Argv: []string{dir + "/none"}}, {Argv: []string{dir}}} {
		if h.Decide(t.Context(), call) == nil {
			t.Errorf("%v allowed", h.Argv)
		}
	}
	// A hook that hangs, and what it started, ends with its time.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := hook("sleep 60 & sleep 60").Decide(ctx, call); err == nil || time.Since(begin) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	// What it leaves running after a yes holds nobody up for long.
	begin = time.Now()
	if err := hook("sleep 60 & exit 0").Decide(t.Context(), call); err != nil || time.Since(begin) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}
