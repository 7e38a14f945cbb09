package proxy

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
)

// pass sends an ordinary request on and passes the answer back. It is what
// httputil.ReverseProxy does for an upgrade, by the same rules, with one copy of
// the request's fields and none of the answer's.
func (x *exchange) pass(r *http.Request) {
	res, err := x.roundTrip(x.outgoing(r))
	x.answer.decline()
	if err != nil {
		x.failed(err)
		return
	}
	removeConnectionNamed(res.Header, res.Header["Connection"])
	if err := x.modify(res); err != nil {
		res.Body.Close()
		x.failed(err)
		return
	}
	x.answerWith(res)
}

// outgoing is the request that goes out: the client's, but for what belongs to
// its connection.
func (x *exchange) outgoing(r *http.Request) *http.Request {
	f := &x.forward
	f.trace.GotConn, f.trace.Got1xxResponse = x.tookConn, x.interim
	out := r.WithContext(httptrace.WithClientTrace(x, &f.trace))
	out.URL, out.Host, out.Header, out.Close = &f.url, f.field, x.goingOn(r.Header), false
	out.Body = nil // else the transport would not send the request again on a connection that was closed while idle
	if r.ContentLength != 0 {
		out.Body = &x.body
	}
	return out
}

// goingOn are the fields that go on. They are copies: the broker changes them,
// while the rules may be asked about the client's own again.
func (x *exchange) goingOn(in http.Header) http.Header {
	n := 0
	for _, values := range in {
		n += len(values)
	}
	lines := make([]string, n)
	out := make(http.Header, len(in))
	for name, values := range in {
		if isHopByHop(name) {
			continue
		}
		n := copy(lines, values)
		out[name], lines = lines[:n:n], lines[n:]
	}
	if _, ok := in["Connection"]; ok {
		removeConnectionNamed(out, in["Connection"])
		x.force.spare(in, out)
	}
	if te, ok := in["Te"]; ok && wantsTrailers(te) {
		out["Te"] = []string{"trailers"}
	}
	if x.forward.maxForwards != "" {
		out["Max-Forwards"] = []string{x.forward.maxForwards}
	}
	if x.forward.expect && !x.answer.h2 {
		out["Expect"] = []string{"100-continue"}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = []string{""} // else the transport would add its own
	}
	return out
}

// tookConn is told which connection carries the request.
func (x *exchange) tookConn(info httptrace.GotConnInfo) { x.gotConn(info.Conn, x.head.method, false) }

// interim passes an interim answer of the origin on, while the final one is not
// there: its fields are the answer's from then on.
func (x *exchange) interim(code int, fields textproto.MIMEHeader) error {
	a := &x.answer
	a.early.Lock()
	defer a.early.Unlock()
	if a.declined {
		return nil
	}
	h := a.inner.Header()
	for name, values := range fields {
		h[name] = append(h[name], values...)
	}
	a.WriteHeader(code)
	clear(h)
	return nil
}

// answerWith passes the answer on, whose head has gone through modify.
func (x *exchange) answerWith(res *http.Response) {
	a := &x.answer
	announced := len(res.Trailer)
	if announced > 0 { // the transport has parted it from the head
		a.Header()["Trailer"] = []string{strings.Join(slices.Collect(maps.Keys(res.Trailer)), ", ")}
	}
	a.WriteHeader(res.StatusCode)
	if err := a.copyBody(res.Body); err != nil {
		res.Body.Close()
		panic(http.ErrAbortHandler) // there is nothing left but to break off
	}
	res.Body.Close() // the trailer is there behind it
	if len(res.Trailer) == 0 {
		return
	}
	_ = a.FlushError() // else net/http would give a short body a length, and no trailer
	h := a.Header()
	for name, values := range res.Trailer {
		if len(res.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = append(h[name], values...)
	}
}

// copyBody gives the client what comes of a body.
func (a *answer) copyBody(body io.Reader) error {
	buf := buffers.Get().(*[bodyBuffer]byte)
	defer buffers.Put(buf)
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			sent, err := a.Write(buf[:n])
			if err != nil {
				return err
			}
			if sent != n {
				return io.ErrShortWrite
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}
