package credbroker

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/source"
)

// newBroker is a broker of entries whose secrets are in variables.
func newBroker(t testing.TB, env map[string]string, entries ...Entry) *Broker {
	t.Helper()
	b, err := New(t.Context(), Config{Entries: entries, Sources: newSources(env)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newSources(env map[string]string) source.Config {
	return source.Config{Getenv: func(name string) string { return env[name] }}
}

const realSecret = "tok-live-7Qm4x9Zr2Lp8"

var oneSecret = map[string]string{"TOK": realSecret}

func bearer(host string) Entry {
	return Entry{ID: "api", Type: HTTPSBearer, Source: &Source{Env: "TOK"}, Env: []string{"K"},
		Targets: []Target{{Text: host, Host: host, Port: 443}}}
}

// request is one as a browser or an SDK sends it.
func request(method, host, target string, fields ...string) *http.Request {
	path, query, _ := strings.Cut(target, "?")
	r := &http.Request{Method: method, URL: &url.URL{Scheme: "https", Host: host, Opaque: path, RawQuery: query}, Host: host, Header: http.Header{
		"Accept": {"*/*"}, "Accept-Encoding": {"gzip, deflate, br"}, "Accept-Language": {"en-US,en;q=0.9"}, "Cache-Control": {"no-cache"},
		"User-Agent":   {"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"},
		"X-Request-Id": {"0192c3a1-7d0f-7cc3-98c4-dc0c0c07398f"}, "Referer": {"https://docs.test/guide/first-steps"},
		"Content-Type": {"application/json"},
	}}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

func quiet(string, string, string) {}

func BenchmarkUnbound(b *testing.B) {
	broker := newBroker(b, oneSecret, bearer("api.test"))
	r := request("GET", "other.test", "/v1/things/17?page=2&per_page=100")
	res := &http.Response{StatusCode: 200, Body: http.NoBody}
	send := func(*http.Request) (*http.Response, error) { return res, nil }
	b.ReportAllocs()
	for b.Loop() {
		_, _ = broker.RoundTrip(r, send, quiet)
	}
}

func benchBound(b *testing.B, field, value string) {
	broker := newBroker(b, oneSecret, bearer("api.test"))
	r := request("GET", "api.test", "/v1/things/17?page=2&per_page=100")
	if field != "" {
		r.Header.Set(field, strings.ReplaceAll(value, "PH", broker.Placeholder("api", "")))
	}
	sent := r.Header.Clone()
	send := func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
	}
	b.ReportAllocs()
	for b.Loop() {
		if field != "" {
			r.Header[field] = sent[field]
		} else {
			delete(r.Header, "Authorization")
		}
		if _, err := broker.RoundTrip(r, send, quiet); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAttach(b *testing.B) { benchBound(b, "", "") }

func BenchmarkSwap(b *testing.B) { benchBound(b, "Authorization", "Bearer PH") }

func BenchmarkBody(b *testing.B) {
	broker := newBroker(b, oneSecret, bearer("api.test"))
	for _, size := range []int{200, 1 << 20} {
		text := strings.Repeat("the credentials of a text, more or less. ", size/40+1)[:size]
		b.Run(map[int]string{200: "200B", 1 << 20: "1MiB"}[size], func(b *testing.B) {
			send := func(r *http.Request) (*http.Response, error) {
				_, err := io.Copy(io.Discard, r.Body)
				r.Body.Close()
				return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, err
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r := request("POST", "other.test", "/x").WithContext(context.Background())
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(size)
				if _, err := broker.RoundTrip(r, send, quiet); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
