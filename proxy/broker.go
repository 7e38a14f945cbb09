package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"

	"github.com/egressd/egressd/audit"
)

// Broker attaches secrets to requests, guards what must not leave, and takes
// secrets out of answers. *credbroker.Broker is one. Its methods are safe for
// concurrent use.
type Broker interface {
	// RoundTrip passes on one request that the rules allow. r is what is about to
	// go out: fields of one connection are gone, the target is in r.URL byte for
	// byte (by Opaque and RawQuery, or Path and RawPath), the host and port in
	// r.URL.Host, and r.Trailer is filled when r.Body has ended. The broker may
	// change r, its body too. It calls send not at all where it refuses, once, or
	// once more after an answer whose body it has closed, for a request without a
	// body; every time with r or a copy that has its context. Interim answers it
	// sees by httptrace.WithClientTrace on that context, before they go out: what
	// it changes in the header of Got1xxResponse is changed for the client.
	//
	// A client that waits for a 100-continue has an Expect field in r. Where the
	// broker reads the body itself it takes the field out; the 100 is sent when it
	// begins to read.
	//
	// The answer may have another header, body (for a 101 an io.ReadWriteCloser)
	// and trailer than the one that send returned. Errors of RoundTrip and of
	// the bodies, where they are the broker's own, have Reason() string, and may
	// have Title() and Detail() string, fixed texts, and Status() int; others are
	// passed on.
	//
	// note tells of what goes into the record, kind being credential, leak or
	// redaction. It may be called until the body of the answer was closed.
	RoundTrip(r *http.Request, send func(*http.Request) (*http.Response, error), note func(kind, verdict, credential string)) (*http.Response, error)
	// Mask is text with other words in the place of every placeholder and secret.
	// (Whoever writes records masks them by it.)
	Mask(text string) string
}

// noBroker refuses a request that nobody would look at.
func noBroker() error { return &denial{reason: "internal"} }

// answerLeak is what a credential_leak of an answer says: the request was right.
const (
	answerLeakTitle  = "Answer not passed on"
	answerLeakDetail = "The origin's answer could not be looked through for secrets, or holds one that cannot be taken out of it."
)

// throughBroker has the broker send the request, with the round trip that it is
// given as the last step.
func (x *exchange) throughBroker(b Broker, r *http.Request) (*http.Response, error) {
	x.forward.body = r.Body
	if x.body.asks.Load() {
		defer x.answer.decline()
	}
	res, err := b.RoundTrip(r, x.send, x.note)
	if err != nil {
		return nil, x.brokerError(err)
	}
	if res.Body == nil || res.Body == x.forward.answered {
		return res, nil
	}
	if conn, ok := res.Body.(io.ReadWriteCloser); ok && res.StatusCode == http.StatusSwitchingProtocols {
		res.Body = &brokerSwitch{brokerAnswer{conn, x}, conn}
		return res, nil
	}
	res.Body = &brokerAnswer{res.Body, x}
	return res, nil
}

// brokerError tells a refused answer, which is the origin's fault, from a
// refused request.
func (x *exchange) brokerError(err error) error {
	if x.forward.answered == nil {
		return err
	}
	_ = x.forward.answered.Close() // nobody reads it any more
	var reason interface{ Reason() string }
	if !errors.As(err, &reason) || reason.Reason() != "credential_leak" {
		return err
	}
	d := *refusalOf(err)
	if d.status == 0 {
		d.status = http.StatusBadGateway
	}
	return &d
}

// send is the round trip that the broker is given.
func (x *exchange) send(r *http.Request) (*http.Response, error) {
	x.forward.answered = nil
	if len(r.Header["Expect"]) > 0 {
		x.body.asks.Store(false) // it is the origin that asks for the body
	}
	out := r
	var body *sentBody
	if r.Body != nil && r.Body != http.NoBody && r.Body != x.forward.body {
		body = &sentBody{ReadCloser: r.Body, x: x}
		x.forward.sent = body
		body.kept.Store(true)
		second := *r
		second.Body = body
		out = &second
	}
	res, err := x.force.up.roundTrip(x, out)
	if body != nil {
		body.release()
	}
	if err != nil {
		return nil, err
	}
	x.forward.answered, x.forward.ttfb = res.Body, x.sinceStart()
	return res, nil
}

