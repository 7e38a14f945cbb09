package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
)

// FaultKind says what is wrong with a chain.
type FaultKind string

// What can be wrong with a chain.
const (
	FaultChanged   FaultKind = "changed"   // a line is not what was written
	FaultMissing   FaultKind = "missing"   // lines were taken out
	FaultReordered FaultKind = "reordered" // a line stands, or was put, where it was not written
	FaultCounts    FaultKind = "counts"    // session_end counts other records than there are
)

// Fault is one thing that is wrong with a chain, and where.
type Fault struct {
	Kind FaultKind
	File string
	Line int // from 1
	Text string
}

func (f Fault) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Kind, f.Text)
}

// SessionReport is what a chain holds of one session.
type SessionReport struct {
	ID      string
	State   State
	Records int64
}

// Report is what Verify found.
type Report struct {
	Files    []string
	Lines    int64
	Sessions []SessionReport // in the order of the chain
	Faults   []Fault
	Torn     int // bytes of a line that was not finished, at the end of the chain
}

// OK says that the chain holds. A session without an end, and a torn last line,
// are no faults: a kill leaves them.
func (r *Report) OK() bool { return len(r.Faults) == 0 }

// spot is a line of a chain.
type spot struct {
	file string
	line int
	no   int64 // in the chain, from 1
}

func (s spot) String() string { return fmt.Sprintf("%s:%d", s.file, s.line) }

// breach is a line whose prev is not the hash of the line before.
type breach struct {
	at, before spot // before is zero for the first line
	r          Record
	last       Record // what stands before, zero where that is no record
	fault      int    // its place in the report
}

// verifier walks over a chain.
type verifier struct {
	report   Report
	at       spot
	hash     []byte // of the line before
	last     Record // the record before, zero if that line was none
	breaches []breach
	counts   Counts
	ended    bool
}

// Verify reads a chain and says what is wrong with it. Its error is for a file
// that cannot be read, or ctx.
func Verify(ctx context.Context, chain Chain) (Report, error) {
	running, err := chain.Running()
	if err != nil {
		return Report{}, err
	}
	c := newCursor(chain)
	defer c.close()
	v := verifier{}
	for {
		if err := ctx.Err(); err != nil {
			return Report{}, fmt.Errorf("verifying the record: %w", err)
		}
		line, err := c.next()
		if err == io.EOF {
			break
		}
		if err != nil && !isLineFault(err) {
			return Report{}, err
		}
		before := v.at
		v.at = spot{c.name(), c.line, v.at.no + 1}
		if err != nil {
			v.noRecord(err)
			continue
		}
		v.line(line, before)
	}
	v.report.Files = chain.Files()
	v.report.Lines = v.at.no
	if !running {
		v.report.Torn = c.rest()
	}
	v.endSession(running)
	if err := v.explain(ctx, chain); err != nil {
		return Report{}, err
	}
	return v.report, nil
}

func (v *verifier) fault(kind FaultKind, at spot, format string, args ...any) {
	v.report.Faults = append(v.report.Faults, Fault{kind, at.file, at.line, fmt.Sprintf(format, args...)})
}

// noRecord is a line that is none of ours.
func (v *verifier) noRecord(err error) {
	v.fault(FaultChanged, v.at, "%v", err)
	v.last = Record{}
	v.hash = nil
}

func (v *verifier) line(line []byte, before spot) {
	sum := sha256.Sum256(line)
	r, err := Parse(line)
	if err != nil {
		v.noRecord(err)
		v.hash = appendHash(nil, sum)
		return
	}
	if r.Prev != string(v.hash) {
		v.breaches = append(v.breaches, breach{v.at, before, r, v.last, len(v.report.Faults)})
		v.report.Faults = append(v.report.Faults, Fault{}) // explain fills it
	} else {
		v.order(&r)
	}
	v.session(&r)
	v.hash = appendHash(v.hash[:0], sum)
	v.last = r
}

// order finds what a chain that was hashed anew does not show.
func (v *verifier) order(r *Record) {
	want := uint64(1)
	if sameRun(&v.last, r) {
		want = v.last.Seq + 1
	}
	if v.last.Seq == 0 && v.at.no > 1 {
		return // the line before is no record, and said to be none
	}
	if r.Seq != want {
		v.fault(FaultMissing, v.at, "seq is %d where %d is due", r.Seq, want)
	} else if sameRun(&v.last, r) && v.last.Kind == KindSessionEnd {
		v.fault(FaultReordered, v.at, "a record behind the end of its session")
	}
}

// sameRun says that b goes on with the session of a. A session that was begun
// again under its old id counts from 1 again.
func sameRun(a, b *Record) bool { return a.Session == b.Session && a.Seq != 0 && b.Seq > 1 }

// session counts the record.
func (v *verifier) session(r *Record) {
	n := len(v.report.Sessions)
	if n == 0 || v.report.Sessions[n-1].ID != r.Session || r.Seq == 1 {
		v.endSession(false)
		v.report.Sessions = append(v.report.Sessions, SessionReport{ID: r.Session})
		v.counts, v.ended = make(Counts), false
		n = len(v.report.Sessions)
	}
	v.report.Sessions[n-1].Records++
	if r.Kind == KindSessionEnd {
		if !sameCounts(v.counts, r.Counts) {
			v.fault(FaultCounts, v.at, "session_end counts %v, but there are %v", r.Counts, v.counts)
		}
		v.ended = true
		return
	}
	v.counts.add(r.Kind, r.Verdict, 1)
}

func sameCounts(a, b Counts) bool {
	return maps.EqualFunc(a, b, func(x, y map[string]int64) bool { return maps.Equal(x, y) })
}

// endSession gives the last session its state.
func (v *verifier) endSession(running bool) {
	n := len(v.report.Sessions)
	if n == 0 {
		return
	}
	s := &v.report.Sessions[n-1]
	switch {
	case running:
		s.State = StateOpen
	case v.ended:
		s.State = StateEnded
	default:
		s.State = StateCut
	}
}
