package proxy

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// wireConfig says how strictly and how patiently a wireConn reads.
type wireConfig struct {
	maxHeader     int           // bytes of a head, blank line included, and of a trailer section; 0 is 64 KiB
	headerTimeout time.Duration // from the first byte of a head to its end, and for the first byte of a connection; 0 is none
	idleTimeout   time.Duration // between requests; 0 is none
	proxyForm     bool          // the explicit door; the wire itself treats both doors alike
}

// wireHead is what the wire read of a request and net/http does not see.
type wireHead struct {
	Method string     // as sent; empty where the request line could not be read
	Target string     // the request-target byte for byte (RFC 9112 section 3.2)
	Host   string     // value of the Host field; empty only where HTTP/1.0 sent none
	Proto  string     // HTTP/1.1 or HTTP/1.0
	Expect string     // value of Expect, in any case "100-continue"; empty on HTTP/1.0
	Fault  *wireFault // what is wrong with the head; nil if nothing is

	number         int64
	noCacheControl bool // net/http makes a Cache-Control out of Pragma
}

// wireFault says what is wrong with a head or with the framing of a body.
type wireFault struct {
	Status int    // 400, 408, 414, 417, 431; 500 with internal
	Reason string // bad_request, protocol, timeout, internal
	Detail string // one sentence that quotes nothing of the client
}

// wireError is the error of a Read that meets a fault in a body.
type wireError struct{ fault wireFault }

func (e *wireError) Error() string  { return "reading a body: " + e.fault.Detail }
func (e *wireError) Reason() string { return e.fault.Reason }
func (e *wireError) Status() int    { return e.fault.Status }

// wireConn is the connection that the inner http.Server is given for HTTP/1.
//
// It reads each head before the server does, checks it against RFC 9112 line
// by line as it comes, follows the framing of the body to find the next head,
// and hands the server a head of its own making: METHOD /N HTTP/1.1 with a
// fixed Host, N the number of the head on this connection. What was really
// asked for is kept here and fetched with takeHead. A bad head becomes such a
// request too, so that the one handler answers and records it, in order behind
// pipelined answers; after it nothing more is read. A fault in a body's framing
// is an error of Read, and of bodyFault.
//
// Behind the head of a CONNECT or an upgrade nothing is given until Hijack has
// returned or the request was answered otherwise: a background read of
// net/http would swallow the client's first byte.
//
// Deadlines are kept apart: the server's own (Hijack wakes a Read with one in
// the past) and those of heads and idle connections. One goroutine reads at a
// time; every other method may be called at any moment.
type wireConn struct {
	net.Conn
	cfg  wireConfig
	flow wireFlow    // buffers and body framing; only the reader touches it
	head requestHead // the head being read; only the reader touches it

	holdUntil int64 // heads that must be done with before the next is read
	given     atomic.Int64
	done      atomic.Int64
	hijacked  atomic.Bool
	lingers   atomic.Bool // the client may still send: a close would eat the answer
	bounded   atomic.Bool // a deadline for writes was set
	fault     atomic.Pointer[wireFault]

	mu      sync.Mutex
	wake    sync.Cond
	heads   []wireHead
	rested  int64       // the last head behind which rest is over
	alarm   *time.Timer // that ends it; nil before the first
	user    time.Time   // deadline set by the server
	applied time.Time   // deadline set on Conn
	reading bool        // a Read of Conn is under way
	own     time.Time   // deadline of what is awaited, zero for none
	closed  bool
	err     error // what every further Read returns
	outcome string
}

// newWire puts the checks in front of c, a plain or a TLS connection that
// speaks HTTP/1. The http.Server that serves it has no ReadTimeout,
// ReadHeaderTimeout or IdleTimeout, a MaxHeaderBytes of at least cfg.maxHeader,
// wireContext as ConnContext, and calls stateChanged in ConnState.
func newWire(c net.Conn, cfg wireConfig) *wireConn {
	if cfg.maxHeader <= 0 {
		cfg.maxHeader = 64 << 10
	}
	w := &wireConn{Conn: c, cfg: cfg}
	w.wake.L = &w.mu
	w.flow.source = (*wireInput)(w)
	w.flow.maxTrailer = cfg.maxHeader
	return w
}

