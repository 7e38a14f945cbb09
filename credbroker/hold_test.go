package credbroker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// drip is a body that comes in pieces, with a pause before each.
type drip struct {
	pieces []string
	gap    time.Duration
	closed atomic.Bool
	end    func()
}

func (d *drip) Read(p []byte) (int, error) {
	if len(d.pieces) == 0 {
		if d.end != nil {
			d.end()
		}
		return 0, io.EOF
	}
	time.Sleep(d.gap)
	n := copy(p, d.pieces[0])
	if d.pieces[0] = d.pieces[0][n:]; d.pieces[0] == "" {
		d.pieces = d.pieces[1:]
	}
	return n, nil
}

func (d *drip) Close() error { d.closed.Store(true); return nil }

// outcome is what became of a request with a body.
type outcome struct {
	sent   bool
	after  time.Duration // until it was sent, or refused
	body   string
	err    error // of the round trip
	read   error // of the body, where it was sent
	expect bool
}

func post(t *testing.T, b *Broker, host string, body *drip, change func(*http.Request)) outcome {
	t.Helper()
	var o outcome
	r := request("POST", host, "/x").WithContext(t.Context())
	r.Body, r.ContentLength = body, -1
	r.Header["Expect"] = []string{"100-continue"}
	if change != nil {
		change(r)
	}
	begun := time.Now()
	_, o.err = b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
		o.sent, o.after = true, time.Since(begun)
		_, o.expect = out.Header["Expect"]
		var got bytes.Buffer
		_, o.read = io.Copy(&got, out.Body)
		o.body = got.String()
		out.Body.Close()
		return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, o.read
	}, quiet)
	if !o.sent {
		o.after = time.Since(begun)
	}
	return o
}

// How a body is held: until it ends, is a mebibyte long, or pauses.
func TestHold(t *testing.T) {
	ms := time.Millisecond
	long := strings.Repeat("a", mostScanned)
	for _, c := range []struct {
		name   string
		pieces func(ph string) []string
		gap    time.Duration
		change func(*http.Request)
		sent   bool
		after  time.Duration
		reason string // of the round trip
		left   string // what the origin saw, "" for all of it
	}{
		{name: "it ends", pieces: func(string) []string { return []string{"a", "b", "c"} }, gap: 100 * ms, sent: true, after: 300 * ms},
		{name: "it ends with a placeholder", pieces: func(ph string) []string { return []string{"a", ph[:20], ph[20:]} }, gap: 100 * ms, after: 300 * ms, reason: "credential_leak"},
		{name: "it pauses", pieces: func(string) []string { return []string{"a", "b", "c"} }, gap: 300 * ms, sent: true, after: 250 * ms},
		{name: "a placeholder behind a pause", pieces: func(ph string) []string { return []string{"a", ph, "c"} }, gap: 300 * ms, sent: true, after: 250 * ms, reason: "credential_leak", left: "a"},
		{name: "a placeholder over a pause", pieces: func(ph string) []string { return []string{ph[:30], ph[30:]} }, gap: 260 * ms, sent: true, after: 250 * ms, reason: "credential_leak", left: "ph"},
		{name: "it is long", pieces: func(ph string) []string { return []string{long, "more", ph} }, gap: 100 * ms, sent: true},
		{name: "another type", pieces: func(ph string) []string { return []string{"a", ph} }, gap: 300 * ms, sent: true, change: func(r *http.Request) { r.Header.Set("Content-Type", "image/png") }},
		{name: "a coding", pieces: func(ph string) []string { return []string{"a", ph} }, gap: 300 * ms, sent: true, change: func(r *http.Request) { r.Header.Set("Content-Encoding", "zstd") }},
		{name: "a form", pieces: func(ph string) []string { return []string{"a=%6", "F" + ph[1:]} }, gap: 1 * ms, after: 2 * ms, reason: "credential_leak",
			change: func(r *http.Request) {
				r.Header.Set("Content-Type", "Application/X-WWW-Form-Urlencoded; charset=utf-8")
			}},
		{name: "the client goes", pieces: func(string) []string { return []string{"a", "b"} }, gap: 240 * ms, after: 300 * ms, reason: context.DeadlineExceeded.Error(),
			change: func(r *http.Request) {
				ctx, cancel := context.WithTimeout(r.Context(), 300*ms)
				context.AfterFunc(ctx, cancel)
				*r = *r.WithContext(ctx)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, oneSecret, bearer("api.test"))
				ph := b.Placeholder("api", "")
				pieces := c.pieces(ph)
				whole := strings.Join(pieces, "")
				d := &drip{pieces: pieces, gap: c.gap}
				o := post(t, b, "other.test", d, c.change)
				if c.name == "it is long" {
					c.after = o.after // as many reads as there happen to be
				}
				if o.sent != c.sent || o.after != c.after || reasonOf(o.err) != c.reason {
					t.Errorf("sent %v after %v, %v", o.sent, o.after, o.err)
				}
				switch {
				case c.reason == "" && o.body != whole:
					t.Errorf("%d bytes, want %d", len(o.body), len(whole))
				case c.left == "ph" && o.body != ph[:30], c.left != "" && c.left != "ph" && o.body != c.left:
					t.Errorf("went out: %q", o.body)
				}
				if taken := !strings.HasPrefix(c.name, "another") && c.name != "a coding"; o.sent && o.expect == taken {
					t.Error("Expect goes with whom does not ask for the body")
				}
				time.Sleep(time.Second) // a read that is under way
				synctest.Wait()
				if n := b.held.Load(); n != 0 {
					t.Errorf("%d bytes are still held", n)
				}
				if !d.closed.Load() {
					t.Error("the client's body was not closed")
				}
			})
		})
	}
}

