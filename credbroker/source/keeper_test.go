package source_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/credbroker/source"
)

// well is a source for tests: it counts how often it is asked, takes its time,
// and gives what is in it.
type well struct {
	mu     sync.Mutex
	asked  int
	value  string
	life   time.Duration // until expiry; 0 for none
	takes  time.Duration
	broken error
	ended  int // times it was cut short
}

func (w *well) set(value string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.value, w.broken = value, err
}

func (w *well) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func (w *well) fetch(ctx context.Context) (secret.Value, time.Time, error) {
	w.mu.Lock()
	w.asked++
	takes := w.takes
	w.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		w.mu.Lock()
		w.ended++
		w.mu.Unlock()
		return secret.Value{}, time.Time{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var expiry time.Time
	if w.life != 0 {
		expiry = time.Now().Add(w.life)
	}
	return secret.New([]byte(w.value)), expiry, w.broken
}

// keep runs a test of a Keeper in a bubble, whose clock is the Keeper's.
func keep(t *testing.T, w *well, ttl time.Duration, test func(t *testing.T, k *source.Keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := source.NewKeeper(t.Context(), w.fetch, ttl, nil)
		defer k.Close()
		test(t, k)
	})
}

func get(t *testing.T, k *source.Keeper, want string, generation uint64) {
	t.Helper()
	v, g, err := k.Get(t.Context())
	if string(v.Reveal()) != want || g != generation || err != nil {
		t.Errorf("got %q of generation %d, %v; want %q of %d", v.Reveal(), g, err, want, generation)
	}
}

func getNone(t *testing.T, k *source.Keeper) {
	t.Helper()
	v, _, err := k.Get(t.Context())
	unavailable(t, v, err)
}

func unavailable(t *testing.T, v secret.Value, err error) {
	t.Helper()
	var reason interface{ Reason() string }
	if !errors.As(err, &reason) || reason.Reason() != "credential_unavailable" || !v.IsZero() {
		t.Errorf("got %q, %v", v.Reveal(), err)
	}
	if err != nil && err.Error() != "asking for secret: it could not be had" {
		t.Errorf("the text is not fixed: %v", err)
	}
}

func renew(t *testing.T, k *source.Keeper, sent uint64, want string, generation uint64, changed bool) {
	t.Helper()
	v, g, c, err := k.Renew(t.Context(), sent)
	if string(v.Reveal()) != want || g != generation || c != changed || err != nil {
		t.Errorf("got %q of generation %d, changed %v, %v; want %q of %d, %v", v.Reveal(), g, c, err, want, generation, changed)
	}
}

func asked(t *testing.T, w *well, want int) {
	t.Helper()
	if got := w.count(); got != want {
		t.Errorf("asked %d times, want %d", got, want)
	}
}

func TestKeeperTTL(t *testing.T) {
	w := &well{value: "old"}
	keep(t, w, time.Minute, func(t *testing.T, k *source.Keeper) {
		asked(t, w, 0)
		get(t, k, "old", 1)
		w.set("new", nil)
		time.Sleep(time.Minute - time.Nanosecond)
		get(t, k, "old", 1)
		asked(t, w, 1)
		time.Sleep(time.Nanosecond)
		get(t, k, "new", 2)
		asked(t, w, 2)
		time.Sleep(time.Minute)
		get(t, k, "new", 2) // the same is the same
		asked(t, w, 3)
	})
}

func TestKeeperWithoutTTL(t *testing.T) {
	w := &well{value: "old"}
	keep(t, w, 0, func(t *testing.T, k *source.Keeper) {
		get(t, k, "old", 1)
		w.set("new", nil)
		time.Sleep(24 * time.Hour)
		get(t, k, "old", 1)
		asked(t, w, 1)
	})
}

// An expiry and a ttl: the first counts. What comes expired is not sent.
func TestKeeperExpiry(t *testing.T) {
	for _, c := range []struct{ life, ttl, until time.Duration }{
		{time.Hour, 0, time.Hour}, {time.Hour, 2 * time.Hour, time.Hour}, {time.Hour, time.Minute, time.Minute},
	} {
		w := &well{value: "a", life: c.life}
		keep(t, w, c.ttl, func(t *testing.T, k *source.Keeper) {
			get(t, k, "a", 1)
			w.set("b", nil)
			time.Sleep(c.until - 1)
			get(t, k, "a", 1)
			time.Sleep(time.Nanosecond)
			get(t, k, "b", 2)
		})
	}
	for _, life := range []time.Duration{-1, -time.Hour} {
		w := &well{value: "a", life: life}
		keep(t, w, 0, func(t *testing.T, k *source.Keeper) { getNone(t, k) })
	}
}

