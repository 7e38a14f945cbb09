package credbroker

import "testing"

// What explain says without a look at any source.
func TestAttached(t *testing.T) {
	entries := []Entry{
		{ID: "a", Type: HTTPSBearer, Targets: []Target{{Host: "api.test", Port: 443, Path: "/v1"}}},
		{ID: "b", Type: HTTPSBearer, Targets: []Target{{Host: "api.test", Port: 443, Path: "/v2/*/x"}}},
		{ID: "p", Type: HTTPSHeader, Inject: "placeholder", Targets: []Target{{Host: "swap.test", Port: 443}}},
		{ID: "s", Type: AWSSigV4, Targets: []Target{{Host: "*.aws.test", Port: 443}}},
		{ID: "c", Canary: true},
	}
	for _, c := range []struct {
		method, scheme, host string
		port                 int
		target, want         string
	}{
		{"GET", "https", "api.test", 443, "/v1/x?y", "a"},
		{"GET", "https", "api.test", 0, "/v1", "a"},
		{"GET", "https", "api.test", 443, "/v1x", ""},
		{"GET", "https", "api.test", 443, "/v2/1/x", "b"},
		{"GET", "https", "api.test", 8443, "/v1", ""},
		{"GET", "http", "api.test", 80, "/v1", ""},
		{"OPTIONS", "https", "api.test", 443, "/v1", ""},
		{"TRACE", "https", "api.test", 443, "/v1", ""},
		{"POST", "https", "API.test", 443, "/v1", "a"},
		{"GET", "https", "swap.test", 443, "/", ""},
		{"GET", "https", "s3.aws.test", 443, "/", "s"},
		{"GET", "https", "aws.test", 443, "/", ""},
		{"GET", "https", "other.test", 443, "/", ""},
	} {
		if got := Attached(entries, c.method, c.scheme, c.host, c.port, c.target); got != c.want {
			t.Errorf("%s %s://%s:%d%s: %q, not %q", c.method, c.scheme, c.host, c.port, c.target, got, c.want)
		}
	}
}
