package credbroker

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostScanned is how much of a body is looked through, and how much of one is
	// held at most, in bytes.
	mostScanned = 1 << 20
	// mostHeld is how much all bodies together may hold, in bytes. Above it they
	// are looked through as they stream.
	mostHeld = 64 << 20
	// pause is how long a body may be silent before what there is of it goes out.
	pause = 250 * time.Millisecond
	// longestHold is how long a body that does not pause is held: the policy may
	// change in the meantime, and who goes on is looked through as it streams.
	longestHold = 10 * time.Second
)

// scannable says whether a body is one that is looked through: a text, JSON or a
// form, in no coding.
func scannable(h http.Header) (yes, form bool) {
	if coded(h) {
		return false, false
	}
	for _, media := range mediaTypes(h) {
		isForm := media == "application/x-www-form-urlencoded"
		form = form || isForm
		yes = yes || isForm || media == "application/json" || media == "multipart/form-data" ||
			strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json")
	}
	return yes, form
}

// coded says that a body has a coding, which hides what it says.
func coded(h http.Header) bool {
	for _, line := range h["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			if coding = strings.Trim(coding, " \t"); coding != "" && !strings.EqualFold(coding, "identity") {
				return true
			}
		}
	}
	return false
}

// mediaTypes are the types that a body is said to have, in lower case without
// their parameters. Of several, in one field or more, a server may pick any.
func mediaTypes(h http.Header) (types []string) {
	for _, line := range h["Content-Type"] {
		for part := range strings.SplitSeq(line, ",") {
			media, _, _ := strings.Cut(part, ";")
			if media = strings.ToLower(strings.Trim(media, " \t")); media != "" {
				types = append(types, media)
			}
		}
	}
	return types
}

// scanner looks through a body as it streams.
type scanner interface {
	// feed takes the next bytes, the last ones if end. An error is why they do not
	// go out.
	feed(p []byte, end bool) error
}

// scanners are several.
type scanners []scanner

func (s scanners) feed(p []byte, end bool) error {
	for _, one := range s {
		if err := one.feed(p, end); err != nil {
			return err
		}
	}
	return nil
}

// body is a request's body on its way out. Where it is one to be looked through
// it is held first, until it ends, is long, pauses, or took long; the request goes out
// then, and what follows is looked through as it streams.
//
// While it is held a goroutine reads, since a read of a client's body cannot be
// given up. It ends with the read that was under way when the body was let go,
// and that one ends at the latest when the server ends the request.
type body struct {
	src     io.ReadCloser
	ctx     context.Context
	scan    scanner      // nil for a body that only has trailers to look at
	trailer func() error // looks at them, once the body has ended
	budget  *atomic.Int64

	mu       sync.Mutex
	held     []byte // what was read ahead; its capacity is what the budget was charged
	err      error  // of src, once it has one
	pumping  bool   // the goroutine reads
	released bool   // it reads no further
	closed   bool

	progress chan struct{} // of the goroutine; holds one
	given    int           // of held, that went out
	scanned  int           // of held, that was looked through
	fault    error         // why nothing more goes out
}

// hold reads ahead and looks through what came, where the budget has room;
// taken is called before the first read. An error is a leak, one of the body, or
// the end of the client.
func (b *body) hold(length int64, taken func()) error {
	size := 4 << 10
	if length > 0 {
		size = int(min(length+1, 64<<10))
	}
	if !b.grow(size) {
		return nil
	}
	taken()
	b.pumping, b.progress = true, make(chan struct{}, 1)
	go b.pump()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	enough := time.NewTimer(longestHold)
	defer enough.Stop()
	for waiting := true; waiting; {
		select {
		case <-b.progress:
			b.mu.Lock()
			waiting = b.pumping
			b.mu.Unlock()
			timer.Reset(pause)
		case <-timer.C:
			waiting = false
		case <-enough.C:
			waiting = false
		case <-b.ctx.Done():
			b.release()
			return b.ctx.Err()
		}
	}
	held, err := b.release()
	if fault := b.look(held, err); fault != nil || err == nil || err == io.EOF {
		return fault
	}
	return err // a body that is malformed, or too long, need not go out in part
}

