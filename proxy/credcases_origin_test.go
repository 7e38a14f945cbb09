package proxy_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// moment is when something happened, zero where it did not.
type moment struct {
	mu sync.Mutex
	at time.Time
}

func (m *moment) now() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = time.Now()
}

func (m *moment) get() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// script is what the origin of a case does with a request: it writes the answer
// byte for byte as the case has it. lastChunk is when it comes to the last part.
func (u credUpstream) script(h *credHouse, lastChunk *moment) proxytest.Script {
	if u.Raw != nil {
		return proxytest.Script{{On: "body", Send: proxytest.Bytes(h.fill(string(*u.Raw))), Close: true}}
	}
	var script proxytest.Script
	say := func(text string, wait time.Duration) {
		script = append(script, proxytest.Step{On: "body", Send: proxytest.Bytes(text), Before: func() {
			time.Sleep(wait)
			lastChunk.now()
		}})
	}
	for _, i := range u.Interim {
		say(i.head(h)+"\r\n", 0)
	}
	parts, framing := u.parts(h)
	say(u.head(h)+framing+"\r\n", 0)
	for n, p := range parts {
		wait := time.Duration(0)
		if n > 0 {
			wait = time.Duration(u.ChunkGapMS) * time.Millisecond
		}
		for _, bit := range u.split(p) {
			say(bit, wait)
			wait = 0
		}
	}
	return script
}

// head is the status line and the fields of the case.
func (u credUpstream) head(h *credHouse) string {
	status := u.Status
	if status == 0 {
		status = http.StatusOK
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for _, f := range u.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], h.fill(f[1]))
	}
	if u.Encoding != "" {
		fmt.Fprintf(&b, "Content-Encoding: %s\r\n", u.Encoding)
	}
	return b.String()
}

// parts are the body in the pieces that are written, and the fields that frame it.
func (u credUpstream) parts(h *credHouse) (parts []string, framing string) {
	body := h.fill(string(u.Body))
	switch u.Encoding {
	case "":
	case "gzip":
		body = gzipped(body)
	default:
		h.t.Fatalf("no encoder for %q", u.Encoding)
	}
	if u.Chunks == nil && u.Trailers == nil {
		if !slices.ContainsFunc(u.Headers, func(f [2]string) bool { return strings.EqualFold(f[0], "Content-Length") }) {
			framing = fmt.Sprintf("Content-Length: %d\r\n", len(body))
		}
		return []string{body}, framing
	}
	chunks := u.Chunks
	if chunks == nil {
		chunks = []proxytest.Bytes{proxytest.Bytes(body)}
	}
	for _, c := range chunks {
		text := h.fill(string(c))
		parts = append(parts, fmt.Sprintf("%x\r\n%s\r\n", len(text), text))
	}
	end := "0\r\n"
	for _, f := range u.Trailers {
		end += f[0] + ": " + h.fill(f[1]) + "\r\n"
		framing += "Trailer: " + f[0] + "\r\n"
	}
	parts[len(parts)-1] += end + "\r\n"
	return parts, framing + "Transfer-Encoding: chunked\r\n"
}

// split cuts a part into writes.
func (u credUpstream) split(part string) (bits []string) {
	if u.Split == 0 {
		return []string{part}
	}
	for bit := range slices.Chunk([]byte(part), u.Split) {
		bits = append(bits, string(bit))
	}
	return bits
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // a buffer takes all
	_ = w.Close()
	return b.String()
}
