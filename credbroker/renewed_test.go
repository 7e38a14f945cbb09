package credbroker

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/egressd/egressd/credbroker/secret"
)

// A secret that is had while a stream is open is found in the stream, also where
// a reload lies between the two, either way.
func TestSecretsOfOpenStreams(t *testing.T) {
	for _, c := range []string{"same", "stream before the reload", "stream behind the reload"} {
		t.Run(c, func(t *testing.T) {
			first := newBroker(t, oneSecret, bearer("api.test"))
			second := first
			if c != "same" {
				var err error
				if second, err = New(t.Context(), Config{Entries: []Entry{bearer("api.test")}, Sources: newSources(oneSecret), Previous: first}); err != nil {
					t.Fatal(err)
				}
			}
			streams, asks := first, second
			if c == "stream behind the reload" {
				streams, asks = second, first
			}
			keeper := &fakeKeeper{values: []secret.Value{secret.New([]byte(realSecret))}}
			asks.creds[0].value = keeper
			from, to := io.Pipe()
			stream, err := streams.RoundTrip(request("GET", "api.test", "/events"), func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: from, ContentLength: -1}, nil
			}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			status, sent := 401, ""
			if _, err = asks.RoundTrip(request("GET", "api.test", "/x"), func(r *http.Request) (*http.Response, error) {
				sent = r.Header.Get("Authorization")
				res := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
				status = 200
				return res, nil
			}, quiet); err != nil || sent != "Bearer generation-2-of-it" {
				t.Fatalf("sent %q, %v", sent, err)
			}
			go func() {
				fmt.Fprintf(to, "data: %s\n\n", sent)
				to.Close()
			}()
			want := "data: Bearer " + streams.Placeholder("api", "") + "\n\n"
			if streams.Placeholder("api", "") == "" {
				want = "data: Bearer [redacted]\n\n"
			}
			if got, err := io.ReadAll(stream.Body); string(got) != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		})
	}
}

// A slice that was not asked for by Range is refused too: some servers know
// other ways to ask.
func TestSlicesThatNobodyAskedFor(t *testing.T) {
	for _, ranges := range []bool{false, true} {
		b := newBroker(t, oneSecret, with(bearer("api.test"), func(e *Entry) { e.Ranges = ranges }))
		_, err := b.RoundTrip(request("GET", "api.test", "/x", "Request-Range", "bytes=3-12"), func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 206, Header: http.Header{}, Body: http.NoBody}, nil
		}, quiet)
		if want := map[bool]string{false: "credential_leak"}[ranges]; reasonOf(err) != want {
			t.Errorf("ranges %v: %v", ranges, err)
		}
	}
}
