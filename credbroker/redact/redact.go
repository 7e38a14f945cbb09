// Package redact makes the answer of an origin that holds a credential safe for
// a sandbox: what credbroker/scan finds of a secret in it is replaced before a
// byte of it goes on, and an answer that cannot be read is not passed on.
//
// [Request] takes out of the request's offers what could not be read later.
// [Interim] looks through the head of a 1xx. [Answer] rewrites an
// [http.Response] in place: its fields, its reason phrase, its body as it is
// read, and its trailers as they come.
//
//	redact.Request(r)
//	res, err := transport.RoundTrip(r)
//	…
//	err = redact.Answer(res, redact.Config{Set: set, Method: r.Method})
//
// How a body is read depends on its head:
//
//   - a Content-Length, and at most 64 KiB after decoding: scanned whole, before
//     Answer returns, with a length of its own;
//   - application/grpc*, application/connect+*: message by message, with
//     asterisks in place of what is found, so that the lengths stay true;
//   - a 101 to WebSocket: frame by frame, the same way; the client's direction
//     passes untouched, and the body stays an [io.ReadWriteCloser];
//   - everything else: as a text that streams, without a length.
//
// A Read of a body returns what may go out as soon as it is there. It never
// waits for more bytes while it has some, and so delays nothing but what the
// scanner holds back.
package redact

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/egressd/egressd/credbroker/scan"
)

// mostWhole is how long an answer may be, in bytes after decoding, that is
// scanned before its head goes out.
const mostWhole = 64 << 10

// Config says what is looked for in an answer, and how.
type Config struct {
	// Set holds the secrets of the host. It must not be nil; an empty set finds
	// nothing, but the rules about codings and types hold all the same.
	Set *scan.Set
	// Names is what [Names] makes of the same secrets. Nil means that names of
	// fields are only looked at in the case that net/http gives them.
	Names *scan.Set
	// Renewed gives the two sets as they are now, where they may change while the
	// answer comes: a secret that is fetched meanwhile may be echoed into an answer
	// that began before. It is called often, from whichever goroutine reads, and
	// gives the same sets as long as nothing changed. Nil means that they stay.
	Renewed func() (set, names *scan.Set)
	// Strict refuses answers with a body whose type is not text, JSON, XML, a
	// form, an event stream, gRPC or Connect (`redact: strict`).
	Strict bool
	// Linger is how long a piece of a body may be held back, 0 for any time.
	Linger time.Duration
	// Note is called once for each entry of which something was found in the
	// answer, from whichever goroutine reads its body. Nil means that nobody
	// wants to know.
	Note func(entry string)
	// RangeDropped says that the request lost its Range on the way: a 206 is
	// then refused.
	RangeDropped bool
	// RangeKept says that the host's requests keep their Range. The answer to a
	// HEAD then keeps its length, by which clients divide a file into ranges.
	RangeKept bool
	// Method is that of the request.
	Method string
}

// Interim makes the fields of a 1xx safe, in place: an [http.Header] or a
// [net/textproto.MIMEHeader].
func Interim(fields map[string][]string, cfg Config) {
	s := sieve{Config: cfg}
	s.fields(fields)
}

// Answer makes res safe, in place. An error means that nothing of it may be
// passed on, and that its body was closed: either one whose Reason method says
// credential_leak, or that of reading the body. The Body of res has the same
// errors where they show only later; what it gave out before is safe. Its Close
// may be called at any time and, as the origin's, ends a Read.
func Answer(res *http.Response, cfg Config) error {
	if res.Body == nil {
		res.Body = http.NoBody
	}
	s := &sieve{Config: cfg}
	from := &origin{ReadCloser: res.Body, res: res, sieve: s}
	if err := s.answer(res, from); err != nil {
		from.abandon()
		return err
	}
	return nil
}

func (s *sieve) answer(res *http.Response, from *origin) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		return s.upgrade(res, from)
	}
	if res.StatusCode == http.StatusPartialContent && s.RangeDropped {
		return errSlice
	}
	zipped, err := isGzip(res.Header)
	how := kindOf(res.Header, s.Strict)
	empty := bodyless(s.Method, res)
	switch {
	case empty:
	case err != nil:
		return err
	case how == kindWebText:
		return errWebText
	case how == kindUnknown:
		return errStrict
	}
	s.head(res)
	if zipped { // of a HEAD and a 304, too: it is not what a GET gets
		delete(res.Header, "Content-Encoding")
		dropSums(res.Header)
	}
	res.Body = from
	if empty {
		if s.Method == http.MethodHead || res.StatusCode == http.StatusNotModified {
			dropSums(res.Header)
			if !s.RangeKept || zipped {
				dropLength(res)
			}
		}
		return nil
	}
	src := io.Reader(from)
	if zipped {
		src = &gunzip{src: from}
	}
	if length := res.ContentLength; length >= 0 && (zipped || length <= mostWhole) {
		rest, err := s.whole(res, src, how)
		if err != nil || rest == nil {
			return err
		}
		src = rest
	}
	dropSums(res.Header)
	dropLength(res)
	res.Body = newBody(from, src, s, s.scanner(how))
	return nil
}

// head makes the fields, those announced for the trailer and the reason phrase
// safe.
func (s *sieve) head(res *http.Response) {
	s.fields(res.Header)
	s.fields(res.Trailer)
	res.Status = strings.TrimRight(strconv.Itoa(res.StatusCode)+" "+http.StatusText(res.StatusCode), " ")
}

// bodyless says whether an answer has no content (RFC 9110 section 6.4.1).
func bodyless(method string, res *http.Response) bool {
	return method == http.MethodHead || res.ContentLength == 0 ||
		res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified
}

func dropLength(res *http.Response) {
	delete(res.Header, "Content-Length")
	res.ContentLength = -1
}

// scanner is how the bytes of a kind are looked through.
func (s *sieve) scanner(how kind) scanner {
	set, _ := s.sets()
	switch how {
	case kindGRPC, kindGRPCWeb, kindConnect:
		return newMessages(set.Stream(scan.Framed), how)
	case kindFrames:
		return newFrames(set.Stream(scan.Framed), set.Overwrite)
	}
	return plain{set.Stream(scan.Text)}
}
