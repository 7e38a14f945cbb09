package rules_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/egressd/egressd/rules"
)

func TestExplain(t *testing.T) {
	set := compileAny(t, []any{
		"GET a.test/projects/*", "!* a.test/keys/**", mapping{"rule": "GET b.test/**", "query": mapping{"p": "web-*"}, "note": "builds"},
		mapping{"rule": "GET c.test/**", "until": "2026-01-01T00:00:00Z"}, "CONNECT db.test:22",
		mapping{"rule": "POST up.test/**", "max_request_bytes": 5},
	})
	for _, c := range []struct {
		method, url, reason, hint, nearest, differs string
		length                                      int64
		readings                                    []string
	}{
		{method: "GET", url: "https://a.test/projects/x", reason: "rule", readings: []string{"/projects/x"}},
		{method: "GET", url: "https://a.test/projects/a%2Fb", reason: "path_not_allowed", hint: "GET a.test/projects/a%2Fb",
			nearest: "GET a.test/projects/*", differs: "write **", readings: []string{"/projects/a%2Fb", "/projects/a/b"}},
		{method: "GET", url: "https://a.test/other", reason: "path_not_allowed", hint: "GET a.test/other", nearest: "GET a.test/projects/*", differs: "another path", readings: []string{"/other"}},
		{method: "PUT", url: "https://a.test:8443/other", reason: "port_not_allowed", hint: "PUT a.test:8443/other", nearest: "GET a.test/projects/*", differs: "port", readings: []string{"/other"}},
		{method: "PURGE", url: "http://z.test/*?x", reason: "no_rule", hint: "* z.test/*", differs: "no allow rule", readings: []string{"/*"}},
		{method: "GET", url: "https://z.test/a[1]\\b", reason: "no_rule", hint: "GET z.test/**", differs: "no allow rule", readings: []string{`/a[1]\b`, "/a[1]/b"}},
		{method: "GET", url: "https://z.test/%7Ea%20b", reason: "no_rule", hint: "GET z.test/~a%20b", differs: "no allow rule", readings: []string{"/~a%20b", "/~a b"}},
		{method: "GET", url: "https://a.test/keys/x", reason: "deny_rule", hint: "!* a.test/keys/**: denies it, whatever allows it", differs: "denies", readings: []string{"/keys/x"}},
		{method: "GET", url: "https://b.test/x?p=api", reason: "query_not_allowed", hint: "GET b.test/**: the query must hold, each once, p=web-*", nearest: "GET b.test/**", differs: "p=web-*", readings: []string{"/x"}},
		{method: "GET", url: "https://c.test/x", reason: "expired", hint: "GET c.test/**: ended 2026-01-01T00:00:00Z", nearest: "GET c.test/**", differs: "ended", readings: []string{"/x"}},
		{method: "POST", url: "https://up.test/x", length: 6, reason: "body_too_large", hint: "POST up.test/**: the body has 5 bytes at most", differs: "5 bytes", readings: []string{"/x"}},
		{method: "GET", url: "https://a.test/a/%2e%2e/b", reason: "ambiguous_path", differs: "dot segment"},
		{method: "GET", url: "https://a.test/%2525252e", reason: "ambiguous_path", differs: "three rounds"},
		{method: "GET", url: "https://a.test/%c0%af", reason: "ambiguous_path", differs: "over-long"},
		{method: "GET", url: "https://a.test/%c2%85", reason: "ambiguous_path", differs: "control"},
		{method: "GET", url: "https://a%2etest/", reason: "bad_host", differs: "no one meaning"},
		{method: "CONNECT", url: "https://db.test:23/", reason: "port_not_allowed", hint: "CONNECT db.test:23", nearest: "CONNECT db.test:22", differs: "port"},
	} {
		r := rules.Request{Method: c.method, At: someday, Length: c.length}
		r.Scheme, r.Host, r.Port, r.Target = split(t, c.url)
		e := set.Explain(r)
		nearest := ""
		if e.Nearest != nil {
			nearest = e.Nearest.String()
		}
		if e.Reason != c.reason || e.Hint != c.hint || nearest != c.nearest || !strings.Contains(e.Differs, c.differs) || !reflect.DeepEqual(e.Readings, c.readings) {
			t.Errorf("%s %s: %+v, want %+v", c.method, c.url, e, c)
		}
		if d := set.Decide(r); d != e.Decision {
			t.Errorf("%s %s: Decide says %+v, Explain %+v", c.method, c.url, d, e.Decision)
		}
	}
}

