package proxy

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// wireState says what the next byte of a flow belongs to.
type wireState uint8

const (
	atHead      wireState = iota // the first byte of a head
	inLength                     // a body with a Content-Length
	inChunkLine                  // the line with the size of a chunk
	inChunk                      // the bytes of a chunk
	atChunkEnd                   // the CR LF behind them
	inTrailer                    // the trailer section
	untilClose                   // a body that ends with the connection, or no HTTP any more
)

const (
	maxChunkLine   = 4 << 10  // bytes of a chunk size with its extensions
	maxChunkExcess = 16 << 10 // bytes of framing in excess of 16 a chunk and twice the data
)

// wireFlow follows the framing of one direction of a connection: it holds the
// bytes that were read too early and those that are to be given next, and
// passes bodies on. Chunks go on with their sizes written plainly, without
// extensions, so that nobody behind reads them otherwise; trailer fields that
// would frame, route or name the message are left out (RFC 9110 section 6.5.1).
type wireFlow struct {
	source     io.Reader
	in         *wireBuffer // read and not looked at yet
	out        *wireBuffer // to be given next
	state      wireState
	left       int64 // bytes to come of a body or chunk
	excess     int64
	maxTrailer int
	scan       lineScan
	kept       *wireBuffer // field lines of a trailer section that go on
	fault      error       // of the framing; nothing is given after it
}

// take gives what is ready.
func (f *wireFlow) take(p []byte) int {
	if f.out == nil {
		return 0
	}
	n := copy(p, f.out.unread())
	skip(&f.out, n)
	return n
}

// begin sets out for a body of the given length, -1 for chunks.
func (f *wireFlow) begin(length int64) {
	switch {
	case length < 0:
		f.state, f.excess = inChunkLine, 0
	case length > 0:
		f.state, f.left = inLength, length
	default:
		f.state = atHead
	}
}

// fill reads once from the source and adds what came to f.in. The first read
// goes into p, which is free to use: a connection that waits holds no buffer.
func (f *wireFlow) fill(p []byte) error {
	if f.in == nil {
		n, err := f.source.Read(p[:min(len(p), wireBufferSize)])
		if n > 0 {
			appendTo(&f.in, p[:n])
			return nil
		}
		return err
	}
	b := f.in
	if b.r > 0 && cap(b.b)-len(b.b) < 512 {
		b.b = b.b[:copy(b.b, b.b[b.r:])]
		b.r = 0
	}
	if cap(b.b)-len(b.b) < 512 {
		b.b = slices.Grow(b.b, max(cap(b.b), wireBufferSize))
	}
	n, err := f.source.Read(b.b[len(b.b):cap(b.b)])
	b.b = b.b[:len(b.b)+max(n, 0)]
	if n > 0 {
		return nil
	}
	return err
}

// body gives bytes of the body, framing included, at most up to its end, where
// the state is atHead again. It waits only while it has nothing to give. An
// end of the source inside a body is io.ErrUnexpectedEOF, a fault a *wireError;
// any other error is the source's and changes nothing.
func (f *wireFlow) body(p []byte) (n int, err error) {
	for n < len(p) {
		if f.out != nil {
			n += f.take(p[n:])
			continue
		}
		if f.fault != nil {
			return n, f.fault
		}
		switch f.state {
		case atHead:
			return n, nil
		case inLength, inChunk:
			m, err := f.pass(p[n:], n > 0)
			n += m
			if err != nil || m == 0 {
				return n, f.inside(n, err)
			}
		case untilClose:
			if f.in == nil {
				if n == 0 {
					n, err = f.source.Read(p)
				}
				return n, err
			}
			m := copy(p[n:], f.in.unread())
			skip(&f.in, m)
			n += m
		default:
			whole, err := f.frame()
			switch {
			case err != nil:
				f.fault = err
				return n, err
			case whole:
			case n > 0:
				return n, nil
			default:
				if err := f.fill(p); err != nil {
					return 0, f.inside(0, err)
				}
			}
		}
	}
	return n, nil
}

