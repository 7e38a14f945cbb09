package proxy_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
)

// brokerHouse is a proxy before ok.test whose broker
// does as the test says.
func brokerHouse(t *testing.T, do func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error), scripts ...string) *house {
	t.Helper()
	h := newHouse(t, []any{"* ok.test/**"}, nil)
	h.broker.(*fakeBroker).do = do
	for _, s := range scripts {
		h.origin.Scripts = append(h.origin.Scripts, proxytest.Script{{On: "body", Send: proxytest.Bytes(s)}})
	}
	return h
}

// ask makes one request and reads its answer; the error is of the body.
func (h *house) ask(method, url, body string, fields ...string) (*http.Response, string, error) {
	h.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(h.t.Context(), method, url, content)
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	client := h.explicit().HTTP()
	defer client.CloseIdleConnections()
	res, err := client.Do(r)
	if err != nil {
		h.t.Fatalf("%s %s: %v", method, url, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res, string(text), err
}

// wantRefusal holds an answer against what a refusal of this status and reason
// looks like.
func wantRefusal(t *testing.T, res *http.Response, text string, status int, reason string) {
	t.Helper()
	var doc struct{ Code, Title, Detail string }
	if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.Code != reason || res.StatusCode != status || doc.Detail == "" {
		t.Errorf("got %d %q, want %d %s", res.StatusCode, text, status, reason)
	}
	if got := res.Header.Get("Proxy-Status"); got != `egressd; error=http_request_denied; details="`+reason+`"` {
		t.Errorf("Proxy-Status is %q", got)
	}
}

// wantRecord looks for the one record of the request.
func (h *house) wantRecord(verdict, reason, credential string) audit.Record {
	h.t.Helper()
	list := h.sink.wait(audit.KindRequest, 1, 2*time.Second)
	if len(list) != 1 || list[0].Verdict != verdict || list[0].Reason != reason || list[0].Credential != credential {
		h.t.Fatalf("records are %+v, want one %s %s %q", list, verdict, reason, credential)
	}
	return list[0]
}

// TestBrokerRefuses: what the broker refuses reaches no origin, and is a
// refusal and a record like any other, with the broker's own beside it.
func TestBrokerRefuses(t *testing.T) {
	for _, tt := range []struct {
		err    refused
		status int
	}{
		{refused{reason: "credential_leak", title: "A title", detail: "A text."}, 403},
		{refused{reason: "credential_plaintext"}, 403},
		{refused{reason: "credential_foreign"}, 403},
		{refused{reason: "credential_unavailable"}, 502},
		{refused{reason: "body_too_large"}, 413},
		{refused{reason: "credential_leak", status: 502}, 502},
	} {
		h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
			note("leak", "deny", "api")
			return nil, fmt.Errorf("sending: %w", &tt.err)
		})
		res, text, _ := h.ask("GET", "https://ok.test/x", "")
		wantRefusal(t, res, text, tt.status, tt.err.reason)
		if !strings.Contains(text, `"title":"`+tt.err.title) || !strings.Contains(text, `"detail":"`+tt.err.detail) {
			t.Errorf("%s lacks the title or the detail", text)
		}
		if n := len(h.origin.Seen().Dialled); n != 0 {
			t.Errorf("%s: the origin was dialled", tt.err.reason)
		}
		r := h.wantRecord("deny", tt.err.reason, "api")
		if r.BytesOut != 0 {
			t.Errorf("record has %d bytes out", r.BytesOut)
		}
		leaks := h.sink.of(audit.KindLeak)
		if len(leaks) != 1 || leaks[0].RequestID != r.RequestID || leaks[0].Host != "ok.test" || leaks[0].Verdict != "deny" ||
			leaks[0].Reason != "credential_leak" || leaks[0].Credential != "api" {
			t.Errorf("records of leaks: %+v", leaks)
		}
	}
}

// TestBrokerRefusesAnswer: an answer that is not passed on is 502 and not the
// request's fault, whatever the status that came.
func TestBrokerRefusesAnswer(t *testing.T) {
	h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
		res, err := send(r)
		if err != nil {
			return nil, err
		}
		res.Body.Close()
		return nil, &refused{reason: "credential_leak"}
	})
	res, text, _ := h.ask("GET", "https://ok.test/x", "")
	wantRefusal(t, res, text, 502, "credential_leak")
	if strings.Contains(text, "placeholder") {
		t.Errorf("%s speaks of the request", text)
	}
	h.wantRecord("deny", "credential_leak", "")
}

// TestBrokerSendsAgain: a request without a body goes out once more after an
// answer, over the one door and its bookkeeping.
func TestBrokerSendsAgain(t *testing.T) {
	for _, upstream := range []string{"https://ok.test/x", "http://ok.test/x"} {
		h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
			r.Header.Set("Authorization", "old")
			res, err := send(r)
			if err != nil || res.StatusCode != 401 {
				return res, err
			}
			res.Body.Close()
			note("credential", "allow", "api")
			r.Header.Set("Authorization", "new")
			return send(r)
		}, "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno", "HTTP/1.1 204 Fine\r\nX-A: b\r\n\r\n")
		res, text, err := h.ask("GET", upstream, "")
		if res.StatusCode != 204 || text != "" || err != nil || res.Header.Get("X-A") != "b" {
			t.Errorf("got %d %q %v", res.StatusCode, text, err)
		}
		seen := h.origin.Seen()
		if len(seen.Requests) != 2 || seen.Partial != 0 {
			t.Fatalf("origin saw %q", seen.Bytes)
		}
		for i, want := range []string{"old", "new"} {
			if got := proxytest.Values(seen.Requests[i].Fields, "Authorization"); len(got) != 1 || got[0] != want {
				t.Errorf("request %d had %q", i+1, got)
			}
			if got := proxytest.Values(seen.Requests[i].Fields, "User-Agent"); len(got) != 1 { // the client's own
				t.Errorf("request %d had User-Agent %q", i+1, got)
			}
		}
		if r := h.wantRecord("allow", "rule", "api"); r.Status != 204 || r.Upstream == "" || r.UpstreamProto != "http/1.1" {
			t.Errorf("record %+v", r)
		}
	}
}

