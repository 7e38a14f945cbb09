package audit

import (
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	for _, mode := range []struct {
		name string
		on   OnFailure
	}{{"block", Block}, {"warn", Warn}} {
		b.Run(mode.name, func(b *testing.B) {
			l, err := Open(Config{State: b.TempDir(), Session: NewSession(), OnFailure: mode.on, MaxTotal: 1 << 40})
			if err != nil {
				b.Fatal(err)
			}
			r := sampleRequest()
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Append(r); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if err := l.Close(""); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkReserveAppend is what an allowed request pays, 64 at a time.
func BenchmarkReserveAppend(b *testing.B) {
	l, err := Open(Config{State: b.TempDir(), Session: NewSession(), MaxTotal: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		r := sampleRequest()
		for pb.Next() {
			if err := l.Reserve(b.Context()); err != nil {
				b.Error(err)
				return
			}
			r.Reserved = true
			if err := l.Append(r); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	if err := l.Close(""); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEncode is a line without its file: body, chain, hash.
func BenchmarkEncode(b *testing.B) {
	c := Config{Session: NewSession()}
	r := sampleRequest()
	e := new(encoder)
	var line, prev []byte
	b.ReportAllocs()
	for b.Loop() {
		var sum [32]byte
		line, sum = frame(line[:0], r.Time, 7, e.encode(&c, r, false), prev)
		prev = appendHash(prev[:0], sum)
	}
	b.SetBytes(int64(len(line)))
}

// BenchmarkVerify is the cost of one line.
func BenchmarkVerify(b *testing.B) {
	l, err := Open(Config{State: b.TempDir(), Session: NewSession(), OnFailure: Warn})
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		if err := l.Append(sampleRequest()); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(""); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	report, err := Verify(b.Context(), Chain{Path: l.Path()})
	if err != nil || !report.OK() {
		b.Fatal(report.Faults, err)
	}
}
