package proxy

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// openAfter is how long an allowed request runs before a record says that it is
// open.
const openAfter = time.Second

// sweepEvery is how often running requests are asked about again: a rule's
// until, or a grant, ends without anybody swapping the policy.
const sweepEvery = time.Second

// errRevoked ends the context of a request that the policy of now forbids.
var errRevoked = errors.New("the policy no longer allows this request")

// live is every allowed request that runs, oldest first. One timer, armed only
// while there is one, writes request_open records and looks for what is no
// longer allowed, so a request costs no timer and no goroutine.
type live struct {
	server *Server

	mu         sync.Mutex
	head, tail *exchange
	n          int
	armed      bool
	stopped    bool
	timer      *time.Timer
	empty      chan struct{} // closed and renewed when n falls to 0; nil while nobody waits
}

// add enters x. It is false where the policy changed since x was judged and the
// new one forbids it: a swap asks only those that it finds here.
func (l *live) add(x *exchange) bool {
	x.client.recorded.Store(true) // by what ends x, even where the connection ends first
	l.mu.Lock()
	x.live = true
	x.prev = l.tail
	if l.tail != nil {
		l.tail.next = x
	} else {
		l.head = x
	}
	l.tail = x
	l.n++
	if !l.armed && !l.stopped {
		l.armed = true
		l.arm(openAfter)
	}
	l.mu.Unlock()
	if now := l.server.current.Load(); now != x.force && x.forbidden(now, time.Now()) {
		return false
	}
	return true
}

func (l *live) arm(d time.Duration) {
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.sweep)
		return
	}
	l.timer.Reset(d)
}

// remove takes x out; it does nothing where x was never in.
func (l *live) remove(x *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !x.live {
		return
	}
	x.live = false
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		l.head = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	} else {
		l.tail = x.prev
	}
	x.prev, x.next = nil, nil
	l.n--
	if l.n == 0 && l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
}

// snapshot is every running request that began before t.
func (l *live) snapshot(t time.Time) []*exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*exchange
	for x := l.head; x != nil; x = x.next {
		if x.start.Before(t) {
			all = append(all, x)
		}
	}
	return all
}

// sweep is the timer's: it opens and revokes, and arms the timer again.
func (l *live) sweep() {
	now := time.Now()
	force := l.server.current.Load()
	running := l.snapshot(now.Add(-openAfter + time.Millisecond))
	for _, x := range running {
		if x.due(force, now) && x.forbidden(force, now) {
			x.revoke()
		}
	}
	// A record that has no place may keep its writer waiting: what has to end
	// ends first, and the others are tried at the next sweep.
	for _, x := range running {
		if !x.open() {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == nil || l.stopped {
		l.armed = false
		return
	}
	next := sweepEvery
	for x := l.head; x != nil; x = x.next { // the first that is not open is due soonest
		if left := openAfter - now.Sub(x.start); left > 0 {
			next = min(next, left)
			break
		}
	}
	l.arm(max(next, 5*time.Millisecond))
}

// revise breaks off everything that force forbids, what is quickly decided
// first: a client that holds thousands of requests with the longest paths must
// not hold up the end of a tunnel by them.
func (l *live) revise(force *inForce) {
	now := time.Now()
	all := l.snapshot(now.Add(time.Second))
	size := make(map[*exchange]int, len(all))
	for _, x := range all {
		size[x] = x.size()
	}
	slices.SortStableFunc(all, func(a, b *exchange) int { return size[a] - size[b] })
	for _, x := range all {
		x.due(force, now)
		if !x.holds(force) || x.forbidden(force, now) {
			x.revoke()
		}
	}
}

// size is about how much the rules have to read of the request, 0 for a tunnel.
func (x *exchange) size() int {
	n := len(x.forward.path)
	for _, values := range x.header {
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// due says whether the rules could answer otherwise than when they were last
// asked about x, and takes it as asked now: under another policy, or because an
// allow rule has ended. To ask about every running request every second would
// let a client with many of them keep a processor busy.
func (x *exchange) due(f *inForce, now time.Time) bool {
	x.mu.Lock()
	from, of := x.asked, x.askedOf
	x.asked, x.askedOf = now, f
	x.mu.Unlock()
	if of == nil {
		from, of = x.start, x.force
	}
	rules, ok := f.Rules.(interface {
		Ends(from, to time.Time) bool
	})
	return of != f || !ok || rules.Ends(from, now)
}

// wait returns a channel that is closed once nothing runs.
func (l *live) wait() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if l.empty == nil {
		l.empty = make(chan struct{})
	}
	return l.empty
}

// stop ends the timer for good.
func (l *live) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// breakable adds a connection that a revocation closes.
func (x *exchange) breakable(c net.Conn) {
	x.mu.Lock()
	revoked := x.revoked
	x.breakers = append(x.breakers, c)
	x.mu.Unlock()
	if revoked {
		c.Close()
	}
}

// revoke breaks the request off: its context ends, and with it the stream or
// the connection; a tunnel's connections are closed.
func (x *exchange) revoke() {
	x.mu.Lock()
	if x.revoked || x.finished || x.settled {
		x.mu.Unlock()
		return
	}
	x.revoked = true
	x.mu.Unlock()
	x.breakOff()
}

// breakOff ends the request: an HTTP/2 stream by its context, anything else by
// closing the client's connection, at which net/http ends the context, and what
// else the request holds.
func (x *exchange) breakOff() {
	x.mu.Lock()
	breakers := x.breakers
	x.mu.Unlock()
	if x.cancel != nil {
		x.cancel(errRevoked)
	} else {
		x.client.Conn.Close()
	}
	for _, c := range breakers {
		c.Close()
	}
}

// isRevoked says whether the request was broken off.
func (x *exchange) isRevoked() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.revoked
}