// inside turns the end of the source inside a body into the error it is.
func (f *wireFlow) inside(n int, err error) error {
	switch {
	case n > 0 && f.state != inLength && f.state != inChunk:
		return nil
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// pass gives bytes of a body or a chunk: those read early first, then straight
// from the source into p, unless something was given already.
func (f *wireFlow) pass(p []byte, given bool) (n int, err error) {
	if int64(len(p)) > f.left {
		p = p[:f.left]
	}
	if f.in != nil {
		n = copy(p, f.in.unread())
		skip(&f.in, n)
	} else if !given {
		n, err = f.source.Read(p)
	}
	f.left -= int64(n)
	if f.left == 0 {
		if f.state == inChunk {
			f.state = atChunkEnd
		} else {
			f.state = atHead
		}
		err = nil
	}
	return n, err
}

// frame goes over the framing at the front of f.in and puts what is to be
// given into f.out. It is false if more bytes are needed.
func (f *wireFlow) frame() (whole bool, err error) {
	switch f.state {
	case inChunkLine:
		return f.chunkLine()
	case atChunkEnd:
		return f.chunkEnd()
	}
	return f.trailer()
}

// chunkLine reads a chunk-size with its extensions (RFC 9112 section 7.1).
// An extension is passed over: quoted strings may hold a semicolon, but no
// control byte, so the CR LF that ends the line is never inside one.
func (f *wireFlow) chunkLine() (bool, error) {
	b := f.in.unread()
	size, digits, i := int64(0), 0, 0
	for ; i < len(b); i++ {
		d := hexDigit(b[i])
		if d < 0 {
			break
		}
		if size > (1<<63-1)>>4 {
			return false, badBody("A chunk size is too large.")
		}
		size, digits = size<<4|int64(d), digits+1
		if digits > maxChunkLine {
			return false, badBody("A chunk size line is too long.")
		}
	}
	if i == len(b) {
		return false, nil
	}
	if digits == 0 || b[i] != '\r' && b[i] != ';' && b[i] != ' ' && b[i] != '\t' {
		return false, badBody("A chunk size is malformed.")
	}
	end, ok := chunkExtension(b[i:])
	switch {
	case !ok:
		return false, badBody("A chunk extension is malformed.")
	case i+end > maxChunkLine || end == 0 && len(b) > maxChunkLine:
		return false, badBody("A chunk size line is too long.")
	case end == 0:
		return false, nil
	}
	skip(&f.in, i+end)
	f.excess = max(f.excess+int64(i+end)+2-16-2*min(size, 1<<32), 0)
	if f.excess > maxChunkExcess {
		return false, badBody("The chunks hold too little data.")
	}
	if size == 0 {
		f.state = inTrailer
		f.scan = lineScan{fields: true}
		return true, nil
	}
	f.state, f.left = inChunk, size
	appendTo(&f.out, nil)
	f.out.b = append(strconv.AppendInt(f.out.b, size, 16), "\r\n"...)
	return true, nil
}

// chunkEnd reads the CR LF behind the bytes of a chunk.
func (f *wireFlow) chunkEnd() (bool, error) {
	b := f.in.unread()
	if len(b) > 0 && b[0] != '\r' || len(b) > 1 && b[1] != '\n' {
		return false, badBody("A chunk is longer than its size.")
	}
	if len(b) < 2 {
		return false, nil
	}
	skip(&f.in, 2)
	appendTo(&f.out, []byte("\r\n"))
	f.state = inChunkLine
	return true, nil
}

// trailer reads the trailer section. The last chunk is given with it, so that
// a fault in it is met before the end of the body.
func (f *wireFlow) trailer() (bool, error) {
	for {
		b := f.in.unread()
		event := f.scan.next(b)
		if f.scan.at > f.maxTrailer || event == needMore && len(b) >= f.maxTrailer {
			return false, badBody("The trailer section is too long.")
		}
		switch event {
		case needMore:
			return false, nil
		case fieldLine:
			if name, _ := f.scan.field(b); goesAsTrailer(name) {
				appendTo(&f.kept, b[f.scan.line:f.scan.at])
			}
			f.scan.advance()
		case blankLine:
			skip(&f.in, f.scan.at)
			appendTo(&f.out, []byte("0\r\n"))
			appendTo(&f.out, f.kept.unread())
			appendTo(&f.out, []byte("\r\n"))
			release(&f.kept)
			f.state = atHead
			return true, nil
		default:
			return false, badBody("A trailer field is malformed.")
		}
	}
}

// chunkExtension finds the CR LF behind the extensions of a chunk size and
// gives the length up to and with it, 0 if it has not come yet:
//
//	*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
//
// Space before the CR LF, which some servers pad sizes with, is passed over.
func chunkExtension(b []byte) (n int, ok bool) {
	quoted, escaped, begun := false, false, false
	for i, c := range b {
		switch {
		case c == '\r' && !quoted:
			if i+1 == len(b) {
				return 0, true
			}
			return i + 2, b[i+1] == '\n'
		case wireClass[c]&isText == 0:
			return 0, false
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"' && begun:
			quoted = !quoted
		case quoted, c == ' ', c == '\t':
		case c == ';':
			begun = true
		case !begun, c != '=' && wireClass[c]&isToken == 0:
			return 0, false
		}
	}
	return 0, true
}

// hexDigit is the value of a hexadecimal digit, -1 for any other byte.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// notTrailers are the fields that a trailer section cannot set: they frame,
// route or name the message or speak of this hop, and some servers merge a
// trailer into the head.
var notTrailers = map[string]bool{
	"connection": true, "content-encoding": true, "content-length": true, "content-range": true, "content-type": true,
	"expect": true, "forwarded": true, "host": true, "keep-alive": true, "max-forwards": true,
	"proxy-authenticate": true, "proxy-authorization": true, "proxy-connection": true, "te": true, "trailer": true,
	"transfer-encoding": true, "upgrade": true, "x-forwarded-host": true, "x-http-method": true,
	"x-http-method-override": true, "x-method-override": true, "x-original-url": true, "x-rewrite-url": true,
}

// goesAsTrailer reports whether a trailer field of this name goes on; CGI and
// WSGI fold _ and -, so they count as one.
func goesAsTrailer(name []byte) bool {
	var low [32]byte
	if len(name) > len(low) {
		return true
	}
	for i, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == '_':
			c = '-'
		}
		low[i] = c
	}
	return !notTrailers[string(low[:len(name)])]
}

// badBody is a fault in the framing of a body.
func badBody(detail string) error {
	return &wireError{wireFault{Status: http.StatusBadRequest, Reason: "bad_request", Detail: detail}}
}
