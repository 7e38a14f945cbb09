package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// requestBody is the client's body on its way to the origin: counted, bounded,
// and with its faults kept apart from the origin's, since it is the client who
// is answered 400 or 413.
type requestBody struct {
	io.ReadCloser
	x       *exchange
	limit   int64 // bytes, -1 for any
	count   atomic.Int64
	fault   atomic.Pointer[denial]
	trailer http.Header // shared with both requests, filled when the body ends
	started atomic.Bool // the origin, or we, asked for the body
	ended   atomic.Bool // it was read to its end
	asks    atomic.Bool // the first read asks the client for it: it waits for a 100
	left    atomic.Bool // the origin did not want the rest
}

// takeBody makes the client's body the one of the exchange.
func (x *exchange) takeBody(r *http.Request) {
	x.body.ReadCloser, x.body.x = r.Body, x
	if r.ContentLength < 0 {
		if r.Trailer == nil { // an unannounced trailer is put into the map of r itself
			r.Trailer = make(http.Header)
		}
		cleanTrailer(r.Trailer) // so that none is announced that will not come
		x.body.trailer = r.Trailer
	}
}

// errBody ends the request's way to the origin; what is wrong stands in fault.
var errBody = errors.New("reading the body of the request")

// Read passes bytes on. What is over the limit is never sent: the request
// breaks off with what is under it.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.fault.Load() != nil {
		return 0, errBody
	}
	b.started.Store(true)
	if b.asks.Load() && b.asks.Swap(false) {
		b.x.answer.sendContinue()
	}
	n, err := b.ReadCloser.Read(p)
	if total := b.count.Add(int64(n)); b.limit >= 0 && total > b.limit {
		b.fault.Store(&denial{reason: "body_too_large", close: true})
		b.count.Add(-int64(n))
		return 0, errBody
	}
	switch {
	case err == nil:
	case b.left.Load():
		return n, errBody // we ended it ourselves
	case err == io.EOF:
		b.ended.Store(true)
		cleanTrailer(b.trailer)
	default:
		b.fault.CompareAndSwap(nil, b.x.bodyDenial(err))
		return n, errBody
	}
	return n, err
}

// Close does nothing for an origin of HTTP/1: the server ends its own bodies, and
// a request that is sent again by another protocol has this one again. One of
// HTTP/2 may end its stream while the client neither sends nor ends its body, and
// the transport waits for whoever reads that: the read is ended here, and with
// it a connection of HTTP/1, whose next head lies behind what is not read.
func (b *requestBody) Close() error {
	if !b.started.Load() || b.ended.Load() || !b.x.streams.Load() {
		return nil
	}
	if b.x.Err() == nil {
		b.left.Store(true) // the client is there, whatever ending the read looks like
	}
	if b.x.answer.h2 {
		return b.ReadCloser.Close()
	}
	if w := b.x.client.wire.Load(); w != nil {
		w.lingers.Store(true)
		return w.SetReadDeadline(time.Unix(1, 0))
	}
	return nil
}

// drainMost is how much of a body that nobody wants is read to reach the next
// request on its connection, in bytes.
const drainMost = 256 << 10

// leaveBody reads on in a body that nobody wants, behind an answer that is whole
// and sent, so that the next request can come. net/http would do it, but with
// full duplex only once it no longer expects the body's end, and then its
// background read meets the read of the next head: it panics ("invalid
// concurrent Body.Read call"). What is too long, does not come while an idle
// connection may last, or stands behind an answer that ends the connection,
// ends it: the answer is finished, nothing more is read.
func (x *exchange) leaveBody(whole bool) {
	a := &x.answer
	if a.h2 || a.taken || x.head.length == 0 || x.body.ended.Load() {
		return
	}
	w := x.client.wire.Load()
	if w == nil {
		return
	}
	if whole && !a.last && !a.waiting {
		late := time.AfterFunc(x.server.limits.IdleTimeout, func() { w.Close() })
		_, err := io.CopyN(io.Discard, a.request.Body, drainMost)
		late.Stop()
		if err == io.EOF {
			return
		}
	}
	w.lingers.Store(true) // or what the client still sends would reset the answer away
	w.SetReadDeadline(time.Unix(1, 0))
}

// drop ends a connection of HTTP/1 whose answer broke off: net/http would
// wait for the rest of the request's body first.
func (x *exchange) drop() {
	if w := x.client.wire.Load(); w != nil && !x.answer.h2 && !x.answer.taken {
		w.Close()
	}
}

// bodyDenial tells a malformed body from a client that went away.
func (x *exchange) bodyDenial(err error) *denial {
	if fault := bodyFault(x.answer.request); fault != nil {
		return &denial{reason: fault.Reason, status: fault.Status, detail: fault.Detail, close: true}
	}
	if x.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, http.ErrBodyReadAfterClose) {
		return &denial{reason: "client_gone"}
	}
	return badRequest("The body is malformed.")
}

// cleanTrailer drops trailers that would frame, route, name, override or
// authorise the message (RFC 9110 section 6.5.1). Those of HTTP/1 the wire has
// looked at; those of HTTP/2 nobody has.
func cleanTrailer(h http.Header) {
	for name := range h {
		if !goesAsTrailer([]byte(name)) {
			delete(h, name)
			continue
		}
		switch name {
		case "Authorization", "Www-Authenticate", "Cookie", "Set-Cookie", "Cache-Control", "Range":
			delete(h, name)
		}
	}
}

// responseBody is a body whose length the origin did not say. At its end the
// trailers are there, and must not speak in our name either.
type responseBody struct {
	io.ReadCloser
	res *http.Response
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && len(b.res.Trailer) > 0 {
		cleanAnswerTrailer(b.res.Trailer)
	}
	return n, err
}

func cleanAnswerTrailer(h http.Header) {
	disown(h)
	for _, name := range hopByHop {
		delete(h, name)
	}
	for _, name := range []string{"Host", "Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Set-Cookie"} {
		delete(h, name)
	}
}
