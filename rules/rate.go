package rules

import (
	"sync"
	"time"
)

// ledger holds the counters of a Set. One lock guards them all, so that a
// request that several rates count for is charged for all of them or none.
type ledger struct {
	mu       sync.Mutex
	counters map[string]*counter
}

func newLedger() *ledger { return &ledger{counters: map[string]*counter{}} }

// open gives a rule its counter. Equal rules of a file have one each.
func (l *ledger) open(c *compiled) *counter {
	for n := 0; ; n++ {
		key := c.key(n)
		if l.counters[key] == nil {
			l.counters[key] = &counter{rate: c.rule.Rate}
			return l.counters[key]
		}
	}
}

// Adopt goes on with the counters of an older Set: rules that are equal in both
// have used up what they used up. It is called before the Set is used; the
// older one may still be in use.
func (s *Set) Adopt(old *Set) {
	if s == nil || old == nil || old.ledger == nil {
		return
	}
	l := old.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := map[string]*counter{}
	for _, c := range s.rated {
		for n := 0; ; n++ {
			key := c.key(n)
			if kept[key] != nil {
				continue
			}
			if kept[key] = l.counters[key]; kept[key] == nil {
				kept[key] = c.counter
			}
			c.counter = kept[key]
			break
		}
	}
	l.counters = kept
	s.ledger = l
}

// counter counts the requests of the last stretch of its rate exactly, so that
// no stretch ever holds more than the rate. Times that lie close together are
// kept as one where there are many, at the later of them.
type counter struct {
	rate  Rate
	spans []span // in order of time
	used  int    // sum of spans
	last  time.Time
}

// span is a number of requests that count until at plus the rate's Per.
type span struct {
	at time.Time
	n  int
}

// apart is how many times a counter keeps apart.
const apart = 1024

// room says whether one more request fits, else how long until one does. A
// clock that goes back does not make room.
func (c *counter) room(at time.Time) (bool, time.Duration) {
	if at.Before(c.last) {
		at = c.last
	}
	c.last = at
	gone := 0
	for gone < len(c.spans) && !at.Before(c.spans[gone].at.Add(c.rate.Per)) {
		c.used -= c.spans[gone].n
		gone++
	}
	c.spans = c.spans[gone:]
	if c.used < c.rate.Count {
		return true, 0
	}
	return false, c.spans[0].at.Add(c.rate.Per).Sub(at)
}

// charge counts one request, for which there is room.
func (c *counter) charge() {
	c.used++
	if n := len(c.spans); n > 0 {
		last := &c.spans[n-1]
		if c.last.Equal(last.at) || c.rate.Count > apart && c.last.Sub(last.at) < c.rate.Per/apart {
			last.at = c.last
			last.n++
			return
		}
	}
	c.spans = append(c.spans, span{c.last, 1})
}

// refund takes back the newest request that was counted.
func (c *counter) refund() {
	n := len(c.spans)
	if n == 0 {
		return // it does not count any more
	}
	c.used--
	if c.spans[n-1].n--; c.spans[n-1].n == 0 {
		c.spans = c.spans[:n-1]
	}
}
