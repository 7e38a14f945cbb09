package proxy_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
)

// liveCase is a house with one bearer token for ok.test, "tok-live-7Qm4x9Zr2Lp8",
// whose placeholder is ${ph:api}.
func liveCase(t *testing.T) *credHouse {
	t.Helper()
	return newCredHouse(t, credCase{
		Rules:   []any{"* ok.test/**", "* other.test/**"},
		Entries: json.RawMessage(`[{"id":"api","type":"https_bearer","target":"ok.test","source":{"env":"TOK"},"env":"K"}]`),
		Sources: credSources{Env: map[string]string{"TOK": "tok-live-7Qm4x9Zr2Lp8"}},
	})
}

const slowHead = "POST /x HTTP/1.1\r\nHost: ok.test\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[\"a\",\r\n"

// TestSlowBodyLeak: a body that pauses goes out; a placeholder that comes then
// breaks the request off, and is 403 where no answer began.
func TestSlowBodyLeak(t *testing.T) {
	h := liveCase(t)
	p := h.speak(slowHead)
	came := func() bool { return strings.Contains(strings.Join(h.origin.Seen().Bytes, ""), `["a",`) }
	for end := time.Now().Add(5 * time.Second); !came() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	leak := h.fill(`"${ph:api}"]`)
	p.Send([]byte("40\r\n" + leak + strings.Repeat(" ", 0x40-len(leak)) + "\r\n0\r\n\r\n"))
	a := p.answer(t)
	if a.Status != 403 || !strings.Contains(a.Body, "credential_leak") {
		t.Errorf("got %+v", a)
	}
	r := h.wantRecord("deny", "credential_leak", "api")
	if r.BytesOut != int64(len(`["a",`)) {
		t.Errorf("record has %d bytes out", r.BytesOut)
	}
	if leaks := h.sink.of(audit.KindLeak); len(leaks) != 1 || leaks[0].RequestID != r.RequestID {
		t.Errorf("leaks %+v", leaks)
	}
	for _, text := range h.origin.Seen().Bytes {
		if strings.Contains(text, "oa_cred_") || len(h.origin.Seen().Requests) != 0 {
			t.Errorf("origin got %q", text)
		}
	}
}

// TestLateLeak: where the answer had begun it is broken off.
func TestLateLeak(t *testing.T) {
	h := liveCase(t)
	h.origin.Scripts = []proxytest.Script{{{On: "head", Send: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n6\r\na: b\n\n\r\n"}}}
	p := h.speak(slowHead)
	if !p.Wait(5*time.Second, func(b []byte, end bool) bool { return bytes.Contains(b, []byte("a: b")) }) {
		all, end := p.Got()
		t.Fatalf("the answer did not begin: %q %v", all, end)
	}
	leak := h.fill(`"${ph:api}"]`)
	p.Send([]byte("40\r\n" + leak + strings.Repeat(" ", 0x40-len(leak)) + "\r\n0\r\n\r\n"))
	if a := p.answer(t); a.Status != 200 || a.Whole {
		t.Errorf("got %+v", a)
	}
	h.wantRecord("deny", "credential_leak", "api")
}

// TestEarlyAnswerToHeldBody: an origin that answers before a body came is heard
// at once, though the broker still waits for the body.
func TestEarlyAnswerToHeldBody(t *testing.T) {
	h := liveCase(t)
	h.origin.Scripts = []proxytest.Script{{{On: "head", Send: "HTTP/1.1 413 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno", Close: true}}}
	begun := time.Now()
	a := h.speak(slowHead).answer(t)
	if a.Status != 413 || a.Body != "no" || time.Since(begun) > 3*time.Second {
		t.Errorf("after %v got %+v", time.Since(begun), a)
	}
}

// TestHeldBodyOfGoneClient: a client that goes while its body is held leaves
// nothing behind, and the origin hears nothing.
func TestHeldBodyOfGoneClient(t *testing.T) {
	h := liveCase(t)
	p := h.speak("POST /x HTTP/1.1\r\nHost: ok.test\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n[")
	time.Sleep(50 * time.Millisecond)
	p.Close()
	r := h.wantRecord("error", "client_gone", "")
	if r.BytesOut != 0 || len(h.origin.Seen().Dialled) != 0 {
		t.Errorf("record %+v, dialled %v", r, h.origin.Seen().Dialled)
	}
}
