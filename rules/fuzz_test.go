package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/egressd/egressd/rules"
)

// Whatever parses prints as a text that parses as the same rule.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"GET api.example.com/repos/*/x/**", "!get,Post https://*.b\u00fccher.example:8443/%7Ea%2Fb", "CONNECT [2001:DB8::1]:22",
		"* *:*/a;v=1", "GET http://192.0.2.1/", "GET ap\u200di.test/x", "GET a.test/%25252e%25252e", "!* *.x./..;y", "GET a**b/x", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := rules.Parse(s)
		if err != nil {
			if e, ok := err.(*rules.ParseError); !ok || e.Kind == "" || e.Offset < 0 || e.Offset > len(s) {
				t.Errorf("error %#v without a kind or place", err)
			} else if e.Suggest != "" {
				if _, err := rules.Parse(e.Suggest); err != nil {
					t.Errorf("suggestion %q does not parse: %v", e.Suggest, err)
				}
			}
			return
		}
		again, err := rules.Parse(r.String())
		if err != nil || fmt.Sprintf("%#v", again) != fmt.Sprintf("%#v", r) {
			t.Errorf("%q prints as %q, which reads as %#v, %v; want %#v", s, r, again, err, r)
		}
		m, err := rules.ParseMapping(r.Mapping())
		if err != nil || m.String() != r.String() {
			t.Errorf("mapping of %q reads as %v, %v", s, m, err)
		}
		// What the parser makes, a set takes: a sound rule is never dropped.
		if !r.Deny && !r.Tunnel && r.Path == "/**" && !strings.Contains(r.Host, "*") && r.Methods[0] != "CONNECT" {
			d := rules.New([]rules.Rule{r}).Decide(requestFor(r))
			if d.Verdict != rules.Allow {
				t.Errorf("%q does not allow its own request: %+v", r, d)
			}
		}
	})
}

// requestFor is a request that a rule without wildcards in its host allows.
func requestFor(r rules.Rule) rules.Request {
	q := rules.Request{Method: r.Methods[0], Scheme: "https", Host: r.Host, Port: r.Port, Target: "/x", At: someday}
	if r.Scheme != "" {
		q.Scheme = r.Scheme
	}
	if q.Method == "*" {
		q.Method = "GET"
	}
	if strings.Contains(q.Host, ":") {
		q.Host = "[" + q.Host + "]"
	}
	if q.Port == rules.AnyPort {
		q.Port = 7
	}
	return q
}

// Whatever canonicalises is a fixed point, and what is judged is what is sent.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"API.test.", "[::ffff:1.2.3.4]", "127\u30020.0.1", "xn--a", "0x7f.1", "b\u00dcCHER.example", "a_b--c.d", "1.2.3.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := rules.CanonicalHost(s)
		if err != nil {
			return
		}
		again := name
		if strings.Contains(again, ":") {
			again = "[" + again + "]"
		}
		if twice, err := rules.CanonicalHost(again); err != nil || twice != name {
			t.Errorf("%q is %q, which is %q, %v", s, name, twice, err)
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") != "" || name == "" || len(name) > 253 {
			t.Errorf("%q is %q", s, name)
		}
		set := compileAny(t, []any{"GET *.test/**", "GET a.example/**", "!* b.test", "GET 1.2.3.4/x"})
		r := rules.Request{Method: "GET", Scheme: "https", Host: s, Target: "/x", At: someday}
		as := set.Decide(r)
		r.Host = again
		if d := set.Decide(r); d != as {
			t.Errorf("%q is judged %+v, and its canonical form %+v", s, as, d)
		}
	})
}

// fences are sets with deny rules; a re-spelling of a path they stop must never
// be allowed.
var fences = [][]any{
	{"GET a.test/**", "!* a.test/admin/**", "!* a.test/admin"},
	{"GET a.test/**", "!* a.test/**/secret/*"},
	{"GET a.test/pub/**"},
	{"GET a.test/pub/*", "GET a.test/pub/*/x"},
	{"* *.test/**", "!* */x/*.key"},
}

