package scan

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const tok = "tok-live-7Qm4x9Zr2Lp8"

// What is to be found, and what takes its place: the cases of CREDENTIALS.md
// at the level of one text, and more of each spelling.
func TestText(t *testing.T) {
	long := "sk-long-Qw7Er5Ty3Ui1Op9As8Df6Gh4Jk2Lz0Xc9Vb7Nm5Qa3Ws1Ed8Rf6T"
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct{ why, secret, in, out string }{
		{"the secret", tok, "a " + tok + " b", "a [redacted] b"},
		{"nothing", tok, "\x00\x01plain \xff text", "\x00\x01plain \xff text"},
		{"fifteen bytes of it", tok, "tok-live-7Qm4x9", "tok-live-7Qm4x9"},
		{"all but the first byte", tok, "x ok-live-7Qm4x9Zr2Lp8 y", "x [redacted] y"},
		{"all but the last byte", tok, "tok-live-7Qm4x9Zr2Lp", "[redacted]"},
		{"sixteen of its middle", tok, "[-live-7Qm4x9Zr2L]", "[[redacted]]"},
		{"fifteen of its middle", tok, "[-live-7Qm4x9Zr2]", "[-live-7Qm4x9Zr2]"},
		{"two thirds of a long one", long, "k=sk-long-Qw7Er5Ty3Ui1Op9As8Df6Gh4Jk2Lz0Xc\n", "k=[redacted]\n"},
		{"a byte less", long, "k=sk-long-Qw7Er5Ty3Ui1Op9As8Df6Gh4Jk2Lz0X\n", "k=sk-long-Qw7Er5Ty3Ui1Op9As8Df6Gh4Jk2Lz0X\n"},
		{"sixteen of twenty-four", "abcdefghijklmnopqrstuvwx", "ijklmnopqrstuvwx", "[redacted]"},
		{"sixteen of twenty-five", "abcdefghijklmnopqrstuvwxy", "jklmnopqrstuvwxy", "jklmnopqrstuvwxy"},
		{"a short one whole", "k7Qm4x9Zr2Lp", "(k7Qm4x9Zr2Lp)", "([redacted])"},
		{"a short one in part", "k7Qm4x9Zr2Lp", "k7Qm4x9Zr2L", "k7Qm4x9Zr2L"},
		{"eight bytes in a word", "hunter22", "xhunter22x", "x[redacted]x"},
		{"seven bytes are not looked for", "hunter2", "hunter2", "hunter2"},
		{"eight bytes in base64", "hunter22", b64("u:hunter22"), "dT[redacted]=="},
		{"a blank inside", tok, "tok-live-7 Qm4x9Zr2Lp8", "tok-live-7 Qm4x9Zr2Lp8"},
		{"backwards", tok, "8pL2rZ9x4mQ7-evil-kot", "8pL2rZ9x4mQ7-evil-kot"},
		{"in capitals", tok, strings.ToUpper(tok), strings.ToUpper(tok)},
		{"finds that overlap", "ab3Zab3Zab3Zab3Zab3Zab3Z", "x ab3Zab3Zab3Zab3Zab3Zab3Zab3Z y", "x [redacted] y"},

		{"percent", "a+b/c=7Qm4x9Zr2Lp8", "t=a%2Bb%2fc%3D7Qm4x9Zr2Lp8&", "t=[redacted]&"},
		{"one percent that need not be", tok, "t=tok%2Dlive-7Qm4x9Zr2Lp8&", "t=[redacted]&"},
		{"plus for a space", "correct horse battery", "p=correct+horse%20battery&", "p=[redacted]&"},
		{"quoted-printable", "k=live/7Qm4x9Zr2Lp8", "t: k=3Dlive/7Qm4x9Zr2Lp8\r\n", "t: [redacted]\r\n"},
		{"a soft break", tok, "t: tok-live-7Qm=\r\n4x9Zr2Lp8\r\n", "t: [redacted]\r\n"},
		{"a soft break behind it", tok, tok + "=\r\nx", "[redacted]=\r\nx"},
		{"escapes of scripts", tok, `t='tok\x2dlive\x2D7Qm4x9Zr2Lp8';`, "t='[redacted]';"},
		{"escapes of JSON", `pa"ss\wo/rd-9Kd2x`, `{"t": "pa\"ss\\wo\/rd-9Kd2x"}`, `{"t": "[redacted]"}`},
		{"letters as escapes of JSON", tok, `"\u0074ok\u002dlive-7Qm4x9Zr2Lp8"`, `"[redacted]"`},
		{"a pair of surrogates", "key-\U0001F511-7Qm4x9Zr2", `"key-\uD83D\uDD11-7Qm4x9Zr2"`, `"[redacted]"`},
		{"a byte as \\u", "key-\xe9-7Qm4x9Zr2Lp8", `"key-\u00e9-7Qm4x9Zr2Lp8"`, `"[redacted]"`},
		{"a character as two", "key-é-7Qm4x9Zr2Lp8", `key-%c3%A9-7Qm4x9Zr2Lp8`, `[redacted]`},
		{"entities by name", "a&b<c-7Qm4x9Zr2Lp8", "<p>a&amp;b&lt;c-7Qm4x9Zr2Lp8</p>", "<p>[redacted]</p>"},
		{"entities by number", tok, "<b>tok&#45;live&#x2D;7Qm4x9Zr2Lp8</b>", "<b>[redacted]</b>"},
		{"entities without an end", tok, "<b>tok&#45live&#X00002d7Qm4x9Zr2Lp8</b>", "<b>[redacted]</b>"},
		{"an entity before a digit", "pass-word-7Qm4x9Z", "pass-word&#457Qm4x9Z", "[redacted]"},
		{"the longest names", "tick`bar|under_7Qm4", "tick&DiacriticalGrave;bar&VerticalLine;under&UnderBar;7Qm4", "[redacted]"},
		{"an entity of two letters", "fjord-7Qm4x9Zr2L", "&fjlig;ord-7Qm4x9Zr2L", "[redacted]"},
		{"an entity of Latin", "clé-7Qm4x9Zr2Lp8", "cl&eacute;-7Qm4x9Zr2Lp8", "[redacted]"},
		{"all mixed", tok, `%74\u006f=6B\x2d&#108;&#x69;&#118e-7Qm4x9Zr2Lp8.`, "[redacted]."},
		{"an escape of an escape", tok, "tok%252Dlive-7Qm4x9Zr2L%2570p8", "tok%252Dlive-7Qm4x9Zr2L%2570p8"},

		{"hex", tok, "h=746f6b2d6c6976652d37516d3478395a72324c7038;", "h=[redacted];"},
		{"hex in capitals", tok, "h=746F6B2D6C6976652D37516D3478395A72324C7038;", "h=[redacted];"},
		{"hex from the second digit of a byte", tok, "h=0746F6B2D6C6976652D37516D3478395A72324C70381;", "h=0[redacted]1;"},
		{"hex over lines", tok, "746f6b2d6c\n6976652d3\r\n7516d3478395a7\\n2324c7038", "[redacted]"},
		{"hex over an empty line", tok, "746f6b2d6c6976652d\n\n37516d3478395a72324c7038", "746f6b2d6c6976652d\n\n37516d3478395a72324c7038"},
		{"hex with escaped digits", tok, "746f6b2d6c6976652d375%316d3478395a\\u00372324c7038", "[redacted]"},
		{"hex with blanks", tok, "74 6f 6b 2d 6c 69 76 65 2d 37 51 6d 34 78 39 5a 72 32 4c 70 38", "74 6f 6b 2d 6c 69 76 65 2d 37 51 6d 34 78 39 5a 72 32 4c 70 38"},

		{"base64", tok, `{"b":"` + b64(tok) + `"}`, `{"b":"[redacted]"}`},
		{"base64 between other bytes", tok, `{"b":"` + b64("u:"+tok+"!!") + `"}`, `{"b":"dT[redacted]hIQ=="}`},
		{"base64 from any letter", tok, "xyz" + b64(tok), "xyz[redacted]"},
		{"base64 of git", tok, "Basic " + b64("x-access-token:"+tok), "Basic eC1hY2Nlc3MtdG9rZW46[redacted]"},
		{"base64 over lines", tok, "VGhlIG5pZ2h0dG9rLWxpdmUt\r\nN1FtNHg5WnIyTHA4ISE=\r\n", "VGhlIG5pZ2h0[redacted]ISE=\r\n"},
		{"base64 over lines of JSON", tok, `"dG9rLWxpdmUt\nN1FtNHg5WnIy\r\nTHA4"`, `"[redacted]"`},
		{"base64 over an empty line", tok, "dG9rLWxpdmUt\n\nN1FtNHg5WnIyTHA4", "dG9rLWxpdmUt\n\nN1FtNHg5WnIyTHA4"},
		{"base64 with escaped slashes", "k7?Qm?4x9Zr?Lp28aB1c?", `{"b":"azc\/UW0\/NHg5WnI\/THAyOGFCMWM\/"}`, `{"b":"[redacted]"}`},
		{"base64 in a URL", "k7?Qm?4x9Zr?Lp28aB1c>", "b=azc%2FUW0%2fNHg5WnI%2FTHAyOGFCMWM%2B&", "b=[redacted]&"},
		{"base64 of the other alphabet", "k7?Qm?4x9Zr?Lp28aB1c>", "azc_UW0_NHg5WnI_THAyOGFCMWM-", "[redacted]"},

		{"UTF-16, low byte first", tok, wide("a "+tok+" b", false), wide("a [redacted] b", false)},
		{"UTF-16, high byte first", tok, wide("a "+tok+" b", true), wide("a [redacted] b", true)},
		{"UTF-16 at an odd place is the other order's", tok, "x" + wide(tok, false), "xt" + wide("[redacted]", true) + "\x00"},

		{"behind a backslash", tok, `{"a":"\` + tok + `"}`, `{"a":"[redacted]"}`},
		{"behind two", tok, `{"a":"\\` + tok + `"}`, `{"a":"\\[redacted]"}`},
		{"an escape behind a backslash", tok, `{"a":"\\u0074ok-live-7Qm4x9Zr2Lp8"}`, `{"a":"[redacted]"}`},
		{"in the digits of an escape", "00e9-7Qm4x9Zr2Lp8aa", `{"a":"\u00e9-7Qm4x9Zr2Lp8aa"}`, `{"a":"[redacted]"}`},
		{"up to a backslash that is a quote's", `7Qm4x9Zr2Lp8vT0pW\w`, `{"a":"x 7Qm4x9Zr2Lp8vT0pW\" y"}`, `{"a":"x [redacted] y"}`},
	} {
		s := New([]Secret{{Value: []byte(c.secret), Replacement: "[redacted]", Entry: "e"}})
		in := []byte(c.in)
		out, entries := s.Text(in)
		if string(out) != c.out {
			t.Errorf("%s: %q became %q, want %q", c.why, c.in, out, c.out)
		}
		if found := c.in != c.out; found != slices.Equal(entries, []string{"e"}) || !found && &out[0] != &in[0] {
			t.Errorf("%s: entries %q", c.why, entries)
		}
		if string(in) != c.in {
			t.Errorf("%s: the input was changed", c.why)
		}
	}
}

func wide(s string, big bool) string { return string(spellUTF16([]byte(s), big)) }

// Of several secrets the replacement is that of the find that begins first, then
// the longest, then the first in the policy.
func TestTextOfSeveral(t *testing.T) {
	s := New([]Secret{
		{[]byte(tok), "[one]", "one"}, {[]byte(tok + "-extra-44"), "[two]", "two"},
		{[]byte("k7Qm4x9Zr2Lp"), "[three]", "three"}, {[]byte(tok), "[again]", "four"},
	})
	for in, want := range map[string]string{
		"saw " + tok + "-extra-44 once":    "saw [two] once",
		"saw " + tok + " once":             "saw [one] once",
		"saw " + tok[3:] + " once":         "saw [one] once",
		"(k7Qm4x9Zr2Lp) " + tok + "!":      "([three]) [one]!",
		"k7Qm4x9Zr2Lpk7Qm4x9Zr2Lp":         "[three][three]",
		tok + " " + tok[:16] + " " + "tok": "[one] [one] tok",
	} {
		if out, _ := s.Text([]byte(in)); string(out) != want {
			t.Errorf("%q became %q, want %q", in, out, want)
		}
	}
	if _, entries := s.Text([]byte(tok + " k7Qm4x9Zr2Lp " + tok)); !slices.Equal(entries, []string{"one", "three"}) {
		t.Errorf("entries %q", entries)
	}
}

// What encoders of the standard library write is found, in every alignment.
func TestEncoders(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	for round := range 200 {
		v := make([]byte, 16+rnd.IntN(60))
		for k := range v {
			v[k] = byte(' ' + rnd.IntN(95))
		}
		v[0], v[len(v)-1] = 'k', 'y'
		s := New([]Secret{{v, "", "e"}})
		front, back := strings.Repeat("~", round%5), strings.Repeat("~", round%4)
		whole := front + string(v) + back
		var qp bytes.Buffer
		w := quotedprintable.NewWriter(&qp)
		fmt.Fprint(w, whole)
		w.Close()
		quoted, _ := json.Marshal(whole)
		for name, text := range map[string]string{
			"raw": whole, "query": url.QueryEscape(whole), "path": url.PathEscape(whole), "json": string(quoted),
			"html": html.EscapeString(whole), "quoted-printable": qp.String(), "hex": hex.EncodeToString([]byte(whole)),
			"dump": fmt.Sprintf("%X", whole), "go": fmt.Sprintf("%+q", whole),
			"base64": base64.StdEncoding.EncodeToString([]byte(whole)), "base64url": base64.RawURLEncoding.EncodeToString([]byte(whole)),
			"utf16": wide(whole, round%2 == 0),
		} {
			out, _ := s.Text([]byte(text))
			if most := len(text) - len(v) + 8; len(out) > most {
				t.Errorf("%s: %q became %q", name, text, out)
			}
			if name == "json" && !json.Valid(out) {
				t.Errorf("no longer JSON: %s became %s", text, out)
			}
		}
	}
}

// JSON stays JSON whatever part of a secret stands in it, where it is no bare
// number and no quote of JSON's own is part of it.
func TestJSONStays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 3000 {
		const letters = `abn\\/ut0=%&;`
		v := make([]byte, 8+rnd.IntN(24))
		for k := range v {
			v[k] = letters[rnd.IntN(len(letters))]
		}
		s := New([]Secret{{v, "[redacted]", "e"}})
		lo := rnd.IntN(3)
		var text bytes.Buffer
		for _, c := range slices.Concat([]byte(letters)[:rnd.IntN(6)], v[lo:], []byte(`n"\tb`)[rnd.IntN(5):]) {
			q, _ := json.Marshal(string(c))
			if rnd.IntN(4) == 0 {
				q = fmt.Appendf(nil, `"\u%04x"`, c)
			}
			text.Write(q[1 : len(q)-1])
		}
		in := `{"a":"` + text.String() + `"}`
		if out, _ := s.Text([]byte(in)); !json.Valid(out) {
			t.Errorf("secret %q: %s became %s", v, in, out)
		}
	}
}

