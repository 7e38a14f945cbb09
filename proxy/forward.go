package proxy

import (
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// forwarding is what of an exchange concerns its way to the origin.
type forwarding struct {
	host        authority
	field       string  // the Host field that goes out
	path        string  // with its query, byte for byte
	url         url.URL // what goes out
	upgradeKey  string  // of a WebSocket; empty for an ordinary request
	maxForwards string  // to send instead of the client's; empty for as it came
	expect      bool    // the origin is to answer the client's 100-continue

	trace    httptrace.ClientTrace // of an ordinary request
	body     io.ReadCloser         // as the broker was given it
	sent     *sentBody             // the broker's, where it made one
	answered io.ReadCloser         // body of the origin's answer; nil before there is one
	conn     *originConn           // that carries the request, nil over HTTP/2
	upstream string                // address that was dialled
	proto    string
	ttfb     time.Duration
}

// setURL writes the address that goes out. net/url would escape anew what is
// not quite right in a path, so the bytes go by Opaque; but an Opaque that
// begins with two slashes is sent as an absolute form to another host, so such
// a path goes by Path and RawPath, and is false where that changes a byte.
func (f *forwarding) setURL(scheme string) bool {
	path, query, lone := strings.Cut(f.path, "?")
	if f.field == "" {
		f.field = f.host.field()
	}
	f.url = url.URL{Scheme: scheme, Host: f.urlHost(scheme), Opaque: path, RawQuery: query, ForceQuery: lone && query == ""}
	if !strings.HasPrefix(path, "//") {
		return true
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return false
	}
	f.url.Opaque, f.url.Path, f.url.RawPath = "", plain, path
	return f.url.EscapedPath() == path
}

// urlHost is the authority as an URL of this scheme writes it.
func (f *forwarding) urlHost(scheme string) string {
	a := f.host
	a.written = scheme == "https" && a.port != 443 || scheme == "http" && a.port != 80
	if a.written == f.host.written {
		return f.field
	}
	return a.field()
}

// hostPort is the authority as a dialler takes it.
func (f *forwarding) hostPort() string {
	return net.JoinHostPort(f.host.host, strconv.Itoa(f.host.port))
}

// run sends the request on and passes the answer back.
func (x *exchange) run(w http.ResponseWriter, r *http.Request) {
	defer func() {
		// An origin that sees its connection end may end its answer properly, in
		// time for us to read it: a revoked answer must not look whole for that.
		if x.isRevoked() {
			panic(http.ErrAbortHandler)
		}
	}()
	f := &x.forward
	f.expect = x.head.expect != "" && x.head.length != 0
	x.answer.waiting = f.expect
	x.body.asks.Store(f.expect && !x.answer.h2 && x.force.Broker != nil)
	x.takeBody(r)
	if f.upgradeKey == "" {
		x.pass(r)
		return
	}
	out := r.WithContext(x)
	if r.ContentLength != 0 {
		out.Body = &x.body
	}
	x.server.forward.ServeHTTP(&x.answer, out)
}

// newForward builds the one ReverseProxy, which carries upgrades.
func (s *Server) newForward() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      roundTripper{},
		ModifyResponse: func(res *http.Response) error { return exchangeOf(res.Request.Context()).modify(res) },
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			exchangeOf(r.Context()).failed(err)
		},
		BufferPool: bodyBuffers{},
		ErrorLog:   log.New(io.Discard, "", 0), // would quote the origin
	}
}

