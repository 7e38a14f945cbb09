package proxy

import "sync"

const (
	wireBufferSize = 4 << 10  // a new buffer
	wireBufferKeep = 16 << 10 // a larger one is not pooled
)

// wireBuffer holds bytes from r on that nobody has taken yet.
type wireBuffer struct {
	b []byte
	r int
}

// wireBuffers keeps the buffers of connections that are idle, so that one that
// waits holds none.
var wireBuffers = sync.Pool{New: func() any { return &wireBuffer{b: make([]byte, 0, wireBufferSize)} }}

func (b *wireBuffer) unread() []byte {
	if b == nil {
		return nil
	}
	return b.b[b.r:]
}

// appendTo adds p to the buffer, which it takes from the pool where *b is nil.
func appendTo(b **wireBuffer, p []byte) {
	if *b == nil {
		*b = wireBuffers.Get().(*wireBuffer)
	}
	(*b).b = append((*b).b, p...)
}

// skip drops n bytes from the front, and the buffer once it is empty.
func skip(b **wireBuffer, n int) {
	if n == 0 {
		return
	}
	(*b).r += n
	if (*b).r == len((*b).b) {
		release(b)
	}
}

// release gives the buffer back to the pool.
func release(b **wireBuffer) {
	old := *b
	*b = nil
	if old == nil || cap(old.b) > wireBufferKeep {
		return
	}
	old.b, old.r = old.b[:0], 0
	wireBuffers.Put(old)
}
