package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

type (
	sendFunc = func(*http.Request) (*http.Response, error)
	noteFunc = func(kind, verdict, credential string)
)

// fakeBroker has no secret. It takes bodies of JSON whole, as the real one takes
// those that it looks through, and does what a test says besides.
type fakeBroker struct {
	do   func(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error)
	mask func(string) string
}

func (b *fakeBroker) RoundTrip(r *http.Request, send sendFunc, note noteFunc) (*http.Response, error) {
	if b.do != nil {
		return b.do(r, send, note)
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") && r.Body != nil {
		if err := holdBody(r); err != nil {
			return nil, err
		}
	}
	return send(r)
}

// holdBody reads the body of r whole.
func holdBody(r *http.Request) error {
	r.Header.Del("Expect")
	held, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(held))
	return nil
}

func (b *fakeBroker) Mask(text string) string {
	if b.mask == nil {
		return text
	}
	return b.mask(text)
}

// refused is an error as the broker gives one.
type refused struct {
	reason, title, detail string
	status                int
}

func (e *refused) Error() string  { return "refusing: " + e.reason }
func (e *refused) Reason() string { return e.reason }
func (e *refused) Title() string  { return e.title }
func (e *refused) Detail() string { return e.detail }
func (e *refused) Status() int    { return e.status }
