package proxy

import (
	"bufio"
	"cmp"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// answer is the ResponseWriter that ReverseProxy and our own answers write to.
// It stops net/http from adding what the origin did not send, passes interim
// answers on clean, counts, and knows whether anything was said yet.
type answer struct {
	inner   http.ResponseWriter
	request *http.Request // as the server gave it
	x       *exchange
	status  int          // sent to the client, 0 for none
	count   atomic.Int64 // bytes of the origin's body given to the client
	length  int64        // of the origin's body, -1 where it did not say
	// headFirst sends the head at once, since the body is not there yet.
	headFirst bool
	wrote     bool // the final head is out
	legacy    bool // an HTTP/1.0 client: no interim answers
	h2        bool
	waiting   bool // the client waits for a 100 that was not sent

	// early guards interim answers and waiting while the broker may read the
	// body of a client that waits: its reader and the origin's answers meet.
	early    sync.Mutex
	ours     bool // the 100 was ours: the origin's stays here
	declined bool // it is too late for one, and for the origin's
	last     bool // the connection ends with this answer
	taken    bool // the connection was hijacked
	gone     bool // the client did not take what was written
}

func (a *answer) init(x *exchange, w http.ResponseWriter, r *http.Request) {
	a.inner, a.request, a.x, a.h2 = w, r, x, r.ProtoMajor == 2
}

// Header is the header of the next answer.
func (a *answer) Header() http.Header { return a.inner.Header() }

// hangUp makes this answer the connection's last (HTTP/1).
func (a *answer) hangUp() { a.last = true }

// WriteHeader sends the head of an interim or the final answer.
func (a *answer) WriteHeader(code int) {
	if a.wrote {
		return
	}
	h := a.inner.Header()
	if code < 200 {
		a.interim(code, h)
		return
	}
	a.wrote, a.status = true, code
	// net/http would sniff a type; a nil value says that there is none, and
	// ReverseProxy would have dropped it before.
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil
	}
	// A client that still waits for a 100 may send its body or not: what comes
	// next on this connection could be either (RFC 9110 section 10.1.1).
	if !a.h2 && (a.last || a.waiting) {
		h.Set("Connection", "close")
	}
	a.inner.WriteHeader(code)
	if a.headFirst && a.length != 0 {
		_ = a.FlushError()
	}
}

// interim passes a 1xx on. Over HTTP/2 the library sends the 100 by itself; an
// HTTP/1.0 client knows none. ReverseProxy leaves the fields of the origin's
// connection in.
func (a *answer) interim(code int, h http.Header) {
	if a.legacy || (a.h2 || a.ours) && code == http.StatusContinue {
		return
	}
	removeHopByHop(h)
	disown(h)
	if code == http.StatusContinue {
		a.waiting = false
	}
	a.inner.WriteHeader(code)
}

// sendContinue asks the client for its body, where the broker takes it and the
// origin is not asked.
func (a *answer) sendContinue() {
	a.early.Lock()
	defer a.early.Unlock()
	if a.waiting && !a.declined && !a.wrote && !a.legacy {
		a.waiting, a.ours = false, true
		a.inner.WriteHeader(http.StatusContinue)
	}
}

// decline ends the time in which an interim answer could be sent.
func (a *answer) decline() {
	a.early.Lock()
	defer a.early.Unlock()
	a.declined = true
}

// guardInterim keeps the interim answers that ReverseProxy passes on and a 100 of
// ours apart.
func (a *answer) guardInterim(trace *httptrace.ClientTrace) {
	if trace.Got1xxResponse == nil {
		return
	}
	pass := trace.Got1xxResponse
	trace.Got1xxResponse = func(code int, h textproto.MIMEHeader) error {
		a.early.Lock()
		defer a.early.Unlock()
		return pass(code, h)
	}
}

// Write sends bytes of the body, at once where more is to come: an event, or a
// download that is slow, does not wait in a buffer.
func (a *answer) Write(p []byte) (int, error) {
	if !a.wrote {
		a.WriteHeader(http.StatusOK)
	}
	n, err := a.send(p)
	if err != nil {
		a.gone = true
	}
	return n, err
}

