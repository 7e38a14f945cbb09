package redact

import (
	"io"
	"net/http"
	"sync/atomic"
)

// origin is the body as the origin sends it. Where it ends, its trailer is
// there.
type origin struct {
	io.ReadCloser
	res       *http.Response
	sieve     *sieve
	abandoned atomic.Bool
}

func (o *origin) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err == io.EOF {
		o.sieve.fields(o.res.Trailer)
	}
	return n, err
}

// Close closes the body, once it was not abandoned.
func (o *origin) Close() error {
	if o.abandoned.Load() {
		return nil
	}
	return o.ReadCloser.Close()
}

// abandon closes a body in the middle. Over HTTP/2 that waits until the body of
// the request was read to its end or the request's context is done, and a client
// that waits for an answer before it sends more would wait for ever: the stream
// is reset at once, and the rest is left to a goroutine that ends with the
// request.
func (o *origin) abandon() {
	if o.abandoned.Swap(true) {
		return
	}
	if o.res.ProtoMajor < 2 {
		o.ReadCloser.Close()
		return
	}
	go o.ReadCloser.Close()
}
