package credbroker

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const live = mark + "Qb7-Qb7-Qb7-Qb7-Qb7-Qb7-Qb7-Qb7-Qb7-Qb7-x_9"

func testFinder() (*finder, *placeholder, *placeholder) {
	usual := &placeholder{text: live, id: "api"}
	shaped := &placeholder{text: "ghp_abcdefghijABCDEFGHIJ0123456789abcdef", id: "gh"}
	return newFinder([]*placeholder{usual, shaped}, []secretText{{realSecret, "api"}, {"k7Qm4x9Zr2Lp", "short"}, {"tiny", "tiny"}}), usual, shaped
}

// The grammar of placeholders, and of real secrets.
func TestFinder(t *testing.T) {
	f, usual, shaped := testFinder()
	for _, c := range []struct {
		text string
		want string // what is found: live, dead, secret, and of which entry
	}{
		{"nothing here, with credentials", ""},
		{live, "live api"},
		{"Bearer " + live, "live api"},
		{"(" + live + ")", "live api"},
		{live + "x", "dead api"},
		{"x" + live, "dead api"},
		{live + "-", "dead api"},
		{live + ".", "live api"},
		{live + " " + live, "live api, live api"},
		{strings.ToUpper(live), "dead "},
		{mark + "EXAMPLE", ""},
		{mark + strings.Repeat("a", 42), ""},
		{mark + strings.Repeat("a", 43), "dead "},
		{"OA_Cred_" + strings.Repeat("a", 200), "dead "},
		{mark + mark + strings.Repeat("a", 43), "dead "},
		{mark + strings.Repeat("a", 20) + "." + live, "live api"},
		{shaped.text, "live gh"},
		{shaped.text + "0", "dead gh"},
		{"_" + shaped.text, "dead gh"},
		{strings.ToUpper(shaped.text), ""},
		{shaped.text[:39], ""},
		{shaped.text + ";" + live, "live gh, live api"},
		{realSecret, "secret api"},
		{"x" + realSecret + "x", "secret api"},
		{"k7Qm4x9Zr2Lp", "secret short"},
		{"=k7Qm4x9Zr2Lp&", "secret short"},
		{"ak7Qm4x9Zr2Lp", ""},
		{"k7Qm4x9Zr2Lp0", ""},
		{"tiny", ""},
		{realSecret[1:], ""},
	} {
		var got []string
		f.look(c.text, false, func(x find) bool {
			what := "dead"
			switch {
			case x.secret:
				what = "secret"
			case x.placeholder == usual || x.placeholder == shaped:
				what = "live"
			}
			got = append(got, what+" "+x.id)
			return true
		})
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%q: %q, want %q", c.text, s, c.want)
		}
	}
	folded := 0
	f.look(strings.ToUpper(shaped.text), true, func(x find) bool { folded++; return x.placeholder == nil })
	if folded != 1 {
		t.Error("a shaped placeholder in upper case is not found where case is folded")
	}
}

// A find is found at every offset, behind and before any text.
func TestFinderOffsets(t *testing.T) {
	f, _, _ := testFinder()
	for _, needle := range []string{live, "ghp_abcdefghijABCDEFGHIJ0123456789abcdef", realSecret, "k7Qm4x9Zr2Lp"} {
		for before := range 40 {
			for after := range 5 {
				text := strings.Repeat(".", before) + needle + strings.Repeat("!", after)
				n := 0
				f.look(text, false, func(x find) bool {
					n++
					if text[x.start:x.end] != needle {
						t.Fatalf("%q: found %q", text, text[x.start:x.end])
					}
					return true
				})
				if n != 1 || f.clean(text) {
					t.Fatalf("%q: %d finds", text, n)
				}
			}
		}
	}
}

// A body is looked through the same in one piece and in any pieces.
func TestBodyScanPieces(t *testing.T) {
	f, _, _ := testFinder()
	for _, c := range []struct {
		body string
		form bool
		want bool
	}{
		{"log: " + live + "\n", false, true},
		{"a" + realSecret + "b", false, true},
		{"xk7Qm4x9Zr2Lpx", false, false},
		{"x k7Qm4x9Zr2Lp", false, true},
		{"k7Qm4x9Zr2Lpy", false, false},
		{"a=1&t=" + escapeAll(live), true, true},
		{"a=1&t=" + escapeAll(live), false, false},
		{"a=%6f" + live[1:], true, true},
		{"a=%6f" + live[1:], false, false},
		{"a=%2" + live, true, true},
		{strings.Repeat("abc ", 100), true, false},
		{"t=" + mark + "EXAMPLE&u=%", true, false},
	} {
		for piece := 1; piece <= len(c.body); piece++ {
			s := newBodyScan(f, c.form, false, quiet)
			var err error
			for p := range slices.Chunk([]byte(c.body), piece) {
				if e := s.feed(p, false); err == nil {
					err = e
				}
			}
			if e := s.feed(nil, true); err == nil {
				err = e
			}
			if (err != nil) != c.want {
				t.Fatalf("%q in pieces of %d: %v", c.body, piece, err)
			}
		}
	}
}

func escapeAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// A live placeholder is missed in no listed encoding of no place of a head.
func FuzzGuard(f *testing.F) {
	f.Add("a", "b", uint8(0), uint8(0), uint64(1))
	f.Add("/x/", "?y", uint8(1), uint8(3), uint64(2))
	f.Add("user:", "", uint8(2), uint8(1), uint64(3))
	f.Add("", "=", uint8(3), uint8(2), uint64(4))
	broker := newBroker(f, oneSecret, bearer("api.test"), Entry{
		ID: "gh", Type: HTTPSHeader, Header: "X-Gh", Source: &Source{Env: "TOK"}, Env: []string{"G"}, Shape: "ghp_{36}",
		Targets: []Target{{Host: "gh.test", Port: 443}},
	})
	f.Fuzz(func(t *testing.T, before, after string, where, rounds uint8, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		ph := broker.Placeholder([]string{"api", "gh"}[rng.IntN(2)], "")
		text := ph
		r := request("GET", "other.test", "/x")
		switch where % 6 {
		case 0: // a header
			r.Header["X-Any"] = []string{"fine", before + text + after}
		case 1, 2: // path and query
			if strings.ContainsAny(before+after, "%") {
				return
			}
			for range rounds % 4 {
				text = escapeSome(rng, text)
			}
			if where%6 == 1 {
				r.URL.Opaque = "/" + before + text + after
			} else {
				r.URL.RawQuery = before + text + after
			}
		case 3: // a login
			login := before + text + after
			code := []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}[rng.IntN(4)]
			r.Header["Authorization"] = []string{[]string{"Basic ", "basic  ", "BASIC\t"}[rng.IntN(3)] + code.EncodeToString([]byte(login))}
		case 4: // the name of a header
			r.Header["X-"+text] = []string{"1"}
		case 5: // the host
			r.Host = strings.ToLower(text) + ".evil.test"
			r.URL.Host = r.Host
		}
		x := &outgoing{Broker: broker, r: r, look: broker.finder(), note: quiet, host: r.URL.Host}
		x.path = rawPath(r.URL)
		x.inspect()
		if len(x.leaks) == 0 {
			t.Errorf("missed: %v %v", r.URL, r.Header)
		}
	})
}

// escapeSome escapes letters of s, those of its escapes too.
func escapeSome(rng *rand.Rand, s string) string {
	var b strings.Builder
	for i := range len(s) {
		if rng.IntN(3) == 0 {
			fmt.Fprintf(&b, []string{"%%%02X", "%%%02x"}[rng.IntN(2)], s[i])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// Where a placeholder is swapped the origin sees exactly the secret in its
// place, and else nothing goes out.
func FuzzSwap(f *testing.F) {
	f.Add("Bearer ", "", "tok-live-7Qm4x9Zr2Lp8", uint8(0))
	f.Add("Basic ", "", "p$1a$$z${1}", uint8(0))
	f.Add("user", "", "a:b c", uint8(1))
	f.Add("a=1&key=", "&b", "s p/a?c&e=+%", uint8(2))
	f.Fuzz(func(t *testing.T, before, after, value string, where uint8) {
		if len(value) < 4 || strings.ContainsAny(value+before+after, "\x00\r\n") || strings.TrimSpace(value) != value || strings.Contains(before+after, value) {
			return
		}
		e := bearer("api.test")
		if where%3 == 2 {
			e.Type, e.Param = HTTPSQuery, "key"
		}
		b := newBroker(t, map[string]string{"TOK": value}, e)
		ph := b.Placeholder("api", "")
		r := request("GET", "api.test", "/x")
		want := ""
		switch where % 3 {
		case 0:
			r.Header["Authorization"] = []string{before + ph + after}
			want = before + value + after
		case 1:
			r.Header["Authorization"] = []string{basic(before + ":" + ph + after)}
			want = basic(before + ":" + value + after)
		case 2:
			r.URL.RawQuery = before + "&key=" + ph + "&" + after
			want = before + "&key=" + escapeQuery(value) + "&" + after
		}
		_, err := b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
			got := out.URL.RawQuery
			if where%3 != 2 {
				got = out.Header["Authorization"][0]
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
			return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
		}, quiet)
		if reason := reasonOf(err); reason != "" && reason != "credential_leak" {
			t.Error(err)
		}
	})
}
