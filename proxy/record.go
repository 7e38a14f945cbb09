package proxy

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressd/egressd/audit"
)

// exchange is one request on its way through the proxy: what was asked for,
// what was decided, and the one record that tells of it. It is the context of
// the request from the judgement on, so that every step below ReverseProxy
// finds it. An exchange is owned by its handler's goroutine; what others touch
// (the sweep, a reload) is guarded by mu.
type exchange struct {
	context.Context                         // of the request
	cancel          context.CancelCauseFunc // of an HTTP/2 stream; nil elsewhere

	server *Server
	client *client
	force  *inForce
	start  time.Time
	head   head
	header http.Header // of the request, as judged
	rec    audit.Record

	answer  answer
	body    requestBody
	forward forwarding
	streams atomic.Bool // the request went to an origin of HTTP/2
	refund  func()      // gives back a charged rate; nil when nothing was charged

	reserved bool            // room for the record is held
	uses     []*audit.Record // of credentials, to be written with the request's own
	only     [1]*audit.Record
	learned  bool

	mu       sync.Mutex
	live     bool // in the registry: allowed, and not yet ended
	opened   bool // its request_open is written
	finished bool
	settled  bool // answered whole: there is nothing left to revoke
	revoked  bool
	breakers []net.Conn // what a revocation closes
	asked    time.Time  // when the rules were last asked whether it may go on
	askedOf  *inForce   // and which; nil before
	prev     *exchange  // in the registry's list
	next     *exchange
}

// exchangeKey finds the exchange in a context.
type exchangeKey struct{}

// Value returns the exchange itself under its key.
func (x *exchange) Value(key any) any {
	if _, ok := key.(exchangeKey); ok {
		return x
	}
	return x.Context.Value(key)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// begin starts the record of a request. Nothing is known yet but where it came
// from.
func (s *Server) begin(c *client, w http.ResponseWriter, r *http.Request) *exchange {
	x := s.newExchange(c)
	x.header = r.Header
	x.Context = r.Context()
	if r.ProtoMajor == 2 {
		x.Context, x.cancel = context.WithCancelCause(x.Context)
	}
	x.answer.init(x, w, r)
	x.rec.Proto = protoName(r)
	return x
}

// newExchange is an exchange without a request.
func (s *Server) newExchange(c *client) *exchange {
	x := &exchange{server: s, client: c, force: s.current.Load(), start: time.Now()}
	x.Context = context.Background()
	x.body.limit = -1
	x.rec.Kind, x.rec.RequestID, x.rec.Capture, x.rec.Policy = audit.KindRequest, s.nextID(), c.capture(), x.force.Hash
	return x
}

// describe writes into the record what was asked for.
func (x *exchange) describe(method, scheme, host string, port int, target string) {
	x.rec.Method, x.rec.Scheme, x.rec.Host, x.rec.Port = method, scheme, host, port
	x.rec.Path, x.rec.Query, _ = strings.Cut(target, "?")
}

// allow writes into the record which rule decided.
func (x *exchange) allow(rule string) {
	x.rec.Verdict, x.rec.Reason = "allow", "rule"
	if x.learned {
		x.rec.Reason = "learned"
	}
	x.rec.Rule, x.rec.Pattern = rule, pattern(rule)
}

// reserve holds room for the record before the first byte goes upstream.
func (x *exchange) reserve() error {
	if err := x.server.cfg.Sink.Reserve(x); err != nil {
		return err
	}
	x.reserved = true
	return nil
}

// open writes the record of kind request_open, once: what is under way can be
// seen, and is known after a kill -9. The members of the final record that are
// still to come are empty. It is false where the record could not be had, and
// is then to be tried again.
func (x *exchange) open() bool {
	x.mu.Lock()
	if x.opened || x.finished {
		x.mu.Unlock()
		return true
	}
	x.opened = true
	r := x.rec
	x.mu.Unlock()
	r.Kind, r.Time, r.Reserved = audit.KindRequestOpen, x.start, false
	defer x.tellUses()
	if err := x.server.cfg.Sink.Append(&r); err != nil {
		x.server.cfg.Log.Error("recording an open request", "err", err)
		x.mu.Lock()
		x.opened = false
		x.mu.Unlock()
		return false
	}
	return true
}

// fails settles that the request ends with an error instead of the answer that
// was allowed.
func (x *exchange) fails(reason string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.finished {
		return
	}
	x.rec.Verdict, x.rec.Reason = verdictOf(reason), reason
}

// finish writes the one record of the request. Later calls do nothing.
func (x *exchange) finish() {
	x.mu.Lock()
	if x.finished {
		x.mu.Unlock()
		return
	}
	x.finished = true
	if x.revoked {
		x.rec.Verdict, x.rec.Reason = "deny", "revoked"
	}
	x.rec.Status = x.answer.status
	x.rec.BytesOut, x.rec.BytesIn = x.body.count.Load(), x.answer.count.Load()
	switch {
	case x.forward.upstream == "": // what was read was held, and went nowhere
		x.rec.BytesOut = 0
	case x.forward.sent != nil:
		x.rec.BytesOut = x.forward.sent.count.Load()
	}
	x.rec.TTFB = x.forward.ttfb
	x.rec.Upstream, x.rec.UpstreamProto = x.forward.upstream, x.forward.proto
	x.rec.Duration = time.Since(x.start)
	x.rec.Time, x.rec.Reserved = x.start, x.reserved
	x.only[0] = &x.rec
	records := x.only[:]
	if len(x.uses) > 0 {
		records = append(x.uses, &x.rec)
		x.uses = nil
	}
	x.mu.Unlock()
	x.client.recorded.Store(true)
	if err := x.server.cfg.Sink.Append(records...); err != nil {
		x.server.cfg.Log.Error("recording a request", "err", err)
	}
}

// end is the last that happens to an exchange, whatever happened before.
func (x *exchange) end() {
	x.finish()
	x.server.live.remove(x) // last: Shutdown waits for the record too
	if x.cancel != nil {
		x.cancel(context.Canceled)
	}
}

// nextID is unlike any other id of any session: the session's random tail and
// a count.
func (s *Server) nextID() string {
	b := make([]byte, 0, 32)
	b = append(b, s.idPrefix...)
	return string(strconv.AppendUint(b, s.ids.Add(1), 36))
}

// verdictOf is the verdict that a reason of the closed set belongs to.
func verdictOf(reason string) string {
	switch reason {
	case "":
		return ""
	case "rule", "approved", "learned":
		return "allow"
	case "dns", "connect", "upstream_tls", "upstream_reset", "timeout", "client_gone", "internal":
		return "error"
	}
	return "deny"
}

// pattern is the path of a rule in its canonical text, /** where it has none.
func pattern(rule string) string {
	_, rest, ok := strings.Cut(rule, " ")
	if !ok {
		return ""
	}
	if _, after, found := strings.Cut(rest, "://"); found {
		rest = after
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return "/**"
}

func protoName(r *http.Request) string {
	if r.ProtoMajor == 2 {
		return "h2"
	}
	return "http/1.1"
}
