package audit

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	state := filepath.Join(t.TempDir(), "a", "state")
	l := mustOpen(t, Config{State: state, Session: "S1", MaxSize: 1000})
	for range 5 {
		mustAppend(t, l, sampleRequest())
	}
	mustClose(t, l)
	for path, want := range map[string]os.FileMode{
		state: os.ModeDir | 0o700, filepath.Join(state, "audit"): os.ModeDir | 0o700,
		filepath.Join(state, "audit", "S1.jsonl"): 0o600, filepath.Join(state, "audit", "S1.2.jsonl"): 0o600,
	} {
		if got := modeOf(t, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	// What was open to others is shut.
	if err := os.Chmod(filepath.Join(state, "audit"), 0o777); err != nil {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, Config{State: state}))
	if got := modeOf(t, filepath.Join(state, "audit")); got.Perm() != 0o700 {
		t.Errorf("folder left at %v", got)
	}
}

// Blocks that were held ahead are given back, at a rotation and at the end.
func TestTrim(t *testing.T) {
	l := mustOpen(t, Config{State: t.TempDir(), Session: "S1", MaxSize: 2000})
	for range 8 {
		mustAppend(t, l, sampleRequest())
	}
	mustClose(t, l)
	for _, file := range (Chain{Path: l.Path()}).Files() {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if held := info.Sys().(*syscall.Stat_t).Blocks * 512; held > 16<<10 {
			t.Errorf("%s of %d bytes holds %d", filepath.Base(file), info.Size(), held)
		}
	}
}

// Nothing is opened through a link, and nothing but a regular file is written.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "target")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(outside, []byte("x\n"), 0o600))
	must(os.WriteFile(filepath.Join(dir, "real.jsonl"), []byte("y\n"), 0o600))
	must(os.Symlink(outside, filepath.Join(dir, "out.jsonl")))
	must(os.Symlink("real.jsonl", filepath.Join(dir, "in.jsonl")))
	must(os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "dangling.jsonl")))
	must(os.Mkdir(filepath.Join(dir, "folder.jsonl"), 0o700))
	must(syscall.Mkfifo(filepath.Join(dir, "fifo.jsonl"), 0o600))
	must(os.Mkdir(filepath.Join(dir, "state"), 0o700))
	must(os.Symlink(t.TempDir(), filepath.Join(dir, "state", "audit")))
	must(os.Mkdir(filepath.Join(dir, "state2"), 0o700))
	must(os.Mkdir(filepath.Join(dir, "state2", "other"), 0o700))
	must(os.Symlink("other", filepath.Join(dir, "state2", "audit")))

	for _, c := range []Config{
		{File: filepath.Join(dir, "out.jsonl")}, {File: filepath.Join(dir, "in.jsonl")}, {File: filepath.Join(dir, "dangling.jsonl")},
		{File: filepath.Join(dir, "folder.jsonl")}, {File: filepath.Join(dir, "fifo.jsonl")}, {File: "/dev/null"},
		{File: filepath.Join(dir, "missing", "a.jsonl")},
		{State: filepath.Join(dir, "state")}, {State: filepath.Join(dir, "state2")}, {State: filepath.Join(dir, "real.jsonl")},
	} {
		c.Session = "S1"
		if l, err := Open(c); err == nil {
			l.Close("")
			t.Errorf("opened %+v", c)
		}
	}
	for path, want := range map[string]string{outside: "x\n", filepath.Join(dir, "real.jsonl"): "y\n"} {
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%s was written: %q", path, got)
		}
	}
	for _, session := range []string{"", "../x", "a.b", "a/b", strings.Repeat("x", 65)} {
		if _, err := Open(Config{State: t.TempDir(), Session: session}); err == nil {
			t.Errorf("session %q", session)
		}
	}
	if _, err := Open(Config{Session: "S1"}); err == nil {
		t.Error("opened nothing")
	}
}

func TestInUse(t *testing.T) {
	c := Config{File: filepath.Join(t.TempDir(), "a.log"), Session: "one", MaxSize: 1000}
	l := mustOpen(t, c)
	for range 5 {
		mustAppend(t, l, sampleRequest()) // also once it has gone on to the next files
	}
	c.Session = "two"
	if _, err := Open(c); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), c.File) {
		t.Errorf("a second session: %v", err)
	}
	mustClose(t, l)
	if err := l.Close(""); !errors.Is(err, ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if err := l.Append(sampleRequest()); unavailable(err) != nil {
		t.Errorf("append behind the end: %v", err)
	}

	files := Chain{Path: c.File}.Files()
	mustClose(t, mustOpen(t, c))
	if now := (Chain{Path: c.File}).Files(); !slices.Equal(files, now[:len(files)]) || !strings.HasSuffix(now[1], "a.2.log") {
		t.Errorf("files %v, then %v", files, now)
	}
	report, err := Verify(t.Context(), Chain{Path: c.File})
	if err != nil || !report.OK() || len(report.Sessions) != 2 || report.Sessions[1] != (SessionReport{"two", StateEnded, 2}) {
		t.Errorf("%+v, %v", report, err)
	}
}

// An empty next file, which a kill may leave, does not break the chain.
func TestEmptyNextFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	mustClose(t, mustOpen(t, Config{File: path, Session: "one"}))
	if err := os.WriteFile(Chain{Path: path}.file(2), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, Config{File: path, Session: "two"}))
	report, err := Verify(t.Context(), Chain{Path: path})
	if err != nil || !report.OK() || len(report.Sessions) != 2 || report.Lines != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

// keep counts sessions, takes all files of one, and leaves those that run.
func TestKeep(t *testing.T) {
	state := t.TempDir()
	old := mustOpen(t, Config{State: state, Session: "A1"})
	for _, id := range []string{"A2", "A3", "A4"} {
		l := mustOpen(t, Config{State: state, Session: id, MaxSize: 1000})
		for range 4 {
			mustAppend(t, l, sampleRequest())
		}
		mustClose(t, l)
	}
	stray := filepath.Join(state, "audit", "notes.txt")
	torn := filepath.Join(state, "audit", "A2.2.jsonl.torn")
	for _, path := range []string{stray, torn} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, mustOpen(t, Config{State: state, Session: "A5", Keep: 3}))
	sessions, err := Sessions(state)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range sessions {
		ids = append(ids, s.ID)
	}
	if got := strings.Join(ids, " "); got != "A1 A4 A5" {
		t.Errorf("kept %s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(state, "audit", "A[23]*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if _, err := os.Stat(stray); err != nil {
		t.Error(err)
	}
	mustClose(t, old)
}

func TestNewSession(t *testing.T) {
	at := time.UnixMilli(1469918176385) // the example of the ULID specification
	if got := ulid(at); len(got) != 26 || got[:10] != "01ARYZ6S41" {
		t.Errorf("ulid %s", got)
	}
	if a, b := NewSession(), NewSession(); a == b || !goodSession(a) {
		t.Errorf("%s, %s", a, b)
	}
}
