package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/egressd/egressd/audit"
)

// The HTTP/2 library answers some streams with a text of its own and resets
// others, and no handler sees either: it tells of few by CountError, and of
// none on which connection. What reaches nobody must be recorded all the same,
// so the streams that a client opens are counted below the library, and those
// that a handler of ours got above it. The difference are records of kind
// connection, written when the connection ends.

const (
	clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" // RFC 9113 section 3.4
	frameHead     = 9                                  // RFC 9113 section 4.1
	frameHeaders  = 1                                  // its type, RFC 9113 section 6.2
)

// streamCount is a connection inside TLS behind its preface, as the library
// reads it.
type streamCount struct {
	*tls.Conn
	client *client

	head [frameHead]byte // of the frame being read; only the reader touches it
	have int             // bytes of head that are there
	left int             // bytes of the payload to come
	last uint32          // the highest stream

	opened, handled atomic.Int64
}

// Read passes bytes on and counts the streams that begin in them.
func (s *streamCount) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.look(p[:n])
	return n, err
}

// look goes over the heads of frames. A HEADERS of a higher odd number opens a
// stream, any other is a trailer section or a fault (RFC 9113 section 5.1.1).
func (s *streamCount) look(b []byte) {
	for len(b) > 0 {
		if s.left > 0 {
			n := min(s.left, len(b))
			s.left -= n
			b = b[n:]
			continue
		}
		n := copy(s.head[s.have:], b)
		s.have += n
		b = b[n:]
		if s.have < frameHead {
			return
		}
		s.have, s.left = 0, int(s.head[0])<<16|int(s.head[1])<<8|int(s.head[2])
		id := binary.BigEndian.Uint32(s.head[5:]) &^ (1 << 31)
		if s.head[3] == frameHeaders && id%2 == 1 && id > s.last {
			s.last = id
			s.opened.Add(1)
		}
	}
}

// refused is how many streams no handler got.
func (s *streamCount) refused() int64 { return s.opened.Load() - s.handled.Load() }

// Close ends the connection. One that brought nothing but streams that were
// refused has a record that says so.
func (s *streamCount) Close() error {
	if s.refused() > 0 {
		s.client.doom("protocol")
	}
	return s.Conn.Close()
}

// handOver is a connection as net/http passes one without TLS to its HTTP/2
// server: in a *tls.Conn that is none.
type handOver struct {
	net.Conn
	inner net.Conn
}

// UnencryptedNetConn is what that server looks for.
func (h handOver) UnencryptedNetConn() net.Conn { return h.inner }

// serveStreams gives a connection that speaks HTTP/2 to the library, counted,
// and records what the library refused once the connection has ended.
func (s *Server) serveStreams(c *client, conn *tls.Conn, serve func(*tls.Conn, *streamCount)) {
	if !s.track() {
		conn.Close()
		return
	}
	defer s.work.Done()
	preface := make([]byte, len(clientPreface))
	conn.SetReadDeadline(time.Now().Add(s.limits.HeaderTimeout))
	if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != clientPreface {
		if err == nil {
			c.doom("protocol")
		}
		conn.Close()
		return
	}
	conn.SetReadDeadline(time.Time{})
	count := &streamCount{Conn: conn, client: c}
	serve(tls.Client(handOver{inner: count}, nil), count)
	s.recordRefused(c, count)
}

// recordRefused writes a record for every stream that no handler got. A handler
// that was about to begin gets a moment.
func (s *Server) recordRefused(c *client, count *streamCount) {
	for end := time.Now().Add(time.Second); count.refused() > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	n := count.refused()
	if n > 0 && !c.recorded.Load() {
		n-- // the connection's own record is that of one
	}
	for range n {
		r := &audit.Record{
			Time: time.Now(), Kind: audit.KindConnection, Verdict: verdictOf("protocol"), Reason: "protocol",
			Host: c.target.host, Port: c.target.port, Capture: c.capture(),
		}
		if err := s.cfg.Sink.Append(r); err != nil {
			s.cfg.Log.Error("recording refused streams", "err", err)
			return
		}
	}
}

// streamHandler counts the streams that a handler gets.
type streamHandler struct {
	schemeHandler
	count *streamCount
}

// ServeHTTP is called by the HTTP/2 server.
func (h streamHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.count.handled.Add(1)
	h.schemeHandler.ServeHTTP(w, r)
}
