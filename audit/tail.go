package audit

import (
	"context"
	"iter"
	"time"
)

// tailEvery is how often a file is looked at for more.
const tailEvery = 100 * time.Millisecond

// Tail yields what List does, and then what is added to the chain, across
// rotation, until ctx is done or the consumer stops. With ends it also stops
// behind the session_end that nothing follows.
func Tail(ctx context.Context, chain Chain, f Filter, ends bool) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		c := newCursor(chain)
		defer c.close()
		w := window{limit: f.Limit}
		var last Kind
		tick := time.NewTicker(tailEvery)
		defer tick.Stop()
		for {
			kind, more := walk(ctx, c, &f, &w, yield)
			if !more || !w.flush(yield) {
				return
			}
			if kind != "" {
				last = kind
			}
			if ends && last == KindSessionEnd {
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