// Above the budget of all bodies nothing is held, and all the same looked
// through.
func TestHoldBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, oneSecret, bearer("api.test"))
		ph := b.Placeholder("api", "")
		b.held.Store(mostHeld - 100)
		o := post(t, b, "other.test", &drip{pieces: []string{"a", ph}, gap: time.Millisecond}, nil)
		if !o.sent || o.after != 0 || !o.expect || o.body != "a" || reasonOf(o.err) != "credential_leak" {
			t.Errorf("%+v", o)
		}
		b.held.Store(mostHeld - 10<<10) // as far as it goes, then the rest streams
		long := strings.Repeat("b", 100<<10)
		o = post(t, b, "other.test", &drip{pieces: []string{long}}, nil)
		if !o.sent || o.body != long || o.err != nil {
			t.Errorf("%v %d", o.err, len(o.body))
		}
		if b.held.Load() != mostHeld-10<<10 {
			t.Error("the budget is not what it was")
		}
	})
}

// Trailers are looked through for every type of body, before the end is told.
func TestTrailer(t *testing.T) {
	for _, kind := range []string{"text/plain", "application/octet-stream"} {
		for _, bad := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, oneSecret, with(bearer("api.test"), func(e *Entry) { e.Own = "replace" }))
				trailer := http.Header{}
				d := &drip{pieces: []string{"hello"}, end: func() {
					trailer.Set("X-Sum", "v1")
					trailer.Set("X_Api_Key", "mine")
					if bad {
						trailer.Set("X-Auth", basic("u:"+b.Placeholder("api", "")))
					}
				}}
				o := post(t, b, "api.test", d, func(r *http.Request) {
					r.Header.Set("Content-Type", kind)
					r.Trailer = trailer
				})
				switch {
				case bad && reasonOf(o.err) != "credential_leak", bad && o.sent == (kind == "text/plain"):
					t.Errorf("%s: %+v", kind, o)
				case !bad && (o.err != nil || o.body != "hello" || len(trailer) != 1):
					t.Errorf("%s: %+v %v", kind, o, trailer)
				}
			})
		}
	}
}

// What is wrong with the client's body is passed on as it is, and where it shows
// while the body is held nothing goes out.
func TestBodyFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, oneSecret, bearer("api.test"))
		fault := errors.New("cut")
		for _, gap := range []time.Duration{0, time.Second} {
			r := request("POST", "other.test", "/x").WithContext(t.Context())
			r.Body, r.ContentLength = io.NopCloser(io.MultiReader(&drip{pieces: []string{"abc"}, gap: gap}, failing{fault})), 10
			_, err := b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
				got, err := io.ReadAll(out.Body)
				if string(got) != "abc" || err != fault || gap == 0 {
					t.Errorf("%q, %v", got, err)
				}
				out.Body.Close()
				return nil, err
			}, quiet)
			if !errors.Is(err, fault) {
				t.Errorf("%v", err)
			}
		}
		if b.held.Load() != 0 {
			t.Error("the budget is not what it was")
		}
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
