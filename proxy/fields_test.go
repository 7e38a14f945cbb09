package proxy

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"
)

// TestDisown: members of Proxy-Status that are named egressd are taken out,
// as a token or in quotes; the others stay as they were (point 72).
func TestDisown(t *testing.T) {
	for _, tt := range []struct {
		lines, want []string
	}{
		{[]string{"edge.test; received-status=200"}, []string{"edge.test; received-status=200"}},
		{[]string{`egressd; error=x; details="no_rule"`}, nil},
		{[]string{`"egressd"; error=x`}, nil},
		{[]string{`"eg\ressd"`}, nil},
		{[]string{`EgressD`}, nil},
		{[]string{`a; details="b, egressd", c`}, []string{`a; details="b, egressd", c`}},
		{[]string{`a, egressd;x="q\"w, z", b`}, []string{"a, b"}},
		{[]string{`egressd, a`, `b`, ` egressd `}, []string{"a", "b"}},
		{[]string{`egressdx, my-egressd`}, []string{`egressdx, my-egressd`}},
		{[]string{`egressd;x="open, a`}, nil},
	} {
		h := http.Header{"Proxy-Status": tt.lines, "Alt-Svc": {"h3"}}
		disown(h)
		if got := h["Proxy-Status"]; !reflect.DeepEqual([]string(got), tt.want) {
			t.Errorf("%q: %q, want %q", tt.lines, got, tt.want)
		}
		if _, ok := h["Alt-Svc"]; ok {
			t.Error("Alt-Svc is still there")
		}
	}
}

// TestWantsTrailers: trailers is found among other members and with parameters.
func TestWantsTrailers(t *testing.T) {
	for te, want := range map[string]bool{
		"trailers": true, "Trailers": true, "gzip, trailers": true, "trailers;q=0.5": true, "gzip;q=1 , trailers ;q=1": true,
		"gzip": false, "": false, "xtrailers": false, "trailers2": false,
	} {
		if got := wantsTrailers([]string{te}); got != want {
			t.Errorf("%q: %t", te, got)
		}
	}
}

// TestSplitAuthority: what is no host and port is refused, never guessed at.
func TestSplitAuthority(t *testing.T) {
	for _, tt := range []struct {
		in, host string
		port     int
		reason   string
	}{
		{"ok.test", "ok.test", -1, ""},
		{"ok.test:443", "ok.test", 443, ""},
		{"[::1]:80", "[::1]", 80, ""},
		{"[::1]", "[::1]", -1, ""},
		{"", "", 0, "bad_request"},
		{":80", "", 0, "bad_request"},
		{"ok.test:", "", 0, "bad_request"},
		{"ok.test:0", "", 0, "bad_request"},
		{"ok.test:65536", "", 0, "bad_request"},
		{"ok.test:+80", "", 0, "bad_request"},
		{"ok.test:80:80", "", 0, "bad_request"},
		{"::1", "", 0, "bad_request"},
		{"[::1", "", 0, "bad_host"},
		{"[::1]x", "", 0, "bad_host"},
		{"bob@ok.test", "", 0, "bad_host"},
		{"bob:pw@ok.test:80", "", 0, "bad_host"},
	} {
		host, port, err := splitAuthority(tt.in)
		reason := ""
		if err != nil {
			reason = refusalOf(err).reason
		}
		if host != tt.host || port != tt.port || reason != tt.reason {
			t.Errorf("%q: %q %d %q", tt.in, host, port, reason)
		}
	}
}

// TestSetURL: what goes out is what came in, or nothing goes out.
func TestSetURL(t *testing.T) {
	for _, tt := range []struct {
		path string
		ok   bool
	}{
		{"/", true}, {"/a?", true}, {"/a?b=%zz|", true}, {"/a|b^c`\\\"<>{}", true}, {"/caf\xe9", true}, {"/%7e%2F", true},
		{"//", true}, {"//x//y?q=1", true}, {"///a%2Fb", true}, {"//a|b", false}, {"//caf\xe9", false}, {"//%zz", false},
	} {
		f := &forwarding{host: authority{host: "ok.test", port: 443}, path: tt.path}
		ok := f.setURL("https")
		if ok != tt.ok || ok && f.url.RequestURI() != tt.path {
			t.Errorf("%q: %t, %q goes out", tt.path, ok, f.url.RequestURI())
		}
	}
}

// TestBypasses: no_proxy holds names, what is below them, addresses, prefixes.
func TestBypasses(t *testing.T) {
	p := &UpstreamProxy{URL: &url.URL{Scheme: "http", Host: "p.test"}, NoProxy: []string{"in.test", ".dot.test", "*.star.test", "192.0.2.7", "10.0.0.0/8", "UPPER.test"}}
	for host, want := range map[string]bool{
		"in.test": true, "a.in.test": true, "xin.test": false, "a.dot.test": true, "a.star.test": true,
		"192.0.2.7": true, "192.0.2.8": false, "10.1.2.3": true, "11.1.2.3": false, "upper.test": true, "out.test": false,
	} {
		if got := p.bypasses(host); got != want {
			t.Errorf("%s: %t", host, got)
		}
	}
	if all := (&UpstreamProxy{NoProxy: []string{"*"}}); !all.bypasses("any.test") {
		t.Error("* does not mean every host")
	}
}

// TestPattern: the path of the rule that decided is cut out of its text.
func TestPattern(t *testing.T) {
	for rule, want := range map[string]string{
		"": "", "GET ok.test/a/**": "/a/**", "GET https://ok.test/a": "/a", "* ok.test:8443/**": "/**", "CONNECT db.test:5432": "/**",
	} {
		if got := pattern(rule); got != want {
			t.Errorf("%q: %q", rule, got)
		}
	}
}

// TestAnswersAreClosed: every reason that can be answered has a status of the
// closed set, and those that have none have no answer.
func TestAnswersAreClosed(t *testing.T) {
	for _, reason := range []string{"revoked", "client_gone", "rule", "approved", "learned", "not_granted"} {
		if _, ok := answers[reason]; ok {
			t.Errorf("%s has an answer", reason)
		}
	}
	for reason, a := range answers {
		if verdictOf(reason) == "allow" || a.status < 400 || a.title == "" || a.detail == "" {
			t.Errorf("%s: %+v", reason, a)
		}
	}
}