// pump reads ahead until there is no more to hold.
func (b *body) pump() {
	progress := b.progress // who reads all that is held lets go of it
	for {
		b.mu.Lock()
		room := b.held[len(b.held):min(cap(b.held), mostScanned)]
		b.mu.Unlock()
		n, err := b.src.Read(room)
		b.mu.Lock()
		b.held = b.held[:len(b.held)+n]
		b.err = err
		full := len(b.held) == mostScanned || len(b.held) == cap(b.held) && !b.released && !b.grow(min(2*cap(b.held), mostScanned))
		b.pumping = err == nil && !full && !b.released
		more := b.pumping
		if !more && b.closed {
			b.drop()
		}
		b.mu.Unlock()
		select {
		case progress <- struct{}{}:
		default:
		}
		if !more {
			return
		}
	}
}

// grow makes room for size bytes, where the budget of all has it.
func (b *body) grow(size int) bool {
	more := int64(size - cap(b.held))
	if b.budget.Add(more) > mostHeld {
		b.budget.Add(-more)
		return false
	}
	b.held = append(make([]byte, 0, size), b.held...)[:len(b.held):size]
	return true
}

// release ends the holding: what was read until now, and the error behind it.
func (b *body) release() (held []byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.released = true
	return b.held, b.err
}

// look looks through what was not looked through of the held bytes.
func (b *body) look(held []byte, err error) error {
	if b.fault == nil {
		b.fault = b.scan.feed(held[b.scanned:], err == io.EOF)
		b.scanned = len(held)
		if b.fault == nil && err == io.EOF && b.trailer != nil {
			b.fault = b.trailer()
			b.trailer = nil
		}
	}
	return b.fault
}

// Read gives what was held, then what comes. It does not let go what it has not
// looked through, nor an end behind which the trailers are not right.
func (b *body) Read(p []byte) (int, error) {
	if b.fault != nil {
		return 0, b.fault
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.progress != nil {
		n, err, held := b.readHeld(p)
		if held {
			return n, err
		}
	}
	n, err := b.src.Read(p)
	if b.scan != nil {
		if b.fault = b.scan.feed(p[:n], err == io.EOF); b.fault != nil {
			return 0, b.fault
		}
	}
	if err == io.EOF && b.trailer != nil {
		if b.fault = b.trailer(); b.fault != nil {
			return n, b.fault
		}
		b.trailer = nil
	}
	return n, err
}

// readHeld gives of what was read ahead; held is false once there is no more.
func (b *body) readHeld(p []byte) (n int, err error, held bool) {
	for {
		b.mu.Lock()
		ahead, err, pumping, closed := b.held, b.err, b.pumping, b.closed
		b.mu.Unlock()
		if closed {
			return 0, http.ErrBodyReadAfterClose, true
		}
		if b.given < len(ahead) || err != nil {
			if fault := b.look(ahead, err); fault != nil {
				return 0, fault, true
			}
			n := copy(p, ahead[b.given:])
			if b.given += n; b.given == len(ahead) && !pumping {
				b.free()
			} else {
				err = nil
			}
			return n, err, true
		}
		if !pumping {
			b.free()
			return 0, nil, false
		}
		select {
		case <-b.progress:
		case <-b.ctx.Done():
			return 0, b.ctx.Err(), true
		}
	}
}

// free gives back what was held, when all of it went out.
func (b *body) free() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.progress = nil
	}
	b.drop()
	b.given, b.scanned = 0, 0
}

// drop gives the memory back. The caller has the lock.
func (b *body) drop() {
	b.budget.Add(-int64(cap(b.held)))
	b.held = nil
}

// Close ends the body, whether all of it went out or not.
func (b *body) Close() error {
	b.mu.Lock()
	b.released, b.closed = true, true
	if !b.pumping {
		b.drop()
	}
	b.mu.Unlock()
	return b.src.Close()
}
