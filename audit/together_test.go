package audit

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Records that are appended together stand in the file, each behind those
// before it, when Append returns, whoever else writes meanwhile; and none of
// them waits for another's write.
func TestAppendTogether(t *testing.T) {
	for _, policy := range []OnFailure{Block, Warn} {
		file := filepath.Join(t.TempDir(), "a.jsonl")
		l := mustOpen(t, Config{File: file, OnFailure: policy, BlockTimeout: 20 * time.Second})
		begin := time.Now()
		const writers, each = 8, 300
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					id := fmt.Sprintf("r%d-%d", w, i)
					use := &Record{Kind: KindCredential, Verdict: "allow", Credential: "k", RequestID: id}
					req := sampleRequest()
					req.RequestID = id
					if err := l.Append(use, req); err != nil {
						t.Error(err)
					}
					if use.Seq == 0 || req.Seq <= use.Seq {
						t.Errorf("%s: %d behind %d", id, req.Seq, use.Seq)
					}
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		bad := sampleRequest()
		bad.Kind = "none"
		if err := l.Append(bad, sampleRequest()); err == nil {
			t.Error("a kind that is none: no error")
		}
		if err := l.Append(sampleRequest(), bad); err == nil {
			t.Error("a kind that is none, last: no error")
		}
		if err := l.Append(); err != nil {
			t.Error(err)
		}
		mustClose(t, l)
		lines := readLines(t, file)
		if want := 2*writers*each + 2 + 2; len(lines) != want {
			t.Errorf("%d lines, want %d", len(lines), want)
		}
		for i, line := range lines {
			if !bytes.Contains(line, fmt.Appendf(nil, `"seq":%d,`, i+1)) {
				t.Fatalf("line %d: %s", i+1, line)
			}
		}
	}
}
