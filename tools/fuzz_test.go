package tools

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

// What is read from JSON is what encoding/json reads of it too, and whoever is
// asked about a call reads the same.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"path":"a","content":"b"}`, `{"path":"a","path":"b"}`, `{"PATH":"a"}`, `{"path":null}`, `{"script":"x","argv":["a"],"timeout_ms":9,"allow_network":true}`, `{"pattern":"x","limit":3}`, `[]`, ``, `{"path":"\ud800"}`, `{"p\u0061th":"a"}`, `{"old_string":"a","new_string":"b","path":"c","replace_all":true}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range kinds {
			in, err := k.parse(json.RawMessage(text))
			if err != nil {
				if reasonOf(err) != "bad_request" || !utf8.ValidString(err.Error()) {
					t.Fatalf("%s: %q: %v", k.name, text, err)
				}
				continue
			}
			var plain, ours map[string]any
			_ = json.Unmarshal([]byte(text), &plain)
			written, err := json.Marshal(in)
			if err != nil || json.Unmarshal(written, &ours) != nil {
				t.Fatalf("%s: %q became %s: %v", k.name, text, written, err)
			}
			for name, v := range ours {
				a, _ := json.Marshal(v)
				b, _ := json.Marshal(plain[name])
				if empty := string(a) == `""`; !bytes.Equal(a, b) && !(empty && plain[name] == nil) {
					t.Fatalf("%s: %q: %s is %s here and %s there", k.name, text, name, a, b)
				}
			}
		}
	})
}

// plainly is the obvious matcher, by recursion.
func plainly(pattern, names []string) bool {
	switch {
	case len(pattern) == 0:
		return len(names) == 0
	case pattern[0] == "**":
		return plainly(pattern[1:], names) || len(names) > 0 && plainly(pattern, names[1:])
	case len(names) == 0:
		return false
	}
	ok, err := path.Match(pattern[0], names[0])
	return err == nil && ok && plainly(pattern[1:], names[1:])
}

func FuzzGlob(f *testing.F) {
	for _, seed := range []string{"**/a|x/a", "a/**/b/**/c|a/b/c", "{a,b}/*|b/c", "[!a]*|b", "**/**|a/b", `\{a|{a`, "a,{b,c}|a,b", "../*|x", "{a,b}{c,d}|ad", "*/*|a/b"} {
		pattern, name, _ := strings.Cut(seed, "|")
		f.Add(pattern, name)
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		start, rest := literal(text)
		if start+rest != text || strings.ContainsAny(start, "*?[{\\") || start != "" && !strings.HasSuffix(start, "/") {
			t.Fatalf("%q is %q and %q", text, start, rest)
		}
		p, err := compile(text)
		if err != nil || len(name) > 40 {
			return
		}
		names, want := strings.Split(name, "/"), false
		for _, c := range p.choices {
			stars := 0
			for _, n := range c {
				if n == "**" {
					stars++
				}
			}
			if stars > 4 {
				return
			}
			want = want || plainly(c, names)
		}
		if p.match(name) != want {
			t.Fatalf("%q on %q: %v", text, name, !want)
		}
		// What matches is found: no folder above it is passed by.
		for dir := path.Dir(name); want && dir != "." && dir != "/" && path.Clean(name) == name && name[0] != '/'; dir = path.Dir(dir) {
			if !p.below(dir) {
				t.Fatalf("%q matches %q and does not look into %q", text, name, dir)
			}
		}
	})
}

// An edit changes what was said and nothing else: put back, it is the old text.
func FuzzEdit(f *testing.F) {
	for _, seed := range [][3]string{{"a b c", "b", "X"}, {"aaa", "aa", "b"}, {"a\r\nb\r\n", "a\nb", "c\nd"}, {"é", "\xc3", "x"}, {"a\r\n", "\n", "\r\n"}, {"x", "x", "x"}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, text, from, to string) {
		if from == "" || from == to {
			return
		}
		got, n, err := replace([]byte(text), []byte(from), []byte(to), false)
		if err != nil {
			return
		}
		a, b := from, to
		if crlf([]byte(text)) {
			b = string(carriage([]byte(to)))
			if !strings.Contains(text, from) {
				a = string(carriage([]byte(from)))
			}
			if !crlf(got) && bytes.Contains(got, []byte("\n")) && !strings.Contains(strings.ReplaceAll(a, "\r\n", ""), "\n") && !strings.HasSuffix(a, "\r") && !strings.HasPrefix(a, "\n") {
				t.Fatalf("%q, %q, %q: %q mixes line ends", text, from, to, got)
			}
		}
		at := strings.Index(text, a)
		if n != 1 || at < 0 || string(got) != text[:at]+b+text[at+len(a):] || strings.Contains(text[at+1:], a) {
			t.Fatalf("%q, %q, %q: %q", text, from, to, got)
		}
		all, n, err := replace([]byte(text), []byte(from), []byte(to), true)
		if err != nil || n != 1 || !bytes.Equal(all, got) {
			t.Fatalf("all of it: %q %d %v", all, n, err)
		}
	})
}

// However a path, a pattern or an expression is written, nothing of what lies
// outside or is hidden comes back.
func FuzzSearch(f *testing.F) {
	b := newBench(f, nil)
	put(f, b.top+"/out/secret.go", "SENTINEL\n")
	put(f, b.top+"/w/.hidden/key", "SENTINEL\n")
	for _, seed := range [][2]string{{"*", "."}, {"**/*.go", "src/.."}, {"../**", ""}, {"{..,a}/*", "outdir"}, {".*", ".hidden"}, {"SENT", "../out"}, {"x|S.*", "loop/loop/.."}, {"[.][.]/*", "TOP/w"}, {"[.]hidden/*", ""}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, where string) {
		where = strings.ReplaceAll(where, "TOP", b.top)
		for name, args := range map[string]m{
			"grep": {"pattern": pattern, "path": where}, "glob": {"pattern": pattern, "path": where}, "file_read": {"path": where},
		} {
			raw, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			r, _ := b.Call(t.Context(), name, raw)
			if !utf8.ValidString(r.Text) || strings.Contains(r.Text, "SENTINEL") || strings.Contains(r.Text, "secret.go") && !strings.Contains(r.Text, "package") || strings.Contains(r.Text, ".hidden/key") {
				t.Fatalf("%s %s: %q", name, raw, r.Text)
			}
		}
		b.sink.records = nil
	})
}
