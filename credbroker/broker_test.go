package credbroker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/egressd/egressd/credbroker/secret"
)

// Placeholders are of their shape, and none is part of another.
func TestMint(t *testing.T) {
	usual := regexp.MustCompile(`^oa_cred_[A-Za-z0-9_-]{43}$`)
	var taken []string
	for range 100 {
		text, err := mint("", taken)
		if err != nil || !usual.MatchString(text) || slices.Contains(taken, text) {
			t.Fatalf("%q, %v", text, err)
		}
		taken = append(taken, text)
	}
	text, err := mint("ghp_{36}", taken)
	if err != nil || !regexp.MustCompile(`^ghp_[A-Za-z0-9]{36}$`).MatchString(text) {
		t.Errorf("%q, %v", text, err)
	}
	text, err = mint("a{10}.b{10}~", taken)
	if err != nil || !regexp.MustCompile(`^a[A-Za-z0-9]{10}\.b[A-Za-z0-9]{10}~$`).MatchString(text) {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := mint("x-OA_cred_{43}", nil); err == nil {
		t.Error("a shape holds the mark")
	}
	if _, err := mint("only", []string{"the only one"}); err == nil {
		t.Error("a placeholder is part of another")
	}
}

func TestPlaceholders(t *testing.T) {
	gh := Entry{ID: "gh", Type: GHBasic, Source: &Source{Env: "TOK"}, Targets: []Target{{Host: "github.com", Port: 443}}}
	silent := with(bearer("other.test"), func(e *Entry) { e.ID, e.Env = "silent", nil })
	b := newBroker(t, oneSecret, bearer("api.test"), gh, silent, Entry{ID: "trap", Canary: true, Env: []string{"T"}})
	for id, want := range map[string]bool{"api": true, "gh": true, "silent": false, "trap": true, "nobody": false} {
		if got := b.Placeholder(id, "") != ""; got != want {
			t.Errorf("%s has a placeholder: %v", id, got)
		}
	}
}

func TestMask(t *testing.T) {
	b := newBroker(t, oneSecret, bearer("api.test"))
	ph := b.Placeholder("api", "")
	for in, want := range map[string]string{
		"/a/b?c":                        "/a/b?c",
		"/bot" + ph + "/send":           "/bot[credential]/send",
		"/bot:" + ph + "/send":          "/bot:[credential]/send",
		"/" + escapeAll(ph) + "/x":      "/[credential]/x",
		"/%256Fa" + ph[2:] + "%41/x":    "/[credential]/x",
		"/a%20b/" + realSecret:          "/a%20b/[credential]",
		"/tok%2Dlive-7Qm4x9Zr2Lp8.json": "/[credential].json",
		ph + ph:                         "[credential]",
		ph + "," + ph + "%2c" + ph:      "[credential],[credential]%2c[credential]",
		strings.ToLower(ph) + ".test":   "[credential].test",
		"oa_cred_EXAMPLE":               "oa_cred_EXAMPLE",
		"100%":                          "100%",
	} {
		if got := b.Mask(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A broker that takes over keeps placeholders and what it knew of secrets.
func TestReload(t *testing.T) {
	env := map[string]string{"TOK": realSecret, "OTHER": "other-live-Zk31vT0pW5aa"}
	shaped := Entry{ID: "gone", Type: HTTPSBearer, Source: &Source{Env: "OTHER"}, Env: []string{"G"}, Shape: "gl-{30}", Targets: []Target{{Host: "gone.test", Port: 443}}}
	first := newBroker(t, env, bearer("api.test"), shaped)
	api, gone := first.Placeholder("api", ""), first.Placeholder("gone", "")
	env["TOK"] = "tok-next-1111111111111"
	second, err := New(t.Context(), Config{Entries: []Entry{bearer("api.test")}, Sources: newSources(env), Previous: first})
	if err != nil {
		t.Fatal(err)
	}
	third, err := New(t.Context(), Config{Entries: []Entry{with(bearer("api.test"), func(e *Entry) { e.Shape = "sk-{40}" })}, Sources: newSources(env), Previous: second})
	if err != nil {
		t.Fatal(err)
	}
	if second.Placeholder("api", "") != api || second.Placeholder("gone", "") != "" {
		t.Error("placeholders changed")
	}
	if third.Placeholder("api", "") == api {
		t.Error("a placeholder of another shape stays")
	}
	for i, b := range []*Broker{second, third} {
		for text, want := range map[string]string{api: []string{"", "credential_leak"}[i], gone: "credential_leak", realSecret: "credential_leak", env["OTHER"]: "credential_leak", "own": ""} {
			r := request("GET", "api.test", "/x", "Authorization", "Bearer "+text)
			_, err := b.RoundTrip(r, func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
			}, quiet)
			if reasonOf(err) != want {
				t.Errorf("broker %d: %s: %v", i+2, text, err)
			}
		}
		var values []string
		for _, k := range b.sites.host("api.test").secrets() {
			values = append(values, string(k.Value))
		}
		if !slices.Contains(values, realSecret) || !slices.Contains(values, env["TOK"]) || slices.Contains(values, env["OTHER"]) {
			t.Errorf("broker %d: answers are looked through for %q", i+2, values)
		}
	}
}

// An entry that fails is named, the first in the policy, and nothing is said of
// a value.
func TestStartError(t *testing.T) {
	_, err := New(t.Context(), Config{Sources: newSources(oneSecret), Entries: []Entry{
		bearer("api.test"),
		{ID: "one", Type: HTTPSBearer, Source: &Source{Env: "NOPE"}},
		{ID: "two", Type: HTTPSBearer, Source: &Source{File: "/nonexistent/file"}},
	}})
	var start *StartError
	if !errors.As(err, &start) || start.Entry != "one" || !strings.Contains(err.Error(), "NOPE") || strings.Contains(err.Error(), realSecret) {
		t.Errorf("%v", err)
	}
}

func TestWarn(t *testing.T) {
	var told []string
	_, err := New(t.Context(), Config{Entries: []Entry{bearer("api.test")}, Sources: newSources(map[string]string{"TOK": "short"}), Warn: func(s string) { told = append(told, s) }})
	if err != nil || len(told) != 1 || !strings.Contains(told[0], "credential api") || strings.Contains(told[0], "short,") {
		t.Errorf("%q, %v", told, err)
	}
}

// fakeKeeper gives a new secret for each renewal.
type fakeKeeper struct {
	mu      sync.Mutex
	values  []secret.Value
	renewed int
}

func (k *fakeKeeper) Get(context.Context) (secret.Value, uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.values[len(k.values)-1], uint64(len(k.values)), nil
}

func (k *fakeKeeper) Renew(_ context.Context, generation uint64) (secret.Value, uint64, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if generation == uint64(len(k.values)) {
		k.renewed++
		k.values = append(k.values, secret.New(fmt.Appendf(nil, "generation-%d-of-it", generation+1)))
	}
	return k.values[len(k.values)-1], uint64(len(k.values)), true, nil
}

func (k *fakeKeeper) Values() []secret.Value {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.values)
}

// After a 401 a request without a body goes out once more with the new secret,
// wherever its place is, and never a third time.
func TestReplay(t *testing.T) {
	query := with(bearer("api.test"), func(e *Entry) { e.Type, e.Param = HTTPSQuery, "key" })
	for _, c := range []struct {
		name         string
		entry        Entry
		target, auth string
		body         bool
		want         []string
	}{
		{"attached", bearer("api.test"), "/x", "", false, []string{"Bearer G1", "Bearer G2"}},
		{"swapped", bearer("api.test"), "/x", "token PH", false, []string{"token G1", "token G2"}},
		{"parameter attached", query, "/x?a=1", "", false, []string{"a=1&key=G1", "a=1&key=G2"}},
		{"parameter swapped", query, "/x?key=PH&b", "", false, []string{"key=G1&b", "key=G2&b"}},
		{"with a body", bearer("api.test"), "/x", "", true, []string{"Bearer G1"}},
		{"the client's own", bearer("api.test"), "/x", "Bearer mine", false, []string{"Bearer mine"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBroker(t, oneSecret, c.entry)
			k := &fakeKeeper{values: []secret.Value{secret.New([]byte("generation-1-of-it"))}}
			b.creds[0].value = k
			put := func(s string) string { return strings.ReplaceAll(s, "PH", b.Placeholder("api", "")) }
			r := request("GET", "api.test", put(c.target))
			if c.auth != "" {
				r.Header["Authorization"] = []string{put(c.auth)}
			}
			if c.body {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1
			}
			var seen []string
			closed := 0
			res, err := b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
				at := strings.Join(out.Header["Authorization"], ",")
				if c.entry.Type == HTTPSQuery {
					at = out.URL.RawQuery
				}
				seen = append(seen, at)
				return &http.Response{StatusCode: 401, Header: http.Header{}, Body: closing{&closed}, ContentLength: 0}, nil
			}, quiet)
			if err != nil || res.StatusCode != 401 {
				t.Fatal(err)
			}
			for i := range c.want {
				c.want[i] = strings.NewReplacer("G1", "generation-1-of-it", "G2", "generation-2-of-it").Replace(c.want[i])
			}
			if !slices.Equal(seen, c.want) {
				t.Errorf("%q, want %q", seen, c.want)
			}
			if closed != len(c.want)-1 {
				t.Errorf("%d answers were closed", closed)
			}
		})
	}
}

