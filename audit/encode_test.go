package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// encodeLine is a whole line of r as c writes it, without its line feed.
func encodeLine(c Config, r *Record) []byte {
	if c.Session == "" {
		c.Session = "S1"
	}
	at := r.Time
	if at.IsZero() {
		at = time.Date(2026, 11, 30, 17, 2, 11, 0, time.UTC)
	}
	line, _ := frame(nil, at, 1, new(encoder).encode(&c, r, false), nil)
	return bytes.TrimSuffix(line, []byte("\n"))
}

// members returns the names of a line's members, in order.
func members(t *testing.T, line []byte) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	var names []string
	depth, name := 0, true
	for {
		tok, err := d.Token()
		if err != nil {
			return names
		}
		switch v := tok.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth++
			} else {
				depth--
			}
			name = depth == 1
		case string:
			if depth == 1 && name {
				names = append(names, v)
			}
			name = depth == 1 && !name
		default:
			name = depth == 1
		}
	}
}

// Which kind has which members, empty ones too.
func TestMembers(t *testing.T) {
	request := "v time seq session kind verdict reason rule hint method scheme host port path query_names status bytes_out bytes_in " +
		"duration_ms ttfb_ms upstream proto upstream_proto credential capture policy request_id prev"
	code := 3
	for _, tc := range []struct {
		r    Record
		want string
	}{
		{Record{Kind: KindRequest}, request},
		{Record{Kind: KindRequestOpen}, request},
		{Record{Kind: KindRequest, Tunnel: true}, strings.Replace(request, " prev", " tunnel prev", 1)},
		{Record{Kind: KindConnection}, "v time seq session kind port capture prev"},
		{Record{Kind: KindConnection, Verdict: "deny", Reason: "timeout", Host: "a.test", Method: "GET"}, "v time seq session kind verdict reason host port capture prev"},
		{Record{Kind: KindDNS, Host: "a.test", Qtype: "A"}, "v time seq session kind host qtype prev"},
		{Record{Kind: KindCredential, Credential: "c", RequestID: "r"}, "v time seq session kind credential request_id prev"},
		{Record{Kind: KindLeak, Credential: "c", Host: "h", Verdict: "deny", Reason: "credential_leak"}, "v time seq session kind verdict reason host credential prev"},
		{Record{Kind: KindReload}, "v time seq session kind policy prev"},
		{Record{Kind: KindSessionStart}, "v time seq session kind policy prev"},
		{Record{Kind: KindSessionEnd}, "v time seq session kind counts prev"},
		{Record{Kind: KindExec, Argv: []string{"ls"}}, "v time seq session kind argv isolator prev"},
		{Record{Kind: KindExec, Argv: []string{"ls"}, ExitCode: &code}, "v time seq session kind argv isolator exit_code prev"},
		{Record{Kind: KindFile, Path: "/a"}, "v time seq session kind path prev"},
		{Record{Kind: KindLeftBehind, Path: "/a"}, "v time seq session kind path prev"},
		{Record{Kind: KindRecovered, Path: "/a", Policy: "p"}, "v time seq session kind prev"},
	} {
		if got := strings.Join(members(t, encodeLine(Config{}, &tc.r)), " "); got != tc.want {
			t.Errorf("%s: members %s\nwant %s", tc.r.Kind, got, tc.want)
		}
	}
}