func TestSuggestions(t *testing.T) {
	for _, c := range []struct {
		rule, kind, text string
		offset           int
		suggest          string
	}{
		{"  GTE a.test/x", "unknown_method", "GTE", 2, "GET a.test/x"},
		{"a.test", "unknown_method", "a.test", 0, "GET a.test"},
		{" https://a.test:8443/x,y ", "unknown_method", "https://a.test:8443/x", 1, "GET https://a.test:8443/x,y"},
		{"!a.test/x", "unknown_method", "a.test/x", 1, "!* a.test/x"},
		{"a..test", "unknown_method", "a..test", 0, ""},
		{"FETCH", "unknown_method", "FETCH", 0, ""},
		{"a.test b.test", "unknown_method", "a.test", 0, ""},
		{"GET", "missing_target", "GET", 3, ""},
		{"GET a.test/x?y=1", "bad_path_char", "?", 12, "GET a.test/x"},
		{"GET a.test/a[1]", "bad_path_char", "[", 12, "GET a.test/a%5B1%5D"},
		{"GET a.test/caf\u00e9", "bad_path_char", "\xc3", 14, "GET a.test/caf%C3%A9"},
		{"GET a.test/100%", "bad_escape", "%", 14, "GET a.test/100%25"},
		{"GET .a.test/x", "bad_host", ".a.test", 4, "GET *.a.test/x"},
		{"GET *a.test/x", "host_wildcard", "*a.test", 4, "GET *.a.test/x"},
		{"GET wss://a.test/x", "bad_scheme", "wss://", 4, "GET https://a.test/x"},
		{"CONNECT https://a.test:22", "bad_scheme", "https://", 8, "CONNECT a.test:22"},
		{"CONNECT a.test:22/x", "connect_path", "/x", 17, "CONNECT a.test:22"},
		{"GET 2001:db8::1/x", "bad_host", "2001:db8::1", 4, "GET [2001:db8::1]/x"},
		{"GET bob@a.test/x", "bad_host", "bob@a.test", 4, "GET a.test/x"},
		{"GET a.test:0/x", "bad_port", "0", 11, ""},
		{"!GET http://a.test:99999", "bad_port", "99999", 19, ""},
		{"GET a.test/x **", "extra_text", "**", 12, ""},
		{"GET a.test/a/x**", "glued_stars", "x**", 13, ""},
		{"\u017fEARCH a.test/x", "unknown_method", "\u017fEARCH", 0, ""},
	} {
		_, err := rules.Parse(c.rule)
		e, ok := err.(*rules.ParseError)
		if !ok || e.Kind != c.kind || e.Text != c.text || e.Offset != c.offset || e.Suggest != c.suggest {
			t.Errorf("%q: %#v, want %+v", c.rule, e, c)
			continue
		}
		if strings.HasSuffix(e.Kind, "_method") && !strings.Contains(e.Error(), "a rule is METHOD HOST/PATH") {
			t.Errorf("%q: %q does not say what a rule is", c.rule, e)
		}
		if !strings.HasPrefix(e.Error(), e.Kind+": ") {
			t.Errorf("%q: error reads %q", c.rule, e)
		}
	}
}

// The rules of a policy: the one that fits decides, and a deny rule beats it.
func ExampleSet_Decide() {
	var list []rules.Rule
	for _, text := range []string{"GET api.github.com/repos/myorg/**", "!* api.github.com/repos/*/actions/secrets/**"} {
		r, err := rules.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		list = append(list, r)
	}
	set := rules.New(list)
	for _, target := range []string{"/repos/myorg/site", "/repos/myorg/actions/%73ecrets/KEY", "/user"} {
		d := set.Decide(rules.Request{Method: "GET", Scheme: "https", Host: "api.github.com", Target: target})
		fmt.Printf("%s %s %q\n", d.Verdict, d.Reason, d.Hint)
	}
	// Output:
	// allow rule ""
	// deny deny_rule "!* api.github.com/repos/*/actions/secrets/**: denies it, whatever allows it"
	// deny path_not_allowed "GET api.github.com/user"
}