func TestKeeperNothing(t *testing.T) {
	w := &well{}
	keep(t, w, 0, func(t *testing.T, k *source.Keeper) {
		getNone(t, k)
		if len(k.Values()) != 0 {
			t.Error("there are values")
		}
	})
}

// A failing source gives an error and no old secret; it is left alone for a
// second, then longer and longer, up to half a minute.
func TestKeeperFailure(t *testing.T) {
	w := &well{value: "old"}
	keep(t, w, time.Minute, func(t *testing.T, k *source.Keeper) {
		get(t, k, "old", 1)
		w.set("hush", errors.New("hush"))
		time.Sleep(time.Minute)
		n := 1
		for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			getNone(t, k)
			n++
			asked(t, w, n)
			time.Sleep(pause*time.Second - 1)
			getNone(t, k)
			v, _, changed, err := k.Renew(t.Context(), 1)
			unavailable(t, v, err)
			if changed {
				t.Error("an error is a change")
			}
			asked(t, w, n)
			time.Sleep(time.Nanosecond)
		}
		w.set("old", nil)
		get(t, k, "old", 1)
		asked(t, w, n+1)
		// It works again: the pause is short again.
		w.set("", errors.New("hush"))
		time.Sleep(time.Minute)
		getNone(t, k)
		w.set("new", nil)
		time.Sleep(time.Second)
		get(t, k, "new", 2)
	})
}

func TestRenew(t *testing.T) {
	w := &well{value: "a"}
	keep(t, w, 0, func(t *testing.T, k *source.Keeper) {
		get(t, k, "a", 1)
		renew(t, k, 1, "a", 1, false) // asked, and the same
		asked(t, w, 2)
		w.set("b", nil)
		renew(t, k, 1, "a", 1, false) // not asked again so soon
		asked(t, w, 2)
		time.Sleep(30*time.Second - 1)
		renew(t, k, 1, "a", 1, false)
		asked(t, w, 2)
		time.Sleep(time.Nanosecond)
		renew(t, k, 1, "b", 2, true)
		asked(t, w, 3)
		renew(t, k, 1, "b", 2, true) // a late 401 to the old one
		renew(t, k, 2, "b", 2, false)
		asked(t, w, 3)
	})
}

// Who has an origin answer 401 on end does not have the first token forgotten
// while it is good.
func TestRenewWithoutEnd(t *testing.T) {
	w := &well{value: "v0"}
	keep(t, w, 0, func(t *testing.T, k *source.Keeper) {
		get(t, k, "v0", 1)
		for i := 1; i <= 119; i++ { // an hour but 30 s
			w.set(fmt.Sprint("v", i), nil)
			_, now, err := k.Get(t.Context())
			if err == nil {
				_, _, _, err = k.Renew(t.Context(), now)
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
		}
		asked(t, w, 9)
		if values := k.Values(); string(values[0].Reveal()) != "v0" || len(values) != 9 {
			t.Errorf("%d values, the first is %q", len(values), values[0].Reveal())
		}
		time.Sleep(time.Minute)
		w.set("later", nil)
		renew(t, k, 9, "later", 10, true)
	})
}

// Asking by ttl does not count as asking after a 401.
func TestRenewAfterTTL(t *testing.T) {
	w := &well{value: "a"}
	keep(t, w, time.Minute, func(t *testing.T, k *source.Keeper) {
		get(t, k, "a", 1)
		time.Sleep(time.Minute)
		get(t, k, "a", 1)
		w.set("b", nil)
		renew(t, k, 1, "b", 2, true)
		asked(t, w, 3)
		// Within the 30 s a value past its ttl is asked for all the same.
		time.Sleep(29 * time.Second)
		renew(t, k, 2, "b", 2, false)
		asked(t, w, 3)
	})
}

func TestRenewOfExpired(t *testing.T) {
	w := &well{value: "a", life: 10 * time.Second}
	keep(t, w, 0, func(t *testing.T, k *source.Keeper) {
		get(t, k, "a", 1)
		renew(t, k, 1, "a", 1, false)
		asked(t, w, 2)
		time.Sleep(10 * time.Second)
		w.set("b", nil)
		renew(t, k, 1, "b", 2, true) // 10 s after the last, but it has expired
		asked(t, w, 3)
	})
}

func TestRenewFailure(t *testing.T) {
	w := &well{value: "a"}
	keep(t, w, 0, func(t *testing.T, k *source.Keeper) {
		get(t, k, "a", 1)
		w.set("", errors.New("hush"))
		v, _, changed, err := k.Renew(t.Context(), 1)
		unavailable(t, v, err)
		if changed {
			t.Error("an error is a change")
		}
		getNone(t, k) // the old one is not used
		asked(t, w, 2)
	})
}

// However many wait, the source is asked once.
func TestSingleFlight(t *testing.T) {
	w := &well{value: "a", takes: 3 * time.Second}
	keep(t, w, time.Minute, func(t *testing.T, k *source.Keeper) {
		var wait sync.WaitGroup
		for range 50 {
			wait.Go(func() { get(t, k, "a", 1) })
		}
		wait.Wait()
		asked(t, w, 1)
		w.set("b", nil)
		for i := range 50 {
			wait.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				renew(t, k, 1, "b", 2, true)
			})
		}
		time.Sleep(time.Second)
		get(t, k, "a", 1) // one that did not get a 401 does not wait
		wait.Wait()
		asked(t, w, 2)
		// Renew joins what a ttl began.
		time.Sleep(time.Minute)
		w.set("c", nil)
		wait.Go(func() { get(t, k, "c", 3) })
		wait.Go(func() { renew(t, k, 2, "c", 3, true) })
		wait.Wait()
		asked(t, w, 3)
	})
}

