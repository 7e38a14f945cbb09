package proxy

import "sync"

// gatherMost is how many bytes are gathered at most: a piece of a body as
// ReverseProxy copies it, with the framing of chunks and of TLS around it.
const gatherMost = bodyBuffer + 4<<10

var gatherings = sync.Pool{New: func() any { return new([gatherMost]byte) }}

// gather holds what is written to a connection until it is let go, so that it
// is one write: net/http writes a chunk in three, and each would wake the
// client up.
type gather struct {
	mu  sync.Mutex
	buf *[gatherMost]byte // nil while nothing is gathered
	n   int
}

// begin gathers from here on.
func (g *gather) begin() {
	g.mu.Lock()
	g.buf, g.n = gatherings.Get().(*[gatherMost]byte), 0
	g.mu.Unlock()
}

// write gathers p, or gives it to out where nothing is gathered or there is no
// room left.
func (g *gather) write(p []byte, out func([]byte) (int, error)) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.buf == nil {
		return out(p)
	}
	if g.n+len(p) > gatherMost {
		if err := g.flush(out); err != nil {
			return 0, err
		}
		if len(p) > gatherMost {
			return out(p)
		}
	}
	g.n += copy(g.buf[g.n:], p)
	return len(p), nil
}

// end lets go what was gathered.
func (g *gather) end(out func([]byte) (int, error)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.flush(out)
	gatherings.Put(g.buf)
	g.buf = nil
	return err
}

func (g *gather) flush(out func([]byte) (int, error)) error {
	if g.n == 0 {
		return nil
	}
	_, err := out(g.buf[:g.n])
	g.n = 0
	return err
}