// send writes p and what is to go out with it: a chunk of HTTP/1 at once.
func (a *answer) send(p []byte) (n int, err error) {
	chunk := a.length < 0 && !a.h2
	if chunk {
		a.x.client.gather.begin()
	}
	n, err = a.inner.Write(p)
	total := a.count.Add(int64(n))
	if err == nil && (a.length < 0 || total < a.length) {
		err = a.FlushError()
	}
	if chunk {
		err = cmp.Or(err, a.x.client.gather.end(a.x.client.Conn.Write))
	}
	return n, err
}

// FlushError sends what is buffered; http.ResponseController looks for it.
func (a *answer) FlushError() error {
	if f, ok := a.inner.(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return http.ErrNotSupported
}

// finishEarly sends an answer whose end is known now, and not only once its
// record is written; it is false where that is still to come. Over HTTP/2, and
// in chunks, it would cost a write more.
func (a *answer) finishEarly() (whole bool) {
	if !a.wrote || a.h2 || a.taken {
		return false
	}
	bodyless := a.status == http.StatusNoContent || a.status == http.StatusNotModified || a.x.head.method == http.MethodHead
	if !bodyless && len(a.inner.Header()["Content-Length"]) != 1 {
		return false
	}
	a.x.mu.Lock()
	a.x.settled = true
	a.x.mu.Unlock()
	return a.FlushError() == nil // a client that is gone is found by net/http
}

// finishBroken sends what is buffered of an answer that breaks off, so that the
// client sees the status that is recorded, and where the answer ended.
func (a *answer) finishBroken() {
	if a.wrote && !a.taken && !a.gone && !a.x.isRevoked() {
		_ = a.FlushError() // the connection ends in any case
	}
}

// Hijack takes the connection for an upgrade. Its bytes are counted, and a
// revocation closes it.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	hj, ok := a.inner.(http.Hijacker)
	if !ok {
		return nil, nil, http.ErrNotSupported
	}
	conn, rw, err := hj.Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.wrote, a.taken = true, true
	a.x.breakable(conn)
	return &hijacked{Conn: conn, x: a.x}, rw, nil
}

// hijacked is the client's side of an upgraded connection.
type hijacked struct {
	net.Conn
	x *exchange
}

func (h *hijacked) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.x.body.count.Add(int64(n))
	return n, err
}

func (h *hijacked) Write(p []byte) (int, error) {
	n, err := h.Conn.Write(p)
	h.x.answer.count.Add(int64(n))
	return n, err
}

func (h *hijacked) CloseWrite() error {
	if half, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// hopByHop are the fields of one connection (RFC 9110 section 7.6.1), beside
// those that Connection names.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
}

func isHopByHop(name string) bool { return slices.Contains(hopByHop, name) }

func removeHopByHop(h http.Header) {
	removeConnectionNamed(h, h["Connection"])
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// removeConnectionNamed takes the fields out of h that lines of Connection name.
func removeConnectionNamed(h http.Header, lines []string) {
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.Trim(name, " \t"); name != "" {
				h.Del(name)
			}
		}
	}
}

// disown takes out of an origin's fields what would speak in our name or lead
// the client to another way out: every Alt-Svc, and the members of
// Proxy-Status that are named egressd (RFC 9209 section 2).
func disown(h http.Header) {
	delete(h, "Alt-Svc")
	lines, ok := h["Proxy-Status"]
	if !ok {
		return
	}
	kept := make([]string, 0, len(lines))
	for _, line := range lines {
		if line, ok := disownMembers(line); ok {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		delete(h, "Proxy-Status")
		return
	}
	h["Proxy-Status"] = kept
}

// disownMembers drops the members named egressd from one field line. The line
// is false where nothing is left of it, and untouched where nothing was found.
func disownMembers(line string) (string, bool) {
	members := splitQuoted(line, ',')
	kept := members[:0:0]
	for _, m := range members {
		name, _, _ := strings.Cut(m, ";")
		name = strings.Trim(name, " \t")
		name = strings.ReplaceAll(strings.Trim(name, `"`), `\`, "")
		if !strings.EqualFold(name, "egressd") {
			kept = append(kept, m)
		}
	}
	switch len(kept) {
	case len(members):
		return line, true
	case 0:
		return "", false
	}
	return strings.Trim(strings.Join(kept, ","), " \t"), true
}

// splitQuoted splits s at sep, but not inside double quotes.
func splitQuoted(s string, sep byte) []string {
	var parts []string
	start, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && s[i] == sep:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// sinceStart is the time from the start of the exchange to now.
func (x *exchange) sinceStart() time.Duration { return time.Since(x.start) }
