package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// originWireConfig says how strictly an originConn reads.
type originWireConfig struct {
	maxHeader int // bytes of an answer's head, and of its trailer section; 0 is 1 MiB
}

// originConn is the connection that the http.Transport is given for an origin
// that speaks HTTP/1. It reads each head of an answer before the transport
// does and checks it against RFC 9112, follows the framing of the body, and
// gives the transport heads with one Content-Length or Transfer-Encoding or
// none. A malformed answer is an error of the round trip whose Reason is
// upstream_reset; nothing of it is given, and it is not taken for a connection
// that an origin closed while idle, so the request is not sent again.
//
// An answer is read with its request in mind, so the transport's GotConn (see
// httptrace) must call expect for every request before it is written.
type originConn struct {
	net.Conn
	limit int
	flow  wireFlow   // only the reader touches it, as the rest down to err
	head  answerHead // the head being read
	begun bool       // there is one
	err   error      // what every further Read returns

	mu       sync.Mutex
	expected bool // a request is on its way and not answered to its end
	method   string
	upgrade  bool
	made     bool
	came     bool
}

// originError is the error of a Read that meets a malformed answer. It quotes
// nothing of it.
type originError struct{ detail string }

func (e *originError) Error() string { return "reading an answer: " + e.detail }

// Reason is upstream_reset.
func (e *originError) Reason() string { return "upstream_reset" }

// checkOrigin puts the checks in front of c, a plain connection or one whose
// TLS handshake is done.
func checkOrigin(c net.Conn, cfg originWireConfig) *originConn {
	if cfg.maxHeader <= 0 {
		cfg.maxHeader = 1 << 20
	}
	o := &originConn{Conn: c, limit: cfg.maxHeader}
	o.flow.source, o.flow.maxTrailer = c, cfg.maxHeader
	return o
}

// expect announces the next request: its method, and whether it asks for a
// switch of protocols.
func (o *originConn) expect(method string, upgrade bool) {
	o.mu.Lock()
	o.expected, o.method, o.upgrade = true, method, upgrade
	o.mu.Unlock()
}

// madeCacheControl reports whether the Cache-Control of the answer being read
// is net/http's own, made out of Pragma, and not the origin's.
func (o *originConn) madeCacheControl() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.made
}

// bodyCame reports whether bytes of the body came with the head of the answer
// being read. The flow itself may be another goroutine's by now.
func (o *originConn) bodyCame() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.came
}

// Read gives the transport what it may see.
func (o *originConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if n := o.flow.take(p); n > 0 {
			return n, nil
		}
		if o.err != nil {
			return 0, o.err
		}
		if o.flow.state == atHead {
			if err := o.readHead(p); err != nil {
				return 0, err
			}
			continue
		}
		n, err := o.flow.body(p)
		if o.flow.state == atHead && err == nil {
			o.finish()
		}
		if n > 0 {
			return n, nil
		}
		var bad *wireError
		if errors.As(err, &bad) {
			err = o.fail(bad.fault.Detail)
		}
		if err != nil {
			return 0, err
		}
	}
}

// readHead reads on in the head that comes next, until it stands in o.flow.out,
// or a line that becomes the error o.err does.
func (o *originConn) readHead(p []byte) error {
	if !o.begun {
		if err := o.flow.fill(p); err != nil {
			return err
		}
		o.mu.Lock()
		expected, method, upgrade := o.expected, o.method, o.upgrade
		o.mu.Unlock()
		if !expected {
			return o.fail("It answers no request.")
		}
		o.begin(method, upgrade)
	}
	done, detail := o.head.read(o.flow.in.unread(), o.limit)
	switch {
	case detail != "":
		o.failHead(detail)
		return nil
	case done:
		o.accept()
		return nil
	}
	err := o.flow.fill(p)
	if errors.Is(err, io.EOF) {
		o.failHead("Its head is not whole.")
		return nil
	}
	return err
}

// begin sets out for a head of an answer to this request.
func (o *originConn) begin(method string, upgrade bool) {
	o.head, o.begun = answerHead{method: method, upgrade: upgrade, scan: lineScan{status: true}}, true
}

// accept gives the head that was read and sets out for what follows.
func (o *originConn) accept() {
	h := o.head
	skip(&o.flow.in, h.scan.at)
	o.head, o.begun, o.flow.out = answerHead{}, false, h.out
	switch {
	case h.raw():
		o.flow.state = untilClose
	case h.interim():
		if o.flow.in != nil { // the next head came with this one
			o.begin(h.method, h.upgrade)
		}
		h.close(false)
		return
	case h.bodiless():
		o.flow.begin(0)
	case h.chunked:
		o.flow.begin(-1)
	case h.lengths > 0:
		o.flow.begin(h.length)
	default:
		o.flow.state = untilClose
	}
	done := o.flow.state == atHead
	// What is left behind a whole answer belongs to no request: the
	// transport must not use the connection again.
	h.close(done && o.flow.in != nil)
	o.mu.Lock()
	o.made, o.came = h.pragma && !h.cacheControl, o.flow.in != nil
	o.mu.Unlock()
	if done {
		o.finish()
	}
}

// finish is called at the end of an answer.
func (o *originConn) finish() {
	o.mu.Lock()
	o.expected = false
	o.mu.Unlock()
	if o.flow.in != nil {
		o.fail("It goes on behind its end.")
		o.Conn.Close() // before another request is written to it
	}
}