// A caller that goes takes nobody along, and nobody's question.
func TestCancelledCaller(t *testing.T) {
	w := &well{value: "a", takes: 3 * time.Second}
	keep(t, w, 0, func(t *testing.T, k *source.Keeper) {
		gone := errors.New("the client has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			began := time.Now()
			if _, _, err := k.Get(ctx); !errors.Is(err, gone) || time.Since(began) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		})
		time.Sleep(time.Second)
		wait.Go(func() { get(t, k, "a", 1) })
		synctest.Wait()
		cancel(gone)
		wait.Wait()
		asked(t, w, 1)
		// With all of them gone it still comes to its end.
		w.set("b", nil)
		late, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, _, _, err := k.Renew(late, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		get(t, k, "b", 2)
		asked(t, w, 2)
	})
}

// Close and the end of the run end the question, and all that wait.
func TestKeeperClose(t *testing.T) {
	for name, end := range map[string]func(*source.Keeper, context.CancelFunc){
		"close": func(k *source.Keeper, _ context.CancelFunc) { k.Close() },
		"run":   func(_ *source.Keeper, cancel context.CancelFunc) { cancel(); synctest.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &well{value: "a", takes: time.Hour}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				k := source.NewKeeper(ctx, w.fetch, 0, time.Now)
				done := make(chan struct{})
				go func() { defer close(done); getNone(t, k) }()
				synctest.Wait()
				end(k, cancel)
				<-done
				if w.ended != 1 {
					t.Errorf("cut short %d times", w.ended)
				}
				time.Sleep(time.Hour)
				getNone(t, k)
				asked(t, w, 1)
				k.Close()
			})
		})
	}
}

func TestValues(t *testing.T) {
	w := &well{}
	keep(t, w, time.Second, func(t *testing.T, k *source.Keeper) {
		for i := range 20 {
			w.set(fmt.Sprint("v", i), nil)
			get(t, k, fmt.Sprint("v", i), uint64(i+1))
			time.Sleep(time.Second)
		}
		// One that comes again is the newest, and stands once.
		w.set("v10", nil)
		get(t, k, "v10", 21)
		// A failure forgets nothing.
		time.Sleep(time.Second)
		w.set("", errors.New("hush"))
		getNone(t, k)
		var got []string
		for _, v := range k.Values() {
			got = append(got, string(v.Reveal()))
		}
		if want := "[v4 v5 v6 v7 v8 v9 v11 v12 v13 v14 v15 v16 v17 v18 v19 v10]"; fmt.Sprint(got) != want {
			t.Errorf("got %v", got)
		}
	})
}

// The Keeper and a real program, which the end of the run must not leave behind.
func TestKeeperKillsProgram(t *testing.T) {
	quiet(t)
	cfg := at(t, nil)
	k := source.NewKeeper(t.Context(), cfg.Fetch(sh("echo $$ > $HOME/pid; sleep 300"), source.Options{}), 0, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := k.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	began := time.Now()
	k.Close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
	gone(t, pidIn(t, cfg.Home+"/pid"))
}
