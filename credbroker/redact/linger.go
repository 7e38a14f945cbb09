package redact

import (
	"io"
	"sync"
	"time"
)

// ahead reads an origin's body in a goroutine of its own, so that the clock is
// heard while the origin is silent. The goroutine begins with the first next and
// ends with the body, or with stop, which waits for it.
type ahead struct {
	src    io.Reader
	linger time.Duration
	came   []arrival // of what may still be held, the oldest first
	total  int64     // bytes that came

	chunks chan chunk
	free   chan []byte // the one buffer, when it may be filled
	quit   chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	started bool
	stopped bool
}

// chunk is one read of the origin.
type chunk struct {
	data []byte
	err  error
	at   time.Time
}

// arrival says when the bytes up to one came.
type arrival struct {
	upTo int64
	at   time.Time
}

func newAhead(src io.Reader, linger time.Duration) *ahead {
	return &ahead{
		src: src, linger: linger,
		chunks: make(chan chunk), free: make(chan []byte, 1),
		quit: make(chan struct{}), ended: make(chan struct{}),
	}
}

// next waits for bytes of the origin, or until the oldest of those that are held
// was held for long enough: then it is late. The chunk is to be given back with
// taken.
func (a *ahead) next(held int) (c chunk, late bool) {
	if !a.start() {
		return chunk{err: io.ErrClosedPipe}, false
	}
	var clock <-chan time.Time
	if since, ok := a.oldest(held); ok {
		timer := time.NewTimer(time.Until(since.Add(a.linger)))
		defer timer.Stop()
		clock = timer.C
	}
	select {
	case c = <-a.chunks:
		a.total += int64(len(c.data))
		a.came = append(a.came, arrival{a.total, c.at})
		return c, false
	case <-clock:
		a.came = a.came[:0]
		return chunk{}, true
	case <-a.quit:
		return chunk{err: io.ErrClosedPipe}, false
	}
}

// oldest is when the first of the held bytes came.
func (a *ahead) oldest(held int) (time.Time, bool) {
	i := 0
	for i < len(a.came) && a.came[i].upTo <= a.total-int64(held) {
		i++
	}
	a.came = append(a.came[:0], a.came[i:]...)
	if len(a.came) == 0 {
		return time.Time{}, false
	}
	return a.came[0].at, true
}

// taken says that a chunk was looked at.
func (a *ahead) taken(c chunk) {
	if c.data != nil {
		a.free <- c.data[:cap(c.data)]
	}
}

// start begins to read; it is false behind stop.
func (a *ahead) start() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || a.started {
		return !a.stopped
	}
	a.started = true
	a.free <- make([]byte, readSize)
	go a.read()
	return true
}

// read is the goroutine. It reads one chunk further than was asked for.
func (a *ahead) read() {
	defer close(a.ended)
	for {
		var buffer []byte
		select {
		case buffer = <-a.free:
		case <-a.quit:
			return
		}
		n, err := a.src.Read(buffer)
		select {
		case a.chunks <- chunk{buffer[:n], err, time.Now()}:
		case <-a.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// stop ends the goroutine, whose read must have been ended before.
func (a *ahead) stop() {
	a.mu.Lock()
	started, stopped := a.started, a.stopped
	a.stopped = true
	a.mu.Unlock()
	if !stopped {
		close(a.quit)
	}
	if started {
		<-a.ended
	}
}