// TestBrokerHoldsBody: a body that the broker has read goes out also where the
// origin turns out to speak the other protocol.
func TestBrokerHoldsBody(t *testing.T) {
	roots := proxytest.NewCA(t)
	addr := protoOrigin(t, roots, nil, "h2")
	h := newHouseWith(t, []any{"* ok.test/**"}, nil, roots)
	h.kernel = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	for range 2 {
		if _, text, _ := h.ask("POST", "https://ok.test/x", "body", "Content-Type", "application/json"); text != "HTTP/2.0 body" {
			t.Errorf("got %q", text)
		}
	}
}

// failing reads as text and then fails.
type failing struct {
	text io.Reader
	err  error
	wait chan struct{} // before the error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.text.Read(p)
	if err == io.EOF {
		if f.wait != nil {
			<-f.wait
		}
		err = f.err
	}
	return n, err
}

func (f *failing) Close() error { return nil }

// TestBrokerBreaksBody: a leak that is found in a body that streams is 403
// where nothing was answered yet, and breaks the answer off where it was.
func TestBrokerBreaksBody(t *testing.T) {
	leak := &refused{reason: "credential_leak"}
	h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
		r.Body = &failing{text: strings.NewReader("half"), err: leak}
		r.ContentLength = 100
		return send(r)
	})
	res, text, _ := h.ask("POST", "https://ok.test/x", strings.Repeat("a", 100))
	wantRefusal(t, res, text, 403, "credential_leak")
	h.wantRecord("deny", "credential_leak", "")

	begun := make(chan struct{})
	h = brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
		r.Body = &failing{text: strings.NewReader("half"), err: leak, wait: begun}
		r.ContentLength = 100
		return send(r)
	})
	h.origin.Scripts = []proxytest.Script{{{On: "head", Send: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun"}}}
	time.AfterFunc(300*time.Millisecond, func() { close(begun) })
	res, text, err := h.ask("POST", "https://ok.test/x", strings.Repeat("a", 100))
	if res.StatusCode != 200 || err == nil {
		t.Errorf("got %d %q %v, want a broken answer", res.StatusCode, text, err)
	}
	h.wantRecord("deny", "credential_leak", "")
}

// TestBrokerBreaksAnswer: an answer that the broker ends early looks broken, and
// the record says why.
func TestBrokerBreaksAnswer(t *testing.T) {
	h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
		res, err := send(r)
		if err == nil {
			res.Body = &failing{text: strings.NewReader("half"), err: &refused{reason: "credential_leak"}}
			res.ContentLength = -1
			res.Header.Del("Content-Length")
		}
		return res, err
	})
	res, text, err := h.ask("GET", "https://ok.test/x", "")
	if res.StatusCode != 200 || text != "half" || err == nil {
		t.Errorf("got %d %q %v, want a broken answer", res.StatusCode, text, err)
	}
	h.wantRecord("deny", "credential_leak", "")
}

// TestBrokerSeesInterim: what the broker changes in an interim answer is changed
// for the client.
func TestBrokerSeesInterim(t *testing.T) {
	h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			h.Set("Link", "changed")
			h.Del("X-Gone")
			return nil
		}}
		return send(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	}, "HTTP/1.1 103 Early Hints\r\nLink: secret\r\nX-Gone: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	p := h.speak("GET /x HTTP/1.1\r\nHost: ok.test\r\n\r\n")
	got := p.answer(t)
	if len(got.Interim) != 1 || got.Body != "ok" || fmt.Sprint(proxytest.Values(got.Interim[0].Fields, "Link")) != "[changed]" ||
		proxytest.Values(got.Interim[0].Fields, "X-Gone") != nil || proxytest.Values(got.Fields, "Link") != nil {
		t.Errorf("got %+v", got)
	}
}

// spoken is a client of raw bytes inside a tunnel to ok.test:443.
type spoken struct{ *proxytest.Peer }

func (h *house) speak(text string) spoken {
	h.t.Helper()
	raw, err := h.explicit().Dial(h.t.Context(), "ok.test:443")
	if err != nil {
		h.t.Fatal(err)
	}
	conn := tls.Client(raw, &tls.Config{RootCAs: h.trust(), ServerName: "ok.test"})
	h.opened = append(h.opened, conn)
	p := spoken{proxytest.NewPeer(conn)}
	p.Send([]byte(text))
	return p
}

// answer waits for the one answer.
func (p spoken) answer(t *testing.T) proxytest.Answer {
	t.Helper()
	var answers []proxytest.Answer
	var err error
	p.Wait(10*time.Second, func(b []byte, end bool) bool {
		answers, _, _, err = proxytest.ParseAnswers(b, nil, end)
		return err != nil || len(answers) > 0 && (answers[0].Whole || end)
	})
	if err != nil || len(answers) != 1 {
		all, end := p.Got()
		t.Fatalf("got %q, %v, %v", all, end, err)
	}
	return answers[0]
}
