package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
)

// explain says of each breach what was done. A breach whose prev is the hash
// of another line of the chain is a matter of order; for the others seq tells
// a line that is missing from one that was changed.
func (v *verifier) explain(ctx context.Context, chain Chain) error {
	if len(v.breaches) == 0 {
		return nil
	}
	wanted := make(map[string]spot, len(v.breaches))
	for i := range v.breaches {
		wanted[v.breaches[i].r.Prev] = spot{}
	}
	if err := locate(ctx, chain, wanted); err != nil {
		return err
	}
	for i := range v.breaches {
		b := &v.breaches[i]
		v.report.Faults[b.fault] = b.explain(wanted[b.r.Prev])
	}
	// A line that is no record, or was changed, is said once.
	v.report.Faults = slices.CompactFunc(v.report.Faults, func(a, b Fault) bool {
		return a.Kind == b.Kind && a.File == b.File && a.Line == b.Line
	})
	return nil
}

// locate finds the lines that have one of the wanted hashes.
func locate(ctx context.Context, chain Chain, wanted map[string]spot) error {
	c := newCursor(chain)
	defer c.close()
	var text []byte
	for no := int64(1); ; no++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("verifying the record: %w", err)
		}
		line, err := c.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if isLineFault(err) {
				continue
			}
			return err
		}
		text = appendHash(text[:0], sha256.Sum256(line))
		if at, ok := wanted[string(text)]; ok && at.no == 0 {
			wanted[string(text)] = spot{c.name(), c.line, no}
		}
	}
}

// explain says what a breach is; found is the line that its record was written
// behind, zero where there is none.
func (b *breach) explain(found spot) Fault {
	at := func(s spot, kind FaultKind, format string, args ...any) Fault {
		return Fault{kind, s.file, s.line, fmt.Sprintf(format, args...)}
	}
	switch {
	case b.r.Prev != "" && found.no != 0:
		return at(b.at, FaultReordered, "written behind %v, not here", found)
	case b.before.no == 0:
		return at(b.at, FaultMissing, "the chain begins with seq %d, and lines before it are gone", b.r.Seq)
	case b.r.Prev == "":
		return at(b.at, FaultReordered, "another chain begins here")
	case b.last.Seq == 0:
		return at(b.before, FaultChanged, "is no record")
	case !sameRun(&b.last, &b.r):
		if b.last.Kind == KindSessionEnd && b.r.Seq == 1 {
			return at(b.before, FaultChanged, "is not what the next line was written behind")
		}
		return at(b.at, FaultMissing, "lines between the sessions %s and %s are gone", b.last.Session, b.r.Session)
	case b.r.Seq > b.last.Seq+1:
		return at(b.at, FaultMissing, "%d records before this line are gone, seq %d to %d", b.r.Seq-b.last.Seq-1, b.last.Seq+1, b.r.Seq-1)
	case b.r.Seq <= b.last.Seq:
		return at(b.at, FaultReordered, "seq is %d behind %d", b.r.Seq, b.last.Seq)
	}
	return at(b.before, FaultChanged, "is not what the next line was written behind")
}
