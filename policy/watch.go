package policy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Watcher reads a policy again when one of its files changes, or when told,
// and hands over what came of it. It decides nothing: which policy is in force
// is the business of whoever it tells.
type Watcher struct {
	// Path is the policy's file; the folders of it and of what the last good
	// policy's Files name are watched, so that an editor's rename is seen.
	Path string
	// Read reads the policy whole: Load, Select, Add and what else there is.
	Read func() (*Policy, Problems, error)
	// Take gets every outcome, one at a time. Its error is what Reload
	// returns.
	Take func(Change) error
	// Current is the policy in force at the start; a change of files that
	// leaves its hash alone is not told. nil for none.
	Current *Policy
	// ByDemand leaves changes alone: the file lies where the sandbox can write,
	// so only Reload reads it again.
	ByDemand bool
	// Settle is how long the files must be quiet before they are read, 100 ms
	// by default. After ten times as long they are read in any case.
	Settle time.Duration

	once    sync.Once
	demands chan chan error
	ended   chan struct{}
}

// Change is what reading anew brought: a good policy, with its warnings; or nil
// and the problems; or nil and the error that kept it from being read.
type Change struct {
	Policy   *Policy
	Problems Problems
	Err      error
	// Demanded says that Reload asked for it.
	Demanded bool
}

// ErrEnded is the error of a Reload after Run has returned.
var ErrEnded = errors.New("the watcher has ended")

func (w *Watcher) init() {
	w.once.Do(func() {
		w.demands, w.ended = make(chan chan error), make(chan struct{})
		if w.Settle <= 0 {
			w.Settle = 100 * time.Millisecond
		}
	})
}

// Reload reads the policy now and returns what Take said of it. It waits for
// Run to be running.
func (w *Watcher) Reload(ctx context.Context) error {
	w.init()
	if err := ctx.Err(); err != nil {
		return err
	}
	answer := make(chan error, 1)
	select {
	case w.demands <- answer:
	case <-w.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-answer
}

// Run watches until ctx ends, and then returns nil. It is run once. An error
// means that this host gives no watch; with ByDemand set there is none to get.
func (w *Watcher) Run(ctx context.Context) error {
	w.init()
	defer close(w.ended)
	var events chan struct{}
	if !w.ByDemand {
		in, err := newLookout()
		if err != nil {
			return err
		}
		done := make(chan struct{})
		events = make(chan struct{}, 1)
		go func() { // the reader of events; ends when the descriptor is closed
			defer close(done)
			in.read(events)
		}()
		defer func() {
			in.close()
			<-done
		}()
		if err := in.watch(w.files(w.Current)); err != nil {
			return err
		}
		// What changed before the watch stood would not be told.
		_ = w.reread(false, in)
		// What changed before the watch was there is seen by looking once.
		select {
		case events <- struct{}{}:
		default: // one is waiting already
		}
		return w.loop(ctx, events, in)
	}
	return w.loop(ctx, nil, nil)
}

func (w *Watcher) loop(ctx context.Context, events <-chan struct{}, in *lookout) error {
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	var deadline time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case answer := <-w.demands:
			answer <- w.reread(true, in)
		case <-events:
			now := time.Now()
			if deadline.IsZero() {
				deadline = now.Add(10 * w.Settle)
			}
			quiet.Reset(min(w.Settle, deadline.Sub(now)))
		case <-quiet.C:
			deadline = time.Time{}
			if slices.ContainsFunc(w.files(nil), written) {
				continue // the end of the writing is an event
			}
			// Nobody waits for this answer: Take has said what there is to say.
			_ = w.reread(false, in)
		}
	}
}

// reread reads and hands over. Watches are set anew before the reading, so that
// no change between the two is lost, and after it for files that are new.
func (w *Watcher) reread(demanded bool, in *lookout) error {
	p, problems, err := w.Read()
	if in != nil {
		// A folder that cannot be watched is one that is not there.
		_ = in.watch(w.files(p))
	}
	if p != nil && !demanded && w.Current != nil && p.Hash == w.Current.Hash {
		return nil
	}
	if p != nil {
		w.Current = p
	}
	return w.Take(Change{Policy: p, Problems: problems, Err: err, Demanded: demanded})
}

// files are those to watch: of the new policy, else of the last good one.
func (w *Watcher) files(p *Policy) []string {
	if p == nil {
		p = w.Current
	}
	if p == nil {
		return []string{w.Path}
	}
	return append([]string{w.Path}, p.Pins()...)
}
