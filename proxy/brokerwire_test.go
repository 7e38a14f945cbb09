package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

const expecting = "POST /x HTTP/1.1\r\nHost: ok.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"

// TestBrokerAsksForBody: a client that waits for a 100 gets ours when the
// broker begins to read, the origin's where it does not, and none where the
// request is refused before.
func TestBrokerAsksForBody(t *testing.T) {
	late := func(p spoken) {
		p.Wait(5*time.Second, func(b []byte, end bool) bool { return bytes.Contains(b, []byte("100 Continue")) || end })
		p.Send([]byte("body"))
	}
	t.Run("broker", func(t *testing.T) {
		h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
			if got := r.Header["Expect"]; len(got) != 1 || got[0] != "100-continue" {
				t.Errorf("the broker sees Expect %q", got)
			}
			if err := holdBody(r); err != nil {
				return nil, err
			}
			return send(r)
		}, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		p := h.speak(expecting)
		late(p)
		a := p.answer(t)
		if a.Body != "ok" || len(a.Interim) != 2 || a.Interim[0].Status != 100 || a.Interim[1].Status != 103 {
			t.Errorf("got %+v", a)
		}
		if proxytest.Values(a.Fields, "Connection") != nil {
			t.Error("the connection is closed")
		}
		seen := h.origin.Seen()
		if len(seen.Requests) != 1 || proxytest.Values(seen.Requests[0].Fields, "Expect") != nil || seen.Requests[0].Body != "body" {
			t.Errorf("origin saw %q", seen.Bytes)
		}
	})
	t.Run("stream", func(t *testing.T) { // the field is gone, the body not read
		h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
			r.Header.Del("Expect")
			return send(r)
		})
		p := h.speak(expecting)
		late(p)
		if a := p.answer(t); a.Body != "ok" || len(a.Interim) != 1 {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("origin", func(t *testing.T) {
		h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) { return send(r) })
		h.origin.Scripts = []proxytest.Script{{{On: "head", Send: "HTTP/1.1 100 Continue\r\nX-From: origin\r\n\r\n"},
			{On: "body", Send: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}}}
		p := h.speak(expecting)
		late(p)
		a := p.answer(t)
		if a.Body != "ok" || len(a.Interim) != 1 || len(proxytest.Values(a.Interim[0].Fields, "X-From")) != 1 {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("refused", func(t *testing.T) {
		h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
			return nil, &refused{reason: "credential_leak"}
		})
		a := h.speak(expecting).answer(t)
		if a.Status != 403 || len(a.Interim) != 0 || len(proxytest.Values(a.Fields, "Connection")) != 1 {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("gone", func(t *testing.T) {
		h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
			if err := holdBody(r); err != nil {
				return nil, err
			}
			return send(r)
		})
		p := h.speak(expecting)
		p.Wait(5*time.Second, func(b []byte, end bool) bool { return len(b) > 0 })
		p.Close()
		h.wantRecord("error", "client_gone", "")
	})
}

// TestBrokerTakesSwitch: an upgraded connection is what the broker made of it.
func TestBrokerTakesSwitch(t *testing.T) {
	const upgrade = "GET /x HTTP/1.1\r\nHost: ok.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	const switched = "HTTP/1.1 101 Own Words\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	for _, breaks := range []bool{false, true} {
		h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
			res, err := send(r)
			if err == nil {
				res.Body = &upperConn{ReadWriteCloser: res.Body.(io.ReadWriteCloser), breaks: breaks}
			}
			return res, err
		})
		h.origin.Scripts = []proxytest.Script{{{On: "body", Send: switched, Echo: true}}}
		p := h.speak(upgrade)
		p.Wait(5*time.Second, func(b []byte, end bool) bool { return bytes.Contains(b, []byte("\r\n\r\n")) || end })
		p.Send([]byte("hello"))
		want := "HELLO"
		if breaks {
			want = ""
		}
		p.Wait(5*time.Second, func(b []byte, end bool) bool { return bytes.HasSuffix(b, []byte("HELLO")) || end })
		all, end := p.Got()
		if _, rest, _ := bytes.Cut(all, []byte("\r\n\r\n")); string(rest) != want || bytes.Contains(all, []byte("Own Words")) || breaks != (end != nil) {
			t.Errorf("got %q %v", all, end)
		}
		p.Close()
		if breaks {
			h.wantRecord("deny", "credential_leak", "")
		} else {
			h.wantRecord("allow", "rule", "")
		}
	}
}

