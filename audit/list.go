package audit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Line is a record as it stands in the file, and as it was read.
type Line struct {
	Raw    []byte // without the line feed; the caller may keep it
	Record Record
}

// LineError says which line could not be read. Reading goes on behind it.
type LineError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns what was wrong.
func (e *LineError) Unwrap() error { return e.Err }

// Filter says which records are wanted; a zero member asks for nothing.
type Filter struct {
	Session string // a prefix, in any letter case
	Host    string // exact, or *.NAME: NAME and every name below it
	Verdict string
	Reason  string
	Kind    Kind
	Since   time.Time // this or later
	Until   time.Time // before this
	Limit   int       // only the last so many
}

// Match says whether r is wanted, Limit aside.
func (f *Filter) Match(r *Record) bool {
	return hasPrefixFold(r.Session, f.Session) &&
		matchHost(f.Host, r.Host) &&
		(f.Verdict == "" || f.Verdict == r.Verdict) &&
		(f.Reason == "" || f.Reason == r.Reason) &&
		(f.Kind == "" || f.Kind == r.Kind) &&
		(f.Since.IsZero() || !r.Time.Before(f.Since)) &&
		(f.Until.IsZero() || r.Time.Before(f.Until))
}

func matchHost(want, host string) bool {
	if want == "" {
		return true
	}
	want, host = strings.ToLower(want), strings.ToLower(host)
	base, wild := strings.CutPrefix(want, "*.")
	return host == want || wild && (host == base || strings.HasSuffix(host, "."+base))
}

// List yields the records of chains, in order, that f wants. A line that
// cannot be read is yielded as a *LineError, and reading goes on; any other
// error ends it.
func List(ctx context.Context, chains []Chain, f Filter) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		w := window{limit: f.Limit}
		for _, chain := range chains {
			c := newCursor(chain)
			_, more := walk(ctx, c, &f, &w, yield)
			c.close()
			if !more {
				return
			}
		}
		w.flush(yield)
	}
}

// walk yields, or keeps in w, what c has now. It returns the last record that
// it met, wanted or not, and whether to go on.
func walk(ctx context.Context, c *cursor, f *Filter, w *window, yield func(Line, error) bool) (last Kind, more bool) {
	for {
		if err := ctx.Err(); err != nil {
			return last, false
		}
		raw, err := c.next()
		if err == io.EOF {
			return last, true
		}
		var r Record
		switch {
		case err == nil:
			if r, err = Parse(raw); err != nil {
				err = &LineError{File: c.name(), Line: c.line, Err: err}
			}
		case isLineFault(err):
			err = &LineError{File: c.name(), Line: c.line, Err: err}
		default:
			yield(Line{}, err)
			return last, false
		}
		if err != nil {
			if !yield(Line{}, err) {
				return last, false
			}
			continue
		}
		last = r.Kind
		if f.Match(&r) && !w.put(Line{bytes.Clone(raw), r}, yield) {
			return last, false
		}
	}
}

// isLineFault says that reading can go on behind err.
func isLineFault(err error) bool {
	_, torn := err.(tornError)
	return torn || err == errLong
}

// window holds back lines so that only the last are yielded; with a limit of 0
// it holds back nothing.
type window struct {
	limit int
	lines []Line
	first int
}

func (w *window) put(l Line, yield func(Line, error) bool) bool {
	switch {
	case w.limit <= 0:
		return yield(l, nil)
	case len(w.lines) < w.limit:
		w.lines = append(w.lines, l)
	default:
		w.lines[w.first] = l
		w.first = (w.first + 1) % w.limit
	}
	return true
}

// flush yields what was held back, and from then on holds back nothing.
func (w *window) flush(yield func(Line, error) bool) bool {
	for i := range w.lines {
		if !yield(w.lines[(w.first+i)%len(w.lines)], nil) {
			return false
		}
	}
	*w = window{}
	return true
}