type wireKey struct{}

// wireContext is for http.Server.ConnContext: it lets takeHead find the
// connection again. A connection that is no wireConn is left alone.
func wireContext(ctx context.Context, c net.Conn) context.Context {
	if w, ok := c.(*wireConn); ok {
		return context.WithValue(ctx, wireKey{}, w)
	}
	return ctx
}

// takeHead gives the head that r was made from, once, and puts its method,
// target and host back into r (Method, RequestURI, Host; URL stays that of the
// head net/http saw). It is false for a request that came by another way, such
// as HTTP/2. Where connection and server disagree about which request this is,
// which would be a fault of ours, the head is a fault.
func takeHead(r *http.Request) (h wireHead, ok bool) {
	w, ok := r.Context().Value(wireKey{}).(*wireConn)
	if !ok || r.ProtoMajor != 1 {
		return wireHead{}, false
	}
	w.mu.Lock()
	if len(w.heads) > 0 {
		h = w.heads[0]
		n := copy(w.heads, w.heads[1:])
		w.heads[n] = wireHead{}
		w.heads = w.heads[:n]
	}
	w.mu.Unlock()
	if len(r.RequestURI) < 2 || r.RequestURI[1:] != strconv.FormatInt(h.number, 10) {
		return wireHead{Method: r.Method, Proto: r.Proto, Fault: &wireFault{
			Status: http.StatusInternalServerError, Reason: "internal", Detail: "The request could not be matched to its head.",
		}}, true
	}
	if h.noCacheControl {
		delete(r.Header, "Cache-Control")
	}
	r.Method, r.RequestURI, r.Host = h.Method, h.Target, h.Host
	return h, true
}

// bodyFault is what was wrong with the framing of the request's body, nil if
// nothing was so far. net/http cancels the request's context at the same
// moment, so a handler looks here before it believes in a client that went.
func bodyFault(r *http.Request) *wireFault {
	if w, ok := r.Context().Value(wireKey{}).(*wireConn); ok {
		return w.fault.Load()
	}
	return nil
}

// stateChanged is called from http.Server.ConnState. Only StateIdle says that a
// request is over (RFC 9112 section 9.3: heads may be pipelined, so they are
// counted), only StateHijacked that the bytes are no longer HTTP.
func (w *wireConn) stateChanged(s http.ConnState) {
	switch s {
	case http.StateIdle:
		w.mu.Lock()
		w.done.Add(1)
		w.wake.Broadcast()
		w.mu.Unlock()
	case http.StateHijacked:
		w.mu.Lock()
		w.hijacked.Store(true)
		w.apply()
		w.wake.Broadcast()
		w.mu.Unlock()
	}
}

// ended says how many heads were read and why no more came: timeout,
// client_gone, or empty while the connection is open or was closed here.
func (w *wireConn) ended() (heads int64, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.given.Load(), w.outcome
}

// Read gives the server what it may see. A wait of the server's own that runs
// out is os.ErrDeadlineExceeded and loses nothing, half a head included.
func (w *wireConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if w.hijacked.Load() {
			return w.readRaw(p)
		}
		if n := w.flow.take(p); n > 0 {
			return n, nil
		}
		if err := w.stopped(); err != nil {
			return 0, err
		}
		if w.flow.state == atHead {
			if err := w.readHead(p); err != nil {
				return 0, err
			}
			continue
		}
		n, err := w.flow.body(p)
		if n > 0 {
			return n, nil
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, w.fail(err)
		}
	}
}

// stopped is the error of a connection that gives nothing more, or of a
// deadline of the server's that has passed.
func (w *wireConn) stopped() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return net.ErrClosed
	case !w.user.IsZero() && !time.Now().Before(w.user):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// fail makes err the answer to every further Read.
func (w *wireConn) fail(err error) error {
	var bad *wireError
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	if errors.As(err, &bad) {
		w.fault.Store(&bad.fault)
		w.lingers.Store(true)
	} else if w.outcome == "" {
		w.outcome = "client_gone"
	}
	return err
}

// never is a holdUntil that no count of requests reaches.
const never = math.MaxInt64