// note writes a record of what the broker did, and into the request's own which
// credential it was about.
func (x *exchange) note(kind, verdict, credential string) {
	r := audit.Record{
		Time: time.Now(), Kind: audit.Kind(kind), Verdict: verdict, Credential: credential,
		RequestID: x.rec.RequestID, Host: x.forward.host.host,
	}
	if r.Kind == audit.KindLeak {
		r.Reason = "credential_leak"
	}
	x.mu.Lock()
	if credential != "" && !x.finished && (r.Kind == audit.KindCredential || x.rec.Credential == "") {
		x.rec.Credential = credential
	}
	later := r.Kind == audit.KindCredential && !x.opened && !x.finished
	if later {
		x.uses = append(x.uses, &r) // two records, one write
	}
	x.mu.Unlock()
	if later {
		return
	}
	if err := x.server.cfg.Sink.Append(&r); err != nil {
		x.server.cfg.Log.Error("recording a credential", "kind", kind, "err", err)
	}
}

// tellUses writes what note has kept for later: the request goes on for long.
func (x *exchange) tellUses() {
	x.mu.Lock()
	uses := x.uses
	x.uses = nil
	x.mu.Unlock()
	if len(uses) == 0 {
		return
	}
	if err := x.server.cfg.Sink.Append(uses...); err != nil {
		x.server.cfg.Log.Error("recording a credential", "err", err)
	}
}

// spare puts back fields that Connection names, which would take a placeholder
// off before it is swapped, or found where it does not belong. Any other field
// that Connection names stays here.
func (f *inForce) spare(in, out http.Header) {
	if f.Broker == nil {
		return
	}
	for _, line := range in["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			name = textproto.CanonicalMIMEHeaderKey(strings.Trim(name, " \t"))
			values, ok := in[name]
			if ok && !isHopByHop(name) && (name == "Authorization" || f.holdsSecret(values)) {
				out[name] = values
			}
		}
	}
}

func (f *inForce) holdsSecret(values []string) bool {
	for _, v := range values {
		if f.Broker.Mask(v) != v {
			return true
		}
	}
	return false
}

// errOursToAnswer ends the way of a request that is answered here.
var errOursToAnswer = errors.New("answering the request here")

// lookThrough has the broker look for placeholders in a request that is
// answered here, and so reaches no origin.
func (x *exchange) lookThrough(r *http.Request) error {
	b := x.force.Broker
	if b == nil {
		return noBroker()
	}
	out := r.Clone(x)
	out.URL, out.Host, out.Body = &x.forward.url, x.forward.field, nil
	if r.ContentLength != 0 {
		x.takeBody(r)
		out.Body, out.Trailer = &x.body, r.Trailer
		x.body.asks.Store(x.answer.waiting && !x.answer.h2)
	}
	_, err := b.RoundTrip(out, func(*http.Request) (*http.Response, error) { return nil, errOursToAnswer }, x.note)
	x.answer.decline()
	if err == nil || errors.Is(err, errOursToAnswer) {
		return nil
	}
	return x.denialOf(err)
}

// sentBody is a body of the broker's making on its way to the origin.
type sentBody struct {
	io.ReadCloser
	x       *exchange
	kept    atomic.Bool // it may be sent by another protocol, and is not closed before it was asked for
	started atomic.Bool
	count   atomic.Int64 // bytes that went out
	closed  atomic.Bool
	done    atomic.Bool
}

// Read keeps what the broker says against the body: it is the client who is
// refused, whatever becomes of the request.
func (b *sentBody) Read(p []byte) (int, error) {
	b.started.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.count.Add(int64(n))
	if err != nil && err != io.EOF {
		var reason interface{ Reason() string }
		if errors.As(err, &reason) {
			b.x.body.fault.CompareAndSwap(nil, refusalOf(err))
		}
	}
	return n, err
}

// Close ends the body, once it is known that it will not be sent again.
func (b *sentBody) Close() error {
	b.closed.Store(true)
	if b.kept.Load() && !b.started.Load() {
		return nil
	}
	return b.end()
}

// release says that the body is sent no other way.
func (b *sentBody) release() {
	b.kept.Store(false)
	if b.closed.Load() {
		_ = b.end()
	}
}

func (b *sentBody) end() error {
	if b.done.Swap(true) {
		return nil
	}
	return b.ReadCloser.Close()
}

// brokerAnswer is an answer's body as the broker passes it on.
type brokerAnswer struct {
	io.ReadCloser
	x *exchange
}

// Read settles the reason where the broker breaks the answer off.
func (b *brokerAnswer) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		var reason interface{ Reason() string }
		if errors.As(err, &reason) {
			b.x.fails(refusalOf(err).reason)
		}
	}
	return n, err
}

// brokerSwitch is the origin's side of an upgraded connection.
type brokerSwitch struct {
	brokerAnswer
	conn io.ReadWriteCloser
}

// Write passes the client's bytes on.
func (b *brokerSwitch) Write(p []byte) (int, error) { return b.conn.Write(p) }

// CloseWrite ends the client's direction.
func (b *brokerSwitch) CloseWrite() error {
	if half, ok := b.conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
