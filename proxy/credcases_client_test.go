package proxy_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// credAnswer is what the client of a case got.
type credAnswer struct {
	proxytest.Answer
	raw       string    // the body before its coding was undone
	firstByte time.Time // of the body
}

// send makes a request byte for byte as the case has it and reads its answer:
// inside a tunnel for https, in absolute form on the proxy port for http.
func (h *credHouse) send(t *testing.T, s credSend) (got credAnswer) {
	scheme, authority, target, err := splitURL(h.fill(s.URL))
	if err != nil {
		t.Error(err)
		return got
	}
	conn := h.dialQuietly()
	if conn == nil {
		t.Error("the proxy cannot be dialled")
		return got
	}
	protocol := ""
	if h.http2 {
		protocol = "h2"
	}
	if scheme == "https" {
		host, port := authority, uint64(443)
		if name, text, err := net.SplitHostPort(authority); err == nil {
			host = name
			if port, err = strconv.ParseUint(text, 10, 16); err != nil {
				t.Error(err)
				return got
			}
		}
		conn = enter(t, h.house, wireCase{Door: "tunnel", TLS: true, ALPN: protocol, Port: uint16(port)}, conn, host)
	} else {
		target = h.fill(s.URL)
	}
	if h.http2 {
		return h.sendFrames(t, conn, s, authority, target)
	}
	p := proxytest.NewPeer(conn)
	defer p.Close()
	p.Send([]byte(h.request(s, authority, target)))
	var answers []proxytest.Answer
	p.Wait(20*time.Second, func(b []byte, end bool) bool {
		answers, _, _, err = proxytest.ParseAnswers(b, []string{s.Method}, end)
		if len(answers) > 0 && answers[0].Body != "" && got.firstByte.IsZero() {
			got.firstByte = time.Now()
		}
		return err != nil || end || len(answers) > 0 && answers[0].Whole
	})
	if err != nil || len(answers) != 1 {
		all, end := p.Got()
		t.Errorf("client got %d answers, %v: %q (%v)", len(answers), err, all, end)
		return got
	}
	got.Answer, got.raw = answers[0], answers[0].Body
	return got
}

// isHTTP2 says that the request can be made over HTTP/2 by a client that waits
// for no window: without fields that belong to a connection, and not too long.
func (s *credSend) isHTTP2() bool {
	return strings.HasPrefix(s.URL, "https:") && (s.Body == nil || len(*s.Body) < 1<<20) && !slices.ContainsFunc(s.Headers, func(f [2]string) bool {
		return slices.Contains([]string{"connection", "upgrade", "transfer-encoding"}, strings.ToLower(f[0]))
	})
}

// sendFrames is send over HTTP/2.
func (h *credHouse) sendFrames(t *testing.T, conn net.Conn, s credSend, authority, target string) (got credAnswer) {
	stream := proxytest.Stream{Headers: [][2]proxytest.Bytes{{":method", proxytest.Bytes(s.Method)}, {":scheme", "https"},
		{":authority", proxytest.Bytes(authority)}, {":path", proxytest.Bytes(target)}}}
	for _, f := range s.Headers {
		stream.Headers = append(stream.Headers, [2]proxytest.Bytes{proxytest.Bytes(strings.ToLower(f[0])), proxytest.Bytes(h.fill(f[1]))})
	}
	for _, f := range s.Trailers { // one that is not announced is dropped by the library
		stream.Headers = append(stream.Headers, [2]proxytest.Bytes{"trailer", proxytest.Bytes(f[0])})
		stream.Trailers = append(stream.Trailers, [2]proxytest.Bytes{proxytest.Bytes(strings.ToLower(f[0])), proxytest.Bytes(h.fill(f[1]))})
	}
	if s.Body != nil {
		stream.Body = proxytest.Bytes(h.fill(string(*s.Body)))
	}
	f, err := proxytest.NewFrames(conn)
	if err != nil {
		t.Error(err)
		return got
	}
	defer f.Close()
	f.Open(stream)
	got.Answer = f.Wait(20 * time.Second)[0]
	got.raw, got.firstByte = got.Body, f.FirstByte()
	return got
}

// request is the text of a request.
func (h *credHouse) request(s credSend, authority, target string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", s.Method, target, authority)
	for _, f := range s.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], h.fill(f[1]))
	}
	body := ""
	if s.Body != nil {
		body = h.fill(string(*s.Body))
	}
	switch {
	case s.Trailers != nil:
		fmt.Fprintf(&b, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n", len(body), body)
		for _, f := range s.Trailers {
			fmt.Fprintf(&b, "%s: %s\r\n", f[0], h.fill(f[1]))
		}
		b.WriteString("\r\n")
	case s.Body != nil:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	default:
		b.WriteString("\r\n")
	}
	return b.String()
}

// splitURL parts a URL without decoding or cleaning anything.
func splitURL(url string) (scheme, authority, target string, err error) {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return "", "", "", fmt.Errorf("%q is no URL", url)
	}
	i := strings.IndexAny(rest, "/?#")
	if i < 0 {
		return scheme, rest, "/", nil
	}
	return scheme, rest[:i], rest[i:], nil
}