// forwardedFields are those of the client's own that ReverseProxy takes out.
var forwardedFields = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// rewrite makes the request that goes out: the client's, but for what belongs
// to its connection.
func rewrite(pr *httputil.ProxyRequest) {
	x := exchangeOf(pr.In.Context())
	f := &x.forward
	pr.Out.URL, pr.Out.Host = &f.url, f.field
	in, out := pr.In.Header, pr.Out.Header
	if _, ok := in["Connection"]; ok {
		x.force.spare(in, out)
	}
	for _, name := range forwardedFields {
		if v, ok := in[name]; ok && !connectionNames(in, name) {
			out[name] = v
		}
	}
	if te, ok := in["Te"]; ok {
		delete(out, "Te")
		if wantsTrailers(te) {
			out["Te"] = []string{"trailers"}
		}
	}
	if f.maxForwards != "" {
		out["Max-Forwards"] = []string{f.maxForwards}
	}
	if f.expect && !x.answer.h2 {
		out["Expect"] = []string{"100-continue"}
	}
	pr.Out.Trailer = pr.In.Trailer // shared: it is filled once the body was read
}

// wantsTrailers looks for the one member of TE that goes on; it takes no
// parameters, but some send them.
func wantsTrailers(te []string) bool {
	for _, line := range te {
		for m := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(m, ";")
			if strings.EqualFold(strings.Trim(name, " \t"), "trailers") {
				return true
			}
		}
	}
	return false
}

// modify looks at the head of the origin's answer before it goes out.
func (x *exchange) modify(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		if !x.forward.believes(res) {
			return &denial{reason: "upstream_reset", detail: "The origin switched to a protocol that was not asked for.", close: true}
		}
		disown(res.Header)
		for _, name := range []string{"Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Trailer", "Transfer-Encoding", "Content-Length"} {
			delete(res.Header, name)
		}
		res.Status = "" // the origin's own words would go on
		x.answer.status = res.StatusCode
		x.open()
		return nil
	}
	if conn := x.forward.conn; conn != nil && conn.madeCacheControl() {
		delete(res.Header, "Cache-Control")
	}
	disown(res.Header)
	if res.ContentLength < 0 {
		res.Body = &responseBody{ReadCloser: res.Body, res: res}
		if isEventStream(res.Header) {
			x.open()
		}
	}
	x.passHead(res)
	return nil
}

// passHead gives the fields to the answer as they are, where ReverseProxy would
// copy each, without those of the origin's connection, and settles when the answer is flushed, which ReverseProxy leaves
// to a timer: it is told that there is nothing to flush.
func (x *exchange) passHead(res *http.Response) {
	h := x.answer.Header()
	for name, values := range res.Header {
		if !isHopByHop(name) {
			h[name] = values
		}
	}
	res.Header = nil
	x.answer.length = res.ContentLength
	conn := x.forward.conn
	x.answer.headFirst = conn == nil || !conn.bodyCame()
	res.ContentLength = 0
}

func isEventStream(h http.Header) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind == "text/event-stream"
}

// failed answers a request that came to nothing behind the judgement. Where
// the answer has begun there is only breaking off.
func (x *exchange) failed(err error) {
	d := x.denialOf(err)
	if x.isRevoked() {
		panic(http.ErrAbortHandler)
	}
	if x.answer.wrote || d.reason == "client_gone" {
		x.fails(d.reason)
		panic(http.ErrAbortHandler)
	}
	x.refuse(d)
}

// denialOf finds whose fault an error is: the client's body, the client's
// leaving, or the origin's.
func (x *exchange) denialOf(err error) *denial {
	if d := x.body.fault.Load(); d != nil {
		return d
	}
	if fault := bodyFault(x.answer.request); fault != nil {
		return &denial{reason: fault.Reason, status: fault.Status, detail: fault.Detail, close: true}
	}
	if x.Err() != nil && !x.body.left.Load() {
		return &denial{reason: "client_gone"}
	}
	return upstreamDenial(err)
}

// bodyBuffers is the pool that bodies of answers are copied through.
type bodyBuffers struct{}

const bodyBuffer = 32 << 10

var buffers = sync.Pool{New: func() any { return new([bodyBuffer]byte) }}

func (bodyBuffers) Get() []byte  { return buffers.Get().(*[bodyBuffer]byte)[:] }
func (bodyBuffers) Put(b []byte) { buffers.Put((*[bodyBuffer]byte)(b)) }
