package proxy

import (
	"net"
	"os"
	"time"
)

// restTime is how long nothing is read while a request is answered. net/http
// begins to read the next head at once, to notice a client that goes away, and
// ends that with a deadline in the past as soon as it has answered: most answers
// are there before anything could have been noticed, and cost no read.
const restTime = 10 * time.Millisecond

// rest waits while a request is being answered, restTime at most for each. What
// ends it early is what ends a Read: the server's deadline, Close, Hijack.
func (w *wireConn) rest() error {
	given := w.given.Load()
	if given == w.done.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rested == given || !w.user.IsZero() {
		return nil
	}
	if w.alarm == nil {
		w.alarm = time.AfterFunc(restTime, w.restEnds)
	} else {
		w.alarm.Reset(restTime)
	}
	defer w.alarm.Stop()
	for w.rested != given && !w.hijacked.Load() && given != w.done.Load() {
		switch {
		case w.closed:
			return net.ErrClosed
		case w.user.IsZero():
			w.wake.Wait()
		case time.Now().Before(w.user):
			return nil
		default:
			return os.ErrDeadlineExceeded
		}
	}
	return nil
}

// restEnds is the alarm's. One that comes too late ends the rest of the next
// request early, which does no harm.
func (w *wireConn) restEnds() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rested = w.given.Load()
	w.wake.Broadcast()
}
