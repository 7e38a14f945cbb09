package credbroker_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/credbroker/source"
)

func ExampleNew() {
	broker, err := credbroker.New(context.Background(), credbroker.Config{
		Entries: []credbroker.Entry{{
			ID: "api", Type: credbroker.HTTPSBearer, Targets: []credbroker.Target{{Host: "api.example.com", Port: 443}},
			Source: &source.Source{Env: "API_TOKEN"}, Env: []string{"API_TOKEN"}, Inject: "missing", Own: "pass",
		}},
		Sources: source.Config{Getenv: func(string) string { return "real-secret-of-the-service" }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := http.NewRequest("GET", "https://api.example.com:443/me", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+broker.Placeholder("api", "")) // what the program has
	origin := func(r *http.Request) (*http.Response, error) {
		fmt.Println("the origin sees", r.Header.Get("Authorization"))
		body := `{"you_sent":"` + r.Header.Get("Authorization") + `"}`
		return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
	resp, err := broker.RoundTrip(r, origin, func(kind, verdict, credential string) { fmt.Println(kind, credential) })
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := io.ReadAll(resp.Body)
	fmt.Println(strings.Contains(string(body), "real-secret"), err)
	// Output:
	// credential api
	// the origin sees Bearer real-secret-of-the-service
	// redaction api
	// false <nil>
}