// Encoding a byte, doubling a slash, adding parameters or a dot, changing case:
// no such re-spelling of a denied path turns into an allowed one.
func FuzzRespell(f *testing.F) {
	f.Add("/admin/x", uint(1), byte(0), uint(2))
	f.Add("/a/secret/b", uint(3), byte(1), uint(0))
	f.Add("/x/y.key", uint(2), byte(4), uint(9))
	f.Fuzz(func(t *testing.T, path string, at uint, how byte, again uint) {
		for _, list := range fences[:2] {
			set := compileAny(t, list)
			ask := func(target string) rules.Decision {
				return set.Decide(rules.Request{Method: "GET", Scheme: "https", Host: "a.test", Target: target, At: someday})
			}
			before := ask(path)
			if before.Reason != "deny_rule" || strings.ContainsAny(path, "?%;\\") {
				continue
			}
			spelled := respell(respell(path, at, how), again, how/8)
			if after := ask(spelled); after.Verdict == rules.Allow {
				t.Errorf("%v stops %q and not %q", list, path, spelled)
			}
		}
		if how%8 == 4 || how%8 > 5 || strings.Contains(path, "//") || strings.ContainsAny(path, "?%;\\") {
			return // these make another path of it where no deny rule looks
		}
		for _, list := range fences[2:4] {
			set := compileAny(t, list)
			r := rules.Request{Method: "GET", Scheme: "https", Host: "a.test", Target: path, At: someday}
			if set.Decide(r).Reason != "path_not_allowed" {
				continue
			}
			r.Target = respell(path, at, how)
			if d := set.Decide(r); d.Verdict == rules.Allow {
				t.Errorf("%v does not allow %q, but %q", list, path, r.Target)
			}
		}
	})
}

// respell writes a path another way that some server takes for the same.
func respell(path string, at uint, how byte) string {
	if len(path) < 2 {
		return path
	}
	i := 1 + int(at%uint(len(path)-1))
	slash := strings.LastIndexByte(path[:i], '/')
	if slash < 1 { // the first slash stays: without it there is no path
		slash = 0
		if how%8 == 3 {
			return path
		}
	}
	switch how % 8 {
	case 0:
		return path[:i] + fmt.Sprintf("%%%02x", path[i]) + path[i+1:]
	case 1:
		return path[:i] + fmt.Sprintf("%%25%02X", path[i]) + path[i+1:]
	case 2:
		return path[:slash] + "/" + path[slash:]
	case 3:
		return path[:slash] + `\` + path[slash+1:]
	case 4:
		return path + "%3Fx"
	case 5:
		if end := strings.IndexByte(path[i:], '/'); end >= 0 {
			return path[:i+end] + ";v=1" + path[i+end:]
		}
		return path + ";v=1"
	case 6:
		return strings.ToUpper(path)
	}
	return path[:slash+1] + strings.TrimLeft(path[slash+1:], "/") + "%20."
}

// Nothing that a client sends makes a decision panic, take long, or come out
// without a verdict; Judge and Decide agree; a hint allows what it says.
func FuzzDecide(f *testing.F) {
	f.Add("GET", "a.test", "/pub/x?y=1", "X-Original-URL", "/admin")
	f.Add("delete", "A.TEST.", "/%2525\\;x/%c0%af", "X_Http_Method", "PUT, x")
	f.Add("POST", "[::1]", "/..;/x", "Forwarded", `for="a;b";host="a.test:443"`)
	f.Fuzz(func(t *testing.T, method, host, target, name, value string) {
		for _, list := range fences {
			set := compileAny(t, list)
			r := rules.Request{Method: method, Scheme: "https", Host: host, Port: 443, Target: target, At: someday,
				Header: map[string][]string{name: {value}}}
			d := set.Decide(r)
			if d.Reason == "" || d.Verdict != rules.Allow && d.Verdict != rules.Deny {
				t.Fatalf("%+v", d)
			}
			set.Explain(r)
			if method == "CONNECT" {
				continue
			}
			if _, _, _, err := set.Judge(someday, true, method, "https", host, 443, target, r.Header, 0); (err == nil) != (d.Verdict == rules.Allow) && !strings.Contains(host, ":") {
				t.Errorf("Judge says %v, Decide %+v", err, d)
			}
			r.Header = nil
			if d = set.Decide(r); d.Reason == "no_rule" || d.Reason == "path_not_allowed" {
				if h, err := rules.Parse(d.Hint); err != nil {
					t.Errorf("hint %q for %q: %v", d.Hint, target, err)
				} else if d := rules.New([]rules.Rule{h}).Decide(r); d.Verdict != rules.Allow {
					t.Errorf("hint %q does not allow %q %q: %s", h, method, target, d.Reason)
				}
			}
		}
	})
}
