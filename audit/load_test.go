package audit

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Records from many goroutines, over many files, while others read: none is
// lost, counts are right, and the chain holds.
func TestRotationUnderLoad(t *testing.T) {
	for _, on := range []OnFailure{Block, Warn} {
		state := t.TempDir()
		l := mustOpen(t, Config{State: state, Session: "S1", MaxSize: 50 << 10, OnFailure: on})
		const workers, each = 16, 200
		var wg sync.WaitGroup
		tailed := make(chan int)
		go func() {
			n := 0
			for line, err := range Tail(t.Context(), Chain{Path: l.Path()}, Filter{}, true) {
				if err != nil {
					t.Error(err)
				}
				n++
				if line.Record.Seq != uint64(n) {
					t.Errorf("tail: seq %d at %d", line.Record.Seq, n)
				}
			}
			tailed <- n
		}()
		for range workers {
			wg.Go(func() {
				for i := range each {
					r := sampleRequest()
					if i%3 == 0 {
						if err := l.Reserve(t.Context()); err != nil {
							t.Error(err)
						}
						if i%2 == 0 {
							l.Release()
						} else {
							r.Verdict, r.Reserved = "allow", true
						}
					}
					if err := l.Append(r); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		counts := l.Counts()
		if n := counts[KindRequest]["allow"] + counts[KindRequest]["deny"]; n != workers*each {
			t.Errorf("%d counted", n)
		}
		mustClose(t, l)
		if l.Lost() != 0 {
			t.Errorf("%d lost", l.Lost())
		}
		if n := <-tailed; n != workers*each+2 {
			t.Errorf("tail saw %d", n)
		}
		report, err := Verify(t.Context(), Chain{Path: l.Path()})
		if err != nil || !report.OK() || report.Lines != workers*each+2 || len(report.Files) < 10 {
			t.Errorf("%+v, %v", report, err)
		}
		for _, file := range report.Files {
			if size := fileSize(t, file); size > 50<<10 {
				t.Errorf("%s has %d bytes", file, size)
			}
		}
	}
}

// At max_total on_failure applies; the end of the session still fits.
func TestMaxTotal(t *testing.T) {
	for _, on := range []OnFailure{Block, Warn} {
		var told atomic.Int32
		path := filepath.Join(t.TempDir(), "a.jsonl")
		l := mustOpen(t, Config{File: path, OnFailure: on, MaxTotal: 64 << 10, MaxSize: 10 << 10, Warn: func(error) { told.Add(1) }})
		written := 0
		at := time.Now()
		for range 200 {
			err := l.Append(sampleRequest())
			if err != nil && on == Warn {
				t.Fatal(err)
			}
			if err != nil {
				if unavailable(err) != nil || !errors.Is(err, errTotal) {
					t.Fatal(err)
				}
				continue
			}
			written++
		}
		if on == Block && (written < 50 || written == 200) {
			t.Errorf("%d written", written)
		}
		if on == Block && time.Since(at) > 10*time.Second {
			t.Error("waited for what cannot come")
		}
		if on == Warn && (l.Lost() == 0 || told.Load() != 1) {
			t.Errorf("lost %d, told %d times", l.Lost(), told.Load())
		}
		mustClose(t, l)
		report, err := Verify(t.Context(), Chain{Path: path})
		if err != nil || !report.OK() || report.Sessions[0].State != StateEnded {
			t.Errorf("%+v, %v", report, err)
		}
		var total int64
		for _, file := range report.Files {
			total += fileSize(t, file)
		}
		if total > 64<<10 {
			t.Errorf("%d bytes", total)
		}
	}
}

// A session that ends while requests wait for room or run on.
func TestCloseUnderLoad(t *testing.T) {
	l := mustOpen(t, Config{State: t.TempDir(), MaxSize: 20 << 10})
	var wg sync.WaitGroup
	var acked atomic.Int64
	for range 8 {
		wg.Go(func() {
			for {
				if err := l.Reserve(t.Context()); err != nil {
					if unavailable(err) != nil {
						t.Error(err)
					}
					return
				}
				r := sampleRequest()
				r.Reserved = true
				if err := l.Append(r); err != nil {
					if unavailable(err) != nil {
						t.Error(err)
					}
					return
				}
				acked.Add(1)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	mustClose(t, l)
	wg.Wait()
	report, err := Verify(t.Context(), Chain{Path: l.Path()})
	if err != nil || !report.OK() || report.Sessions[0].State != StateEnded || report.Lines != acked.Load()+2 {
		t.Errorf("%+v, %v, %d acknowledged", report, err, acked.Load())
	}
}
