package source

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
)

const (
	// renewEvery is how often 401s may have a source asked again.
	renewEvery = 30 * time.Second
	// renewals is how many new values 401s may bring in an hour. Who can have an
	// origin answer 401 could else have a source that makes a new token each time
	// use up what a Keeper remembers, while the first token is still good: nobody
	// would look for that one any more.
	renewals = remembered / 2
	// remembered is how many values a Keeper tells of.
	remembered = 16
	// A source that fails is left alone for a second, then twice as long each
	// time, up to renewEvery: a sandbox must not have a program run on the host
	// as often as it can send requests.
	firstPause = time.Second
)

// Unavailable is a secret that could not be had. Its text is fixed and safe
// anywhere; Unwrap gives the cause, which names the place: see Explain.
type Unavailable struct{ Err error }

func (e *Unavailable) Error() string { return "asking for secret: it could not be had" }

func (e *Unavailable) Unwrap() error { return e.Err }

// Reason is the name in records and problem documents.
func (e *Unavailable) Reason() string { return "credential_unavailable" }

// Keeper holds one secret over time and asks for it again when it must: after
// its time to live, its expiry, and a 401. However many wait, it is asked for
// once. While it cannot be had there is none: the old one is not used. All
// methods may be called from any goroutine.
type Keeper struct {
	ctx   context.Context
	stop  context.CancelFunc
	fetch Fetch
	ttl   time.Duration
	now   func() time.Time
	wait  sync.WaitGroup

	mu         sync.Mutex
	value      secret.Value
	generation uint64
	until      time.Time // the value is good before; zero: for the run
	failed     error     // why there is no value; nil at first
	quiet      time.Time // not asked before, after a failure
	pause      time.Duration
	renewed    time.Time   // last asked after a 401
	brought    []time.Time // when a 401 brought another value, in the last hour
	flight     *flight
	seen       []secret.Value
}

// flight is one question to the source; what it brought is set before done is
// closed.
type flight struct {
	done       chan struct{}
	value      secret.Value
	generation uint64
	err        error
	renewal    bool // asked because of a 401
}

// NewKeeper makes a Keeper that has not asked yet. ttl 0 is for the whole run;
// now nil is time.Now. When ctx ends, a question that is under way ends and all
// that wait get an error. Close when done.
func NewKeeper(ctx context.Context, fetch Fetch, ttl time.Duration, now func() time.Time) *Keeper {
	if now == nil {
		now = time.Now
	}
	k := &Keeper{fetch: fetch, ttl: ttl, now: now}
	k.ctx, k.stop = context.WithCancel(ctx)
	return k
}

// Close ends a question that is under way, programs included, and waits.
func (k *Keeper) Close() {
	k.mu.Lock() // so that none begins between stop and Wait
	k.stop()
	k.mu.Unlock()
	k.wait.Wait()
}

// Get gives the secret, never one known to be expired, and its generation: a
// number from 1 that changes with the secret. The error is an *Unavailable, or
// ctx's when ctx ends first; the question then goes on for the others.
func (k *Keeper) Get(ctx context.Context) (secret.Value, uint64, error) {
	k.mu.Lock()
	f, v, g, err := k.look(k.now())
	k.mu.Unlock()
	if f == nil {
		return v, g, err
	}
	return f.land(ctx)
}

// Renew is called after an origin answered 401 to the secret of a generation.
// It asks the source, once for all that wait and at most once in 30 s, unless
// there is another secret already, or there were 8 others by way of it within the
// hour. changed says whether what it gives is
// another than the one that was sent.
func (k *Keeper) Renew(ctx context.Context, generation uint64) (v secret.Value, g uint64, changed bool, err error) {
	k.mu.Lock()
	now := k.now()
	var f *flight
	switch sent := k.good(now) && generation == k.generation; {
	case sent && k.flight != nil:
		f = k.flight
	case sent && (k.renewed.IsZero() || now.Sub(k.renewed) >= renewEvery) && k.mayBring(now):
		k.renewed = now
		f = k.ask()
		f.renewal = true
	default:
		f, v, g, err = k.look(now)
	}
	k.mu.Unlock()
	if f != nil {
		v, g, err = f.land(ctx)
	}
	return v, g, err == nil && g != generation, err
}

// mayBring says that a 401 may bring another value. k.mu is held.
func (k *Keeper) mayBring(now time.Time) bool {
	k.brought = slices.DeleteFunc(k.brought, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	return len(k.brought) < renewals
}

// Values are the values of this run, the last 16, oldest first.
func (k *Keeper) Values() []secret.Value {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.seen)
}

// good reports whether there is a value to send.
func (k *Keeper) good(now time.Time) bool {
	return k.generation > 0 && k.failed == nil && (k.until.IsZero() || now.Before(k.until))
}

// look gives what is there, or the flight to wait for. k.mu is held.
func (k *Keeper) look(now time.Time) (*flight, secret.Value, uint64, error) {
	switch {
	case k.good(now):
		return nil, k.value, k.generation, nil
	case k.flight == nil && k.failed != nil && now.Before(k.quiet):
		return nil, secret.Value{}, 0, k.failed
	}
	return k.ask(), secret.Value{}, 0, nil
}

// ask joins the flight that is under way, or begins one. k.mu is held.
func (k *Keeper) ask() *flight {
	if k.flight == nil && k.ctx.Err() != nil {
		f := &flight{done: make(chan struct{}), err: &Unavailable{k.ctx.Err()}}
		close(f.done)
		return f
	}
	if k.flight == nil {
		f := &flight{done: make(chan struct{})}
		k.flight = f
		asked := k.now()
		k.wait.Go(func() {
			v, expiry, err := k.fetch(k.ctx)
			k.land(f, asked, v, expiry, err)
		})
	}
	return k.flight
}

// land takes in what a flight brought.
func (k *Keeper) land(f *flight, asked time.Time, v secret.Value, expiry time.Time, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer close(f.done)
	k.flight = nil
	now := k.now()
	switch {
	case err != nil:
	case v.IsZero():
		err = errors.New("asking for secret: it is empty")
	case !expiry.IsZero() && !now.Before(expiry):
		err = errors.New("asking for secret: it has expired already")
	}
	if err != nil {
		k.pause = min(max(firstPause, 2*k.pause), renewEvery)
		k.quiet, k.failed, k.value = now.Add(k.pause), &Unavailable{err}, secret.Value{}
		f.err = k.failed
		return
	}
	if k.generation == 0 || !v.Equal(k.last()) {
		if f.renewal {
			k.brought = append(k.brought, now)
		}
		k.generation++
		k.remember(v)
	}
	k.value, k.failed, k.pause, k.until = v, nil, 0, expiry
	if by := asked.Add(k.ttl); k.ttl > 0 && (expiry.IsZero() || by.Before(expiry)) {
		k.until = by
	}
	f.value, f.generation = v, k.generation
}

// last is the newest value there was.
func (k *Keeper) last() secret.Value { return k.seen[len(k.seen)-1] }

// remember keeps each value once, the newest last.
func (k *Keeper) remember(v secret.Value) {
	k.seen = slices.DeleteFunc(k.seen, v.Equal)
	k.seen = append(k.seen, v)
	if len(k.seen) > remembered {
		k.seen = slices.Delete(k.seen, 0, len(k.seen)-remembered)
	}
}

// land waits for what a flight brings, as long as ctx allows.
func (f *flight) land(ctx context.Context) (secret.Value, uint64, error) {
	select {
	case <-f.done:
		return f.value, f.generation, f.err
	case <-ctx.Done():
		return secret.Value{}, 0, context.Cause(ctx)
	}
}