func TestOverwrite(t *testing.T) {
	s := New([]Secret{{[]byte(tok), "${ph}", "e"}})
	p := []byte(`{"t":"` + tok + `"}`)
	if entries := s.Overwrite(p); string(p) != `{"t":"*********************"}` || !slices.Equal(entries, []string{"e"}) {
		t.Errorf("%s %q", p, entries)
	}
	p = []byte("nothing to see")
	if entries := s.Overwrite(p); string(p) != "nothing to see" || entries != nil {
		t.Errorf("%s %q", p, entries)
	}
}

func TestRaw(t *testing.T) {
	s := New([]Secret{{[]byte(tok), "", "one"}, {[]byte("hunter22"), "", "two"}})
	for in, want := range map[string]string{
		"a" + tok + "b": "one", tok: "one", tok[1:]: "", "hunter22": "two", "p=hunter22&": "two",
		"xhunter22": "", "hunter223": "", "xhunter22 hunter22": "two", "-hunter22_": "two", "": "",
	} {
		if entry, found := s.Raw([]byte(in)); entry != want || found != (want != "") {
			t.Errorf("%q: %q %v", in, entry, found)
		}
	}
}

func TestNothingToFind(t *testing.T) {
	for _, s := range []*Set{nil, New(nil), New([]Secret{{Value: []byte("short")}})} {
		st := s.Stream(Text)
		if out, _ := s.Text([]byte("short text")); string(out) != "short text" || s.Hold() != 0 ||
			string(st.Close(st.Write(nil, []byte("x")))) != "x" || st.Held() != 0 || st.Entries() != nil || s.Overwrite(out) != nil {
			t.Error("something was found")
		}
		if _, found := s.Raw([]byte("short")); found {
			t.Error("something was found")
		}
	}
}