// fail makes a malformed answer the last thing that is read.
func (o *originConn) fail(detail string) error {
	o.err = &originError{detail}
	release(&o.flow.in)
	return o.err
}

// failHead fails with a status line before the error. A Read that fails before
// it gave a byte means to the transport that the origin closed an idle
// connection, and it would send the request again.
func (o *originConn) failHead(detail string) {
	release(&o.head.out)
	o.head, o.begun = answerHead{}, false
	o.fail(detail)
	appendTo(&o.flow.out, []byte("HTTP/1.1 502 Bad Gateway\r\n"))
}

// CloseWrite ends the bytes to the origin.
func (o *originConn) CloseWrite() error {
	if c, ok := o.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// answerHead reads one head of an answer, line by line.
type answerHead struct {
	scan    lineScan
	out     *wireBuffer
	method  string // of the request
	upgrade bool   // the request asked for a switch
	status  int
	length  int64

	old, begun           bool // HTTP/1.0; a status line was read
	lengths, codings     int
	chunked              bool
	pragma, cacheControl bool
}

// read goes over the bytes of b that it has not seen and adds good lines to
// h.out. It is done at the blank line; detail says what is wrong.
func (h *answerHead) read(b []byte, limit int) (done bool, detail string) {
	for {
		event := h.scan.next(b)
		if h.scan.at > limit || event == needMore && len(b) >= limit {
			return false, "Its head is over the limit."
		}
		switch event {
		case needMore:
			return false, ""
		case startLine:
			if !h.statusLine(b[h.scan.line : h.scan.at-2]) {
				return false, "Its status line is malformed."
			}
			appendTo(&h.out, b[h.scan.line:h.scan.at])
			h.scan.advance()
		case fieldLine:
			keep, detail := h.field(b)
			if detail != "" {
				return false, detail
			}
			if keep {
				appendTo(&h.out, b[h.scan.line:h.scan.at])
			}
			h.scan.advance()
		case blankLine:
			if !h.begun {
				return false, "Its status line is malformed."
			}
			return true, h.check()
		default:
			return false, "Its head is malformed."
		}
	}
}

// statusLine reads HTTP-version SP status-code [ SP reason-phrase ]. The space
// behind the code is required by RFC 9112 section 4 and left out by many.
func (h *answerHead) statusLine(line []byte) bool {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' ||
		len(line) > 12 && line[12] != ' ' {
		return false
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return false
		}
		h.status = h.status*10 + int(c-'0')
	}
	h.old, h.begun = line[7] == '0', true
	return h.status >= 100
}

// field looks at a field line. The fields that frame the body are written anew.
func (h *answerHead) field(b []byte) (keep bool, detail string) {
	name, value := h.scan.field(b)
	switch len(name) {
	case 6:
		h.pragma = h.pragma || isWord(name, "pragma") && string(value) == "no-cache"
	case 7:
		if isWord(name, "trailer") {
			// One that names framing would be an error of net/http's own.
			return eachMember(value, goesAsTrailer), ""
		}
	case 13:
		h.cacheControl = h.cacheControl || isWord(name, "cache-control")
	case 14:
		if isWord(name, "content-length") {
			return false, h.contentLength(value)
		}
	case 17:
		if isWord(name, "transfer-encoding") {
			h.codings++
			h.chunked = isWord(value, "chunked")
			return false, ""
		}
	}
	return true, ""
}

// contentLength takes a length, and the same again, as a field or in a list,
// which RFC 9110 section 8.6 lets a recipient fold.
func (h *answerHead) contentLength(value []byte) string {
	for more := true; more; {
		var v []byte
		v, value, more = bytes.Cut(value, []byte(","))
		n, ok := parseLength(trimSpace(v))
		if !ok {
			return "Its Content-Length is no length."
		}
		if h.lengths > 0 && n != h.length {
			return "It has two lengths."
		}
		h.lengths++
		h.length = n
	}
	return ""
}

// check looks at the head as a whole.
func (h *answerHead) check() string {
	switch {
	case h.codings > 1 || h.codings == 1 && !h.chunked:
		return "The only transfer coding that is taken is chunked."
	case h.chunked && h.old:
		return "HTTP/1.0 has no transfer codings."
	case h.chunked && h.lengths > 0:
		return "It has a Content-Length beside a Transfer-Encoding."
	case h.status == http.StatusSwitchingProtocols && !h.upgrade:
		return "It switches protocols unasked."
	}
	return ""
}

// interim reports whether another head follows for the same request.
func (h *answerHead) interim() bool {
	return h.status < 200 && h.status != http.StatusSwitchingProtocols
}

// raw reports whether what follows is no HTTP any more.
func (h *answerHead) raw() bool {
	return h.status == http.StatusSwitchingProtocols ||
		h.method == http.MethodConnect && h.status >= 200 && h.status < 300
}

// bodiless reports whether there is no body whatever the head says (RFC 9112
// section 6.3).
func (h *answerHead) bodiless() bool {
	return h.method == http.MethodHead || h.status == http.StatusNoContent || h.status == http.StatusNotModified
}

// close ends the head for the transport: with the one field that frames the
// body, and a Connection: close if this is the last answer.
func (h *answerHead) close(last bool) {
	b := h.out.b
	switch {
	case h.status < 200, h.status == http.StatusNoContent, h.raw():
	case h.chunked && !h.bodiless():
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case h.lengths > 0:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), h.length, 10), "\r\n"...)
	}
	if last {
		b = append(b, "Connection: close\r\n"...)
	}
	h.out.b = append(b, "\r\n"...)
}
