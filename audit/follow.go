package audit

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"path/filepath"
	"time"
)

const (
	// folderEvery is how often a folder is looked at for new sessions.
	folderEvery = 300 * time.Millisecond
	// idleFor is how long a session adds nothing before it is asked whether it
	// still runs. One that has just made its file does not hold its lock yet.
	idleFor = 5 * time.Second
)

// Follow yields what List does of the newest session of a state folder, and
// then what is added to it and to every session that starts later, in the order
// in which it is met, until ctx is done or the consumer stops. A folder without
// records is waited at.
func Follow(ctx context.Context, state string, f Filter) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		follow := follower{state: state, filter: f, known: map[string]bool{}, yield: yield}
		defer follow.close()
		tick := time.NewTicker(tailEvery)
		defer tick.Stop()
		var looked time.Time
		for {
			if time.Since(looked) >= folderEvery {
				if err := follow.look(looked.IsZero()); err != nil {
					yield(Line{}, err)
					return
				}
				looked = time.Now()
			}
			if !follow.walk(ctx) {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// follower is one call of Follow.
type follower struct {
	state  string
	filter Filter
	known  map[string]bool // sessions that were met, ended ones too
	open   []*followed     // those that may go on, oldest first
	yield  func(Line, error) bool
}

// followed is a session that is being read.
type followed struct {
	cursor *cursor
	window window
	grown  time.Time // when it last had something new, or was asked whether it runs
}

func (f *follower) close() {
	for _, s := range f.open {
		s.cursor.close()
	}
}

// look takes in the sessions that are new in the folder; at first only the
// newest of all, from as far before its end as the filter says.
func (f *follower) look(first bool) error {
	ids, dir, err := sessionIDs(f.state)
	if err != nil {
		return err
	}
	for i, id := range ids {
		if f.known[id] {
			continue
		}
		f.known[id] = true
		s := &followed{grown: time.Now()}
		if first {
			if i < len(ids)-1 {
				continue
			}
			s.window.limit = f.filter.Limit
		}
		s.cursor = newCursor(Chain{Path: filepath.Join(dir, id+".jsonl")})
		f.open = append(f.open, s)
	}
	return nil
}

// walk reads what each session has now, and leaves those that are over. It
// returns whether to go on.
func (f *follower) walk(ctx context.Context) bool {
	goOn := f.open[:0]
	for i, s := range f.open {
		over, more := f.session(ctx, s)
		if !more {
			f.open = append(goOn, f.open[i:]...) // for close
			return false
		}
		if over {
			s.cursor.close()
			continue
		}
		goOn = append(goOn, s)
	}
	f.open = goOn
	return true
}

// session reads on in one session. over says that nothing more will come.
func (f *follower) session(ctx context.Context, s *followed) (over, more bool) {
	removed := false
	last, more := walk(ctx, s.cursor, &f.filter, &s.window, func(l Line, err error) bool {
		if errors.Is(err, fs.ErrNotExist) {
			removed = true // by keep, before it was opened
			return false
		}
		return f.yield(l, err)
	})
	if removed {
		return true, true
	}
	if !more || !s.window.flush(f.yield) {
		return false, false
	}
	switch {
	case last == KindSessionEnd: // in a state folder no other session goes on here
		return true, true
	case last != "":
		s.grown = time.Now()
	case time.Since(s.grown) >= idleFor:
		s.grown = time.Now()
		running, err := s.cursor.chain.Running()
		// What was written before the lock was given up has been read by now or
		// is read once more.
		if err != nil || !running {
			_, more = walk(ctx, s.cursor, &f.filter, &s.window, f.yield)
			return true, more
		}
	}
	return false, true
}
