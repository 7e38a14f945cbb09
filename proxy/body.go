package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
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
	n, err := b.ReadCloser.Read(p)
	if total := b.count.Add(int64(n)); b.limit >= 0 && total > b.limit {
		b.fault.Store(&denial{reason: "body_too_large", close: true})
		b.count.Add(-int64(n))
		return 0, errBody
	}
	switch {
	case err == nil:
	case err == io.EOF:
		cleanTrailer(b.trailer)
	default:
		b.fault.CompareAndSwap(nil, b.x.bodyDenial(err))
		return n, errBody
	}
	return n, err
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

// cleanTrailer drops trailers that would frame, route or authorise the message
// (RFC 9110 section 6.5.1).
func cleanTrailer(h http.Header) {
	for name := range h {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Te", "Connection", "Keep-Alive", "Upgrade",
			"Content-Encoding", "Content-Type", "Content-Range", "Authorization", "Proxy-Authorization", "Proxy-Authenticate",
			"Proxy-Connection", "Www-Authenticate", "Cookie", "Set-Cookie", "Expect", "Max-Forwards", "Cache-Control", "Range":
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

// scanned says whether a body is one that credentials are looked for in: a
// text, JSON or a form, as its bytes. To have it, egressd itself answers
// Expect: 100-continue.
func scanned(h http.Header) bool {
	if len(h["Content-Encoding"]) > 0 {
		return false
	}
	return textual(h.Get("Content-Type"))
}
