package audit

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// writerRole appends to a file from many goroutines, and says on stdout what
// was acknowledged, until it is killed.
func writerRole(path string) int {
	l, err := Open(Config{File: path, Session: NewSession(), MaxSize: 200 << 10})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("session", l.cfg.Session)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				r := sampleRequest()
				r.RequestID = fmt.Sprintf("%d-%d-%s", g, i, strings.Repeat("x", rand.IntN(3000)))
				if err := l.Append(r); err != nil {
					return
				}
				// One write(2) to a pipe: what the parent reads is whole lines.
				os.Stdout.WriteString(fmt.Sprintf("ack %d\n", r.Seq))
			}
		})
	}
	wg.Wait()
	return 0
}

// kill -9 at any moment loses nothing that was acknowledged, and the next
// session goes on with the chain.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	acked := make(map[string]uint64)
	for range 12 {
		cmd := roleCommand(t, "writer", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		var session string
		if _, err := fmt.Fscanf(in, "session %s\n", &session); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(5+rand.IntN(60))*time.Millisecond, func() { cmd.Process.Kill() })
		for {
			line, err := in.ReadString('\n')
			if err == io.EOF {
				break
			}
			var seq uint64
			if _, err := fmt.Sscanf(line, "ack %d", &seq); err != nil {
				t.Fatal(err)
			}
			acked[session] = max(acked[session], seq)
		}
		timer.Stop()
		cmd.Wait()
	}
	l := mustOpen(t, Config{File: path})
	mustClose(t, l)

	report, err := Verify(t.Context(), Chain{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Faults {
		t.Error(f)
	}
	if len(report.Sessions) != 13 {
		t.Errorf("%d sessions", len(report.Sessions))
	}
	for i, s := range report.Sessions {
		if s.Records < int64(acked[s.ID]) {
			t.Errorf("session %s: %d records, %d acknowledged", s.ID, s.Records, acked[s.ID])
		}
		if want := map[bool]State{true: StateCut, false: StateEnded}[i < 12]; s.State != want {
			t.Errorf("session %d is %s", i, s.State)
		}
	}
	if len(report.Files) < 2 {
		t.Errorf("files: %v", report.Files)
	}
	torn, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.torn*"))
	t.Logf("%d lines in %d files, %d torn", report.Lines, len(report.Files), len(torn))
}

func TestTornLine(t *testing.T) {
	for _, tail := range []string{"{\"v\":1,\"ti", "\x00\x00\x00", "x"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.jsonl")
		l := mustOpen(t, Config{File: path, Session: "first"})
		mustClose(t, l)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 2; n++ {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString(tail)
			f.Close()
			mustClose(t, mustOpen(t, Config{File: path, Session: fmt.Sprintf("next%d", n)}))
		}
		for _, name := range []string{"a.jsonl.torn", "a.jsonl.torn.2"} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != tail {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		lines := readLines(t, path)
		if got := string(lines[0]) + "\n" + string(lines[1]) + "\n"; got != string(whole) {
			t.Errorf("what was whole became\n%s", got)
		}
		if r, err := Parse(lines[2]); err != nil || r.Kind != KindRecovered || r.Seq != 1 || r.Session != "next1" || r.Prev != SHA256(lines[1]) {
			t.Errorf("recovered: %s", lines[2])
		}
		report, err := Verify(t.Context(), Chain{Path: path})
		if err != nil || !report.OK() {
			t.Errorf("%v, %v", report.Faults, err)
		}
	}
}
