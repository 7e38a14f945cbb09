package redact

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// redacting is a Transport as the broker is one.
type redacting struct {
	http.RoundTripper
	cfg Config
}

func (r redacting) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	Request(req)
	res, err := r.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	cfg := r.cfg
	cfg.Method = req.Method
	if err := Answer(res, cfg); err != nil {
		return nil, err
	}
	return res, nil
}

// through is a client whose answers are scanned, and the server it asks.
func through(t *testing.T, cfg Config, h2 bool, origin http.HandlerFunc) (*http.Client, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(origin)
	server.EnableHTTP2 = h2
	server.StartTLS()
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport)
	transport.DisableCompression = true
	return &http.Client{
		Transport:     redacting{transport, cfg},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, server.URL
}

func get(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip, br")
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// readFor reads until want is there; a byte that does not come hangs the test.
func readFor(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got[:n], err, want)
	}
}

// Each event is there before the next is sent, zipped or not.
func TestEventsAreNotDelayed(t *testing.T) {
	for _, zipped := range []bool{false, true} {
		for _, h2 := range []bool{false, true} {
			next := make(chan bool)
			cfg, _ := config()
			client, url := through(t, cfg, h2, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				out, flush := io.Writer(w), func() {}
				if zipped {
					if got := r.Header.Get("Accept-Encoding"); got != "gzip" {
						t.Errorf("asked for %q", got)
					}
					w.Header().Set("Content-Encoding", "gzip")
					zip := gzip.NewWriter(w)
					defer zip.Close()
					out, flush = zip, func() { zip.Flush() }
				}
				for _, event := range []string{"data: one\n\n", "data: " + secret + "\n\n", "data: end\n\n"} {
					io.WriteString(out, event)
					flush()
					w.(http.Flusher).Flush()
					<-next
				}
			})
			res := get(t, client, url)
			for _, event := range []string{"data: one\n\n", "data: [redacted]\n\n", "data: end\n\n"} {
				readFor(t, res.Body, event)
				next <- true
			}
			if rest, err := io.ReadAll(res.Body); len(rest) > 0 || err != nil {
				t.Errorf("behind the events: %q, %v", rest, err)
			}
		}
	}
}

func TestTrailers(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		cfg, found := config()
		client, url := through(t, cfg, h2, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum, X-Auth, X-"+secret)
			io.WriteString(w, "body")
			w.(http.Flusher).Flush()
			w.Header().Set("X-Sum", "v1")
			w.Header().Set("X-Auth", "Bearer "+secret)
			w.Header().Set("X-"+secret, "1")
			w.Header().Set(http.TrailerPrefix+"X-Late", secret)
		})
		res := get(t, client, url)
		if _, ok := res.Trailer[http.CanonicalHeaderKey("X-"+secret)]; ok || len(res.Trailer) != 2 {
			t.Errorf("announced: %q", res.Trailer)
		}
		if body, err := io.ReadAll(res.Body); string(body) != "body" || err != nil {
			t.Errorf("got %q, %v", body, err)
		}
		want := map[string]string{"X-Sum": "v1", "X-Auth": "Bearer [redacted]", "X-Late": "[redacted]"}
		for name, v := range want {
			if got := res.Trailer[name]; !slices.Equal(got, []string{v}) {
				t.Errorf("%s: got %q, want %q", name, got, v)
			}
		}
		if len(res.Trailer) != len(want) {
			t.Errorf("trailers: %q", res.Trailer)
		}
		if !slices.Equal(*found, []string{"api"}) {
			t.Errorf("noted: %q", *found)
		}
	}
}

// A HEAD of net/http's own, an answer with a length and one without.
func TestLengths(t *testing.T) {
	cfg, _ := config()
	client, url := through(t, cfg, false, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a "+secret)
	})
	res := get(t, client, url)
	body, err := io.ReadAll(res.Body)
	if err != nil || res.ContentLength != int64(len(body)) || string(body) != "a [redacted]" || res.Header.Get("Content-Length") != "12" {
		t.Errorf("got %q, %v, length %d", body, err, res.ContentLength)
	}
	head, err := client.Head(url)
	if err != nil {
		t.Fatal(err)
	}
	head.Body.Close()
	if v, ok := head.Header["Content-Length"]; ok || head.ContentLength != -1 {
		t.Errorf("HEAD has a length: %q, %d", v, head.ContentLength)
	}
}

// An answer is refused though the body of its request, which nobody closes, is
// still to come.
func TestRefusedBeforeTheRequestEnds(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		cfg, _ := config()
		client, url := through(t, cfg, h2, func(w http.ResponseWriter, _ *http.Request) {
			if !h2 { // or the answer waits for the request
				if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
					t.Error(err)
				}
			}
			w.Header().Set("Content-Encoding", "br")
			w.Write(make([]byte, 1<<17))
			w.(http.Flusher).Flush()
		})
		ctx, cancel := context.WithCancel(t.Context())
		waiting, w := io.Pipe()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.NopCloser(waiting))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := client.Do(r); !errors.Is(err, errCoding) {
			t.Errorf("got %v, %v", res, err)
		}
		cancel()
		w.Close()
	}
}

// However much a small answer unfolds to, memory does not grow with it.
func TestBomb(t *testing.T) {
	const size = 64 << 20
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range size >> 20 {
		if _, err := zip.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	cfg, _ := config()
	res, _ := answerOf(200, int64(b.Len()), b.String(), "Content-Encoding", "gzip")
	if err := Answer(res, cfg); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, res.Body)
	if n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if held := cap(res.Body.(*body).out); held > 1<<20 {
		t.Errorf("%d bytes are held", held)
	}
}