func TestStrings(t *testing.T) {
	for in, want := range map[string]string{
		"/plain path":        `"/plain path"`,
		"a\tb\"c\\":          `"a\tb\"c\\"`,
		"x\r\nFAKE: LINE":    `"x\r\nFAKE: LINE"`,
		"/%0d%0aFAKE":        `"/%0d%0aFAKE"`,
		"\x1b[2Jok\x7f\x00":  `"\u001b[2Jok\u007f\u0000"`,
		"a\u0085b\u009b":     `"a\u0085b\u009b"`,
		"a\u2028b\u2029":     `"a\u2028b\u2029"`,
		"\u202eevil\u2066":   `"\u202eevil\u2066"`,
		"\u200e\u061c\ufeff": `"\u200e\u061c\ufeff"`,
		"\U000e0041":         `"\udb40\udc41"`,
		"bücher 😀 <&>":       `"bücher 😀 <&>"`,
		"a\xffb\xc3":         "\"a\ufffdb\ufffd\"",
		"\ufffd":             "\"\ufffd\"",
	} {
		if got := string(appendString(nil, in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestQueryAndPathModes(t *testing.T) {
	mask := func(s string) string { return strings.ReplaceAll(s, "oa_cred_A", "[credential]") }
	for _, tc := range []struct {
		name   string
		c      Config
		r      Record
		has    []string
		hasNot []string
	}{
		{"names", Config{}, Record{Path: "/x", Query: "api_key=REALKEY&sig=abc&&flag"},
			[]string{`"path":"/x","query_names":["api_key","sig","flag"],"status"`}, []string{"REALKEY", "abc"}},
		{"none", Config{Query: QueryNone}, Record{Path: "/x", Query: "api_key=REALKEY"},
			[]string{`"query_names":[],"status"`}, []string{"api_key", "REALKEY"}},
		{"full", Config{Query: QueryFull, Mask: mask}, Record{Path: "/x", Query: "a=1=2&k=oa_cred_A&b"},
			[]string{`"query_names":["a","k","b"],"query_values":["1=2","[credential]",""]`}, []string{"oa_cred_A"}},
		{"query left in the path", Config{}, Record{Path: "/x?token=REALKEY"},
			[]string{`"path":"/x","query_names":["token"]`}, []string{"REALKEY"}},
		{"userinfo", Config{}, Record{Path: "http://user:REALKEY@a.test/p@q"},
			[]string{`"path":"http://a.test/p@q"`}, []string{"REALKEY", "user"}},
		{"userinfo of an authority", Config{}, Record{Path: "user:REALKEY@a.test:443"},
			[]string{`"path":"a.test:443"`}, []string{"REALKEY"}},
		{"masked", Config{Mask: mask}, Record{Host: "oa_cred_A.a.test", Path: "/oa_cred_A/b", Query: "oa_cred_A=1", Hint: "GET oa_cred_A.a.test/oa_cred_A/b"},
			[]string{`"hint":"GET [credential].a.test/[credential]/b"`, `"host":"[credential].a.test"`, `"path":"/[credential]/b","query_names":["[credential]"]`}, []string{"oa_cred_A"}},
		{"rule", Config{Path: PathRule}, Record{Path: "/SECRETPATH", Pattern: "/*", Hint: "GET a.test/SECRETPATH"},
			[]string{`"path":"/*"`, `"hint":""`}, []string{"SECRETPATH"}},
		{"rule, none decided", Config{Path: PathRule}, Record{Path: "/SECRETPATH" + strings.Repeat("x", 3000)},
			[]string{`"path":""`}, []string{"SECRETPATH", "cut"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.r.Kind = KindRequest
			line := string(encodeLine(tc.c, &tc.r))
			for _, s := range tc.has {
				if !strings.Contains(line, s) {
					t.Errorf("no %s in %s", s, line)
				}
			}
			for _, s := range tc.hasNot {
				if strings.Contains(line, s) {
					t.Errorf("%s in %s", s, line)
				}
			}
		})
	}
}

func TestCut(t *testing.T) {
	long := "/" + strings.Repeat("é", 2000)
	r, err := Parse(encodeLine(Config{}, &Record{Kind: KindRequest, Path: long}))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Path) != 2047 || !strings.HasPrefix(long, r.Path) {
		t.Errorf("path of %d bytes", len(r.Path)) // an é would not fit whole
	}
	if want := strings.TrimPrefix(SHA256([]byte(long)), "sha256:"); !r.Cut || r.PathSHA256 != want {
		t.Errorf("cut %v, path_sha256 %s, want %s", r.Cut, r.PathSHA256, want)
	}
	var names []string
	for i := range 65 {
		names = append(names, fmt.Sprintf("n%d=v", i))
	}
	for n, cut := range map[int]bool{64: false, 65: true} {
		r, err := Parse(encodeLine(Config{}, &Record{Kind: KindRequest, Path: "/", Query: strings.Join(names[:n], "&")}))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.QueryNames) != 64 || r.Cut != cut {
			t.Errorf("%d names: %d written, cut %v", n, len(r.QueryNames), r.Cut)
		}
	}
	r, err = Parse(encodeLine(Config{}, &Record{Kind: KindRequest, Query: strings.Repeat("n", 5000)}))
	if err != nil || !r.Cut || len(r.QueryNames[0]) != maxText {
		t.Errorf("a long name: %v, cut %v", err, r.Cut)
	}
}

// The worst record fits the room that is reserved once it is lean.
func TestLeanFits(t *testing.T) {
	bad := strings.Repeat("\x01", 70000)
	r := Record{
		Kind: KindRequest, Verdict: bad, Reason: bad, Credential: bad, RequestID: bad, Host: bad, Rule: bad, Hint: bad, Method: bad,
		Scheme: bad, Port: 65535, Path: bad, Query: bad, Status: 599, BytesOut: 1 << 62, BytesIn: 1 << 62, Duration: 1 << 62, TTFB: 1 << 62,
		Upstream: bad, Proto: bad, UpstreamProto: bad, Capture: bad, Policy: bad, Tunnel: true,
	}
	c := Config{Session: strings.Repeat("S", 64), Query: QueryFull}
	e := new(encoder)
	if n := len(e.encode(&c, &r, true)); n+headRoom > recordRoom {
		t.Errorf("lean record of %d bytes, room is %d", n, recordRoom)
	}
	if n := len(e.encode(&c, &r, false)); n+headRoom > maxLine {
		t.Errorf("record of %d bytes", n)
	}
	line, _ := frame(nil, time.Now(), 1<<63, nil, []byte(SHA256(nil)))
	if len(line) > headRoom {
		t.Errorf("frame of %d bytes, room is %d", len(line), headRoom)
	}
}

func TestMillis(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 400 * time.Microsecond: "0.4", 1234567 * time.Nanosecond: "1.234", time.Hour: "3600000",
		1010 * time.Microsecond: "1.01", 5 * time.Microsecond: "0.005", -time.Second: "0",
	} {
		e := encoder{}
		e.millis("m", d)
		if got := strings.TrimPrefix(string(e.buf), `,"m":`); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func repaired(s string) string { return string([]rune(s)) }

// Whatever the bytes, the line is one line of JSON that reads back as what was
// put in, repaired and cut.
func FuzzEncode(f *testing.F) {
	f.Add("GET", "a.test", "/a\x85\u2028", "q=1&\xff", 0, int64(12345))
	f.Add("\x1b[2J", "\u202e", strings.Repeat("x", 2100), "a&b&=", 1, int64(-1))
	f.Fuzz(func(t *testing.T, method, host, path, query string, mode int, n int64) {
		c := Config{Query: QueryMode(uint(mode) % 3)}
		r := Record{Kind: KindRequest, Method: method, Host: host, Path: path, Query: query, BytesIn: n, Duration: time.Duration(n)}
		line := encodeLine(c, &r)
		if !utf8.Valid(line) || !json.Valid(line) || bytes.ContainsAny(line, "\n\r\u0085\u2028\u2029\x00\x1b\x7f") {
			t.Fatalf("not one line of JSON: %q", line)
		}
		for _, r := range string(line) {
			if hidden(r) {
				t.Fatalf("%U in the line", r)
			}
		}
		got, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		same := func(what, got, in string) {
			in, _ = cutText(in, maxText)
			if got != repaired(in) {
				t.Errorf("%s: %q became %q", what, in, got)
			}
		}
		wantPath, wantQuery := splitPath(path, query)
		same("method", got.Method, method)
		same("host", got.Host, host)
		same("path", got.Path, wantPath)
		if c.Query == QueryNames {
			var names []string
			for pair := range strings.SplitSeq(wantQuery, "&") {
				if name, _, _ := strings.Cut(pair, "="); pair != "" && len(names) < maxNames {
					name, _ = cutText(name, maxText)
					names = append(names, repaired(name))
				}
			}
			if !slices.Equal(names, got.QueryNames) {
				t.Errorf("names %q, want %q", got.QueryNames, names)
			}
		}
		if got.BytesIn != n {
			t.Errorf("bytes_in %d, want %d", got.BytesIn, n)
		}
	})
}

// A record that was read and written again is the same.
func TestRoundTrip(t *testing.T) {
	code := -1
	for _, r := range []Record{
		*sampleRequest(),
		{Kind: KindDNS, Host: "a.test", Qtype: "AAAA", Verdict: "allow"},
		{Kind: KindExec, Argv: []string{"sh", "-c", "echo \x00"}, Isolator: "linux_bwrap", ExitCode: &code},
		{Kind: KindSessionEnd, Counts: Counts{KindRequest: {"allow": 2, "deny": 1}, KindDNS: {"": 3}}},
	} {
		first, err := Parse(encodeLine(Config{Query: QueryFull}, &r))
		if err != nil {
			t.Fatal(err)
		}
		second, err := Parse(encodeLine(Config{Query: QueryFull}, &first))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s:\n%+v\n%+v", r.Kind, first, second)
		}
	}
}
