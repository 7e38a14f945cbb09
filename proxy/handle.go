package proxy

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// handle is the one handler: every request of every door comes here, malformed
// ones too.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(clientKey{}).(*client)
	if c == nil {
		panic(http.ErrAbortHandler)
	}
	x := s.begin(c, w, r)
	defer x.close()
	if full, ok := w.(interface{ EnableFullDuplex() error }); ok {
		full.EnableFullDuplex() // else a denied upload would wait for its body
	}
	fault := x.readHeadOf(r)
	c.busy.Store(1)
	switch {
	case c.over:
		x.describe(x.head.method, "", c.target.host, c.target.port, x.head.target)
		x.refuse(&denial{reason: "overloaded", retry: time.Second, close: true})
	case fault != nil:
		x.describe(x.head.method, c.target.scheme(), c.target.host, c.target.port, x.head.target)
		x.refuse(fault)
	case !c.target.tunnel && !s.authorised(r.Header):
		x.describe(x.head.method, "", "", 0, "")
		x.refuse(&denial{reason: "proxy_auth"})
	case x.head.method == http.MethodConnect && c.target.tunnel:
		x.describe(x.head.method, c.target.scheme(), c.target.host, c.target.port, "")
		x.refuse(&denial{reason: "protocol", detail: "A tunnel cannot be asked for inside a tunnel.", close: true})
	case x.head.method == http.MethodConnect:
		x.connect(w, r)
	default:
		x.serve(w, r)
	}
}

// readHeadOf takes the head as it was sent, whatever the protocol, and says
// what is wrong with it.
func (x *exchange) readHeadOf(r *http.Request) *denial {
	h, ok := takeHead(r)
	if !ok {
		return x.readStreamHead(r)
	}
	x.answer.request = r
	x.head = head{method: h.Method, target: h.Target, host: h.Host, proto: h.Proto, expect: h.Expect, length: r.ContentLength}
	if h.Proto == "HTTP/1.0" {
		x.answer.legacy = true
		x.rec.Proto = "http/1.0"
	}
	x.answer.waiting = h.Expect != "" && r.ContentLength != 0
	if f := h.Fault; f != nil {
		return &denial{reason: f.Reason, status: f.Status, detail: f.Detail, close: true}
	}
	return nil
}

// readStreamHead reads the head of an HTTP/2 stream, which the library has
// checked but for a few things.
func (x *exchange) readStreamHead(r *http.Request) *denial {
	x.head = head{method: r.Method, target: r.RequestURI, host: r.Host, proto: "HTTP/2.0", length: r.ContentLength}
	if second := r.Header["Host"]; len(second) > 0 {
		x.head.second = strings.Join(second, ",")
		delete(r.Header, "Host")
	}
	if r.ContentLength != 0 {
		x.head.expect = r.Header.Get("Expect")
	}
	if !httpguts.ValidHeaderFieldName(r.Method) || !strings.HasPrefix(r.RequestURI, "/") && r.RequestURI != "*" && r.Method != http.MethodConnect {
		return badRequest("The stream has no method and path as HTTP/2 writes them.")
	}
	if otherScheme(r) {
		return badRequest("The scheme of the stream is not the one that is spoken.")
	}
	if size := headSize(r); size > x.server.limits.MaxHeaderBytes {
		return &denial{reason: "bad_request", status: http.StatusRequestHeaderFieldsTooLarge, detail: "The head is longer than the limit."}
	}
	return nil
}

// headSize is about what the head of a stream takes in HTTP/1.
func headSize(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host) + 24
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + 4
		}
	}
	return n
}

// close ends the exchange, however its handler ended, and lets a panic go on.
func (x *exchange) close() {
	if p := recover(); p != nil {
		x.answer.finishBroken()
		x.broken(p)
		x.end()
		x.drop()
		panic(p)
	}
	whole := x.answer.finishEarly()
	x.end()
	x.leaveBody(whole)
}

// broken settles the reason of an exchange that broke off.
func (x *exchange) broken(p any) {
	err, _ := p.(error)
	if !errors.Is(err, http.ErrAbortHandler) {
		x.server.cfg.Log.Error("serving a request", "panic", p)
		x.fails("internal")
		return
	}
	if x.rec.Verdict != "allow" {
		return
	}
	if d := x.body.fault.Load(); d != nil {
		x.fails(d.reason)
		return
	}
	if x.answer.gone || x.Err() != nil && !x.body.left.Load() {
		x.fails("client_gone")
		return
	}
	x.fails("upstream_reset")
}

// beginTunnel starts the record of a captured connection that is a tunnel.
func (s *Server) beginTunnel(c *client) *exchange {
	x := s.newExchange(c)
	x.rec.Method, x.rec.Host, x.rec.Port = http.MethodConnect, c.target.host, c.target.port
	x.forward.host = authority{host: c.target.host, port: c.target.port, written: true}
	return x
}
