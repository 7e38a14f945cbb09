package redact

import (
	"io"
	"sync"

	"github.com/egressd/egressd/credbroker/scan"
)

// readSize is how much of an origin's body is read at a time, in bytes: twice
// what one record of TLS brings. A text is read by leastRead first, and by twice
// as much as often as that was all there, since what it is read into is kept.
const (
	readSize  = 32 << 10
	leastRead = 4 << 10
)

var reads = sync.Pool{New: func() any { return new([readSize]byte) }}

// body is an answer's body that is scanned as it streams. Read and Close may be
// called at once, but not two Reads.
type body struct {
	from  *origin
	src   io.Reader
	scan  scanner
	sieve *sieve
	set   *scan.Set // that scan was renewed with, nil before
	ahead *ahead    // nil without linger
	text  inPlace   // nil where the scanner is given a copy

	buffer *[readSize]byte
	size   int    // of the next read of a text
	ended  error  // behind what a text let go last
	out    []byte // what may go out
	gone   int    // how much of it did
	err    error  // behind out
}

func newBody(from *origin, src io.Reader, s *sieve, scan scanner) *body {
	b := &body{from: from, src: src, scan: scan, sieve: s, size: leastRead}
	if s.Linger > 0 {
		b.ahead = newAhead(src, s.Linger)
	} else if p, ok := scan.(plain); ok {
		b.text, _ = p.stream.(inPlace)
	}
	return b
}

// Read returns what may go out as soon as there is something.
func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for b.gone == len(b.out) {
		if b.err != nil {
			return 0, b.err
		}
		b.out, b.gone = b.out[:0], 0
		b.fill()
		b.sieve.note(b.scan.Entries())
	}
	n := copy(p, b.out[b.gone:])
	b.gone += n
	return n, nil
}

// fill waits for the origin, or for the clock.
func (b *body) fill() {
	if b.ahead != nil {
		chunk, late := b.ahead.next(b.scan.Held())
		if late {
			b.out = b.scan.Release(b.out)
			return
		}
		b.take(chunk.data, chunk.err)
		b.ahead.taken(chunk)
		return
	}
	if b.text != nil {
		b.fillText()
		return
	}
	if b.buffer == nil {
		b.buffer = reads.Get().(*[readSize]byte)
	}
	n, err := b.src.Read(b.buffer[:])
	b.take(b.buffer[:n], err)
	if b.err != nil {
		reads.Put(b.buffer)
		b.buffer = nil
	}
}

// fillText reads into the scanner's own memory, and gives out of it.
func (b *body) fillText() {
	if b.out = nil; b.ended != nil {
		b.take(nil, b.ended)
		return
	}
	room := b.text.Room(b.size)
	n, err := b.src.Read(room)
	if n == b.size {
		b.size = min(2*b.size, readSize)
	}
	b.renew()
	b.out, b.ended = b.text.Take(n), err
}

// renew has the scanner know what was fetched in the meantime.
func (b *body) renew() {
	if b.sieve.Renewed == nil {
		return
	}
	if set, _ := b.sieve.Renewed(); set != b.set {
		b.set = set
		b.scan.Renew(set)
	}
}

// take scans what came. Where the origin ended, be it too early, what was held
// goes out: it is scanned to its end. Behind what cannot be scanned nothing
// does.
func (b *body) take(p []byte, err error) {
	b.renew()
	var refused error
	if b.out, refused = b.scan.Write(b.out, p); refused != nil {
		b.err = refused
		b.from.abandon()
		return
	}
	if err != nil {
		b.out, b.err = b.scan.Close(b.out), err
		if _, ok := err.(refusal); ok {
			b.from.abandon()
		}
	}
}

// Close closes the origin's body, which ends a Read that waits for it.
func (b *body) Close() error {
	err := b.from.Close()
	if b.ahead != nil {
		b.ahead.stop()
	}
	return err
}