// upperConn reads in upper case, or not at all.
type upperConn struct {
	io.ReadWriteCloser
	breaks bool
}

func (c *upperConn) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	copy(p, bytes.ToUpper(p[:n]))
	if c.breaks && n > 0 {
		return 0, &refused{reason: "credential_leak"}
	}
	return n, err
}

// TestBrokerSeesTrace: a TRACE or OPTIONS that ends here is looked through all
// the same, its body too.
func TestBrokerSeesTrace(t *testing.T) {
	look := func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
		if r.Body != nil {
			if err := holdBody(r); err != nil {
				return nil, err
			}
			if held, _ := io.ReadAll(r.Body); strings.Contains(string(held), "oa_cred_x") {
				return nil, &refused{reason: "credential_leak"}
			}
		}
		if r.URL.Scheme != "https" || r.URL.Host != "ok.test" || r.URL.Opaque != "/x" {
			t.Errorf("the broker sees %#v", r.URL)
		}
		if strings.Contains(r.Header.Get("Authorization"), "oa_cred_x") {
			return nil, &refused{reason: "credential_leak"}
		}
		return send(r)
	}
	for _, tt := range []struct {
		method, body, secret string
		status               int
	}{
		{"TRACE", "", "oa_cred_x", 403}, {"OPTIONS", "", "oa_cred_x", 403}, {"OPTIONS", "oa_cred_x", "", 403},
		{"TRACE", "", "mine", 200}, {"OPTIONS", "text", "", 200},
	} {
		h := brokerHouse(t, look)
		res, text, _ := h.ask(tt.method, "https://ok.test/x", tt.body, "Max-Forwards", "0", "Authorization", tt.secret)
		if res.StatusCode != tt.status || strings.Contains(text, "oa_cred_x") {
			t.Errorf("%+v: got %d %q", tt, res.StatusCode, text)
		}
		if n := len(h.origin.Seen().Dialled); n != 0 {
			t.Errorf("%+v reached the origin", tt)
		}
	}
}

// TestConnectionStripsNoPlaceholder: Authorization, and any field that holds a
// placeholder, reach the broker though Connection names them; others do not.
func TestConnectionStripsNoPlaceholder(t *testing.T) {
	h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
		for name, want := range map[string]string{"Authorization": "Bearer own", "X-Key": "oa_cred_x", "X-Other": "", "Proxy-Authorization": "", "Connection": "", "X-Forwarded-For": "oa_cred_x"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		return send(r)
	})
	h.broker.(*fakeBroker).mask = func(s string) string { return strings.ReplaceAll(s, "oa_cred_x", "[credential]") }
	a := h.speak("GET /x HTTP/1.1\r\nHost: ok.test\r\nConnection: authorization, X-KEY,x-other\r\nConnection: proxy-authorization, x-forwarded-for\r\n" +
		"Authorization: Bearer own\r\nX-Key: oa_cred_x\r\nX-Other: a\r\nProxy-Authorization: oa_cred_x\r\nX-Forwarded-For: oa_cred_x\r\n\r\n").answer(t)
	if a.Status != 200 {
		t.Errorf("got %+v", a)
	}
}

// TestBrokerSeesTrailers: they are there when the body has ended.
func TestBrokerSeesTrailers(t *testing.T) {
	for _, announced := range []string{"", "Trailer: X-Sum\r\n"} {
		h := brokerHouse(t, func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
			if err := holdBody(r); err != nil {
				return nil, err
			}
			if got := r.Trailer.Get("X-Sum"); got != "v1" {
				t.Errorf("trailer is %q", got)
			}
			r.Trailer.Set("X-Sum", "v2")
			return send(r)
		})
		h.speak("POST /x HTTP/1.1\r\nHost: ok.test\r\n" + announced + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: v1\r\n\r\n").answer(t)
		seen := h.origin.Seen()
		if len(seen.Requests) != 1 || strings.Join(proxytest.Values(seen.Requests[0].Trailers, "X-Sum"), ",") != "v2" {
			t.Errorf("origin saw %q", seen.Bytes)
		}
	}
}