type closing struct{ n *int }

func (c closing) Read([]byte) (int, error) { return 0, io.EOF }
func (c closing) Close() error             { *c.n++; return nil }

// Many requests at once, with a secret that changes: each sends one of its
// values whole, and each value is looked for from then on.
func TestAtOnce(t *testing.T) {
	b := newBroker(t, oneSecret, bearer("api.test"))
	b.creds[0].value = &fakeKeeper{values: []secret.Value{secret.New([]byte("generation-1-of-it"))}}
	var n atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				r := request("GET", "api.test", "/x")
				_, err := b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
					value := strings.TrimPrefix(out.Header["Authorization"][0], "Bearer ")
					if !strings.HasPrefix(value, "generation-") || !strings.HasSuffix(value, "-of-it") || b.Mask("a "+value) != "a [credential]" {
						t.Errorf("%q goes out", value)
					}
					status := 204
					if n.Add(1)%20 == 0 {
						status = 401
					}
					return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{}}, nil
				}, quiet)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// Hosts below a wildcard have what is bound to it, and to those above it.
func TestSites(t *testing.T) {
	s := sites{exact: map[string]*site{}, below: map[string]*site{}}
	for _, host := range []string{"*.cloud.test", "*.eu.cloud.test", "a.eu.cloud.test", "b.test"} {
		s.bind(host, binding{cred: &credential{entry: Entry{ID: host}}, port: 443})
	}
	s.settle(nil)
	for host, want := range map[string]string{
		"x.cloud.test": "*.cloud.test", "y.x.cloud.test": "*.cloud.test", "x.eu.cloud.test": "*.eu.cloud.test *.cloud.test",
		"a.eu.cloud.test": "a.eu.cloud.test *.eu.cloud.test *.cloud.test", "cloud.test": "", "b.test": "b.test", "a.b.test": "",
	} {
		var got []string
		if x := s.host(host); x != nil {
			for _, b := range x.bindings {
				got = append(got, b.cred.entry.ID)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", host, got, want)
		}
	}
}
