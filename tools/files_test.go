package tools

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFileRead(t *testing.T) {
	b := newBench(t, nil)
	w := b.top + "/w/"
	put(t, w+"lines", "one\ntwo\nthree\n")
	put(t, w+"open", "one\ntwo")
	put(t, w+"empty", "")
	put(t, w+"crlf", "one\r\ntwo\r\n")
	put(t, w+"binary", "\x7fELF\x00\x01")
	put(t, w+"latin", "caf\xe9\n")
	put(t, w+"late", strings.Repeat("x\n", 9000)+"\x00\n")
	put(t, w+"bom", "\ufeffx\n")
	put(t, w+"long", strings.Repeat("é", 100_000)+"\nnext\n")
	put(t, w+"big", strings.Repeat(strings.Repeat("é", 50)+"\n", 5000))
	put(t, w+"exact", strings.Repeat("x", maxText-1)+"\n")
	if err := os.Truncate(w+"binary", 1<<40); err != nil { // a terabyte, mostly hole
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args m
		want string
	}{
		{m{"path": "lines"}, "one\ntwo\nthree\n"},
		{m{"path": "open"}, "one\ntwo"},
		{m{"path": "empty"}, ""},
		{m{"path": "crlf"}, "one\r\ntwo\r\n"},
		{m{"path": "bom"}, "\ufeffx\n"},
		{m{"path": w + "lines", "offset": 2}, "two\nthree\n"},
		{m{"path": "lines", "offset": 2, "limit": 1}, "two\n[there is more: 14 bytes in all; read on with offset 3]\n"},
		{m{"path": "lines", "limit": 3}, "one\ntwo\nthree\n"},
		{m{"path": "lines", "offset": 3, "limit": 9}, "three\n"},
		{m{"path": "open", "offset": 2}, "two"},
		{m{"path": "open", "limit": 1}, "one\n[there is more: 7 bytes in all; read on with offset 2]\n"},
		{m{"path": "latin"}, "caf�\n[not all of it is UTF-8: what is not shows as �]\n"},
		{m{"path": "late", "offset": 9001}, "\x00\n[it holds NUL characters]\n"},
		{m{"path": "abs.go"}, "package src/c.go\n"},
		{m{"path": "exact"}, strings.Repeat("x", maxText-1) + "\n"},
		{m{"path": "lines", "offset": nil, "limit": nil}, "one\ntwo\nthree\n"},
	} {
		r, err := b.do(t, "file_read", tc.args)
		if err != nil || r.Text != tc.want || r.Truncated != strings.Contains(tc.want, "there is more") {
			t.Errorf("%v: %q %v %v", tc.args, r.Text, r.Truncated, err)
		}
	}
	for _, tc := range []struct {
		args m
		want string
	}{
		{m{"path": "binary"}, "is binary (1099511627776 bytes), not text"},
		{m{"path": "lines", "offset": 4}, "has 3 lines, and no line 4"},
		{m{"path": "lines", "offset": 9}, "has 3 lines, and no line 9"},
		{m{"path": "open", "offset": 3}, "has 2 lines, and no line 3"},
		{m{"path": "open", "offset": 4}, "has 2 lines, and no line 4"},
		{m{"path": "empty", "offset": 2}, "has 0 lines, and no line 2"},
		{m{"path": "empty", "offset": 3}, "has 0 lines, and no line 3"},
		{m{"path": "none"}, "no such file"},
		{m{"path": "src"}, "a folder"},
		{m{"path": "../out/secret.go"}, "leaves cwd (" + b.top + "/w): sandbox.read_paths"},
		{m{"path": "out.go"}, "leaves cwd"},
		{m{"path": ".hidden/key"}, "hidden"},
		{m{"path": "/proc/self/environ"}, "leaves cwd"},
		{m{"path": "x\x00"}, "NUL"},
		{m{"path": ""}, "empty"},
		{m{"path": "lines", "offset": -1}, "count from 1"},
		{m{"path": "lines", "limit": -1}, "count from 1"},
		{m{}, "path is missing"},
		{m{"path": nil}, "path is missing"},
		{m{"path": 1}, "wrong type"},
	} {
		if r, err := b.do(t, "file_read", tc.args); err == nil || !strings.Contains(err.Error(), tc.want) || r.Text != "" {
			t.Errorf("%v: %q %v", tc.args, r.Text, err)
		}
	}
	r, err := b.do(t, "file_read", m{"path": "long"})
	if err != nil || !utf8.ValidString(r.Text) || !r.Truncated || !strings.HasSuffix(r.Text, "é\n[line 1 is longer than 100000 bytes; the next one is at offset 2]\n") {
		t.Errorf("%q %v", r.Text[max(0, len(r.Text)-100):], err)
	}
	if r, err := b.do(t, "file_read", m{"path": "long", "offset": 2}); err != nil || r.Text != "next\n" {
		t.Errorf("%q %v", r.Text, err)
	}
	// The pieces of a large file are the file.
	var all strings.Builder
	for offset := 1; ; {
		r, err := b.do(t, "file_read", m{"path": "big", "offset": offset})
		if err != nil || len(r.Text) > maxText+200 {
			t.Fatal(len(r.Text), err)
		}
		text := r.Text
		if r.Truncated {
			at := strings.LastIndex(text, "[cut at")
			if _, err := fmt.Sscanf(text[strings.LastIndex(text, "offset "):], "offset %d]", &offset); err != nil || at < 0 {
				t.Fatal(text[len(text)-100:])
			}
			text = text[:at]
		}
		all.WriteString(text)
		if !r.Truncated {
			break
		}
	}
	if want, _ := os.ReadFile(w + "big"); all.String() != string(want) {
		t.Errorf("the pieces have %d bytes, the file %d", all.Len(), len(want))
	}
	if err := syscall.Mkfifo(w+"fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := b.do(t, "file_read", m{"path": "fifo"}); err == nil || !strings.Contains(err.Error(), "a FIFO") || time.Since(begin) > 5*time.Second {
		t.Error(err)
	}
}

func TestFileWrite(t *testing.T) {
	b := newBench(t, nil)
	w := b.top + "/w/"
	if err := os.Chmod(w+"a.go", 0o750); err != nil {
		t.Fatal(err)
	}
	for path, lands := range map[string]string{"a.go": "a.go", "new/dir/f": "new/dir/f", "abs.go": "src/c.go", w + "b.txt": "b.txt"} {
		text := "text é\r\nof " + path
		r, err := b.do(t, "file_write", m{"path": path, "content": text})
		if got, _ := os.ReadFile(w + lands); err != nil || string(got) != text || r.Text != fmt.Sprintf("wrote %d bytes to %s\n", len(text), path) {
			t.Errorf("%s: %q %q %v", path, got, r.Text, err)
		}
	}
	if info, err := os.Stat(w + "a.go"); err != nil || info.Mode().Perm() != 0o750 {
		t.Error(info.Mode(), err)
	}
	if r, err := b.do(t, "file_write", m{"path": "odd\nname", "content": ""}); err != nil || r.Text != "wrote 0 bytes to \"odd\\nname\"\n" {
		t.Errorf("%q %v", r.Text, err)
	}
	for path, want := range map[string]string{"../out/new": "sandbox.write_paths", "out.go": "leaves cwd", "outdir/new": "leaves cwd", "ro/f": "read-only", ".hidden/key": "hidden", "src": "a folder", "x/": "directory"} {
		if _, err := b.do(t, "file_write", m{"path": path, "content": "bad"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, args := range []m{{"path": "x"}, {"content": "x"}, {"path": "x", "content": nil}, {"path": "x", "content": 1}, {"path": "x", "content": strings.Repeat("x", maxFile+1)}} {
		if _, err := b.do(t, "file_write", args); reasonOf(err) != "bad_request" {
			t.Error(err)
		}
	}
	if got, _ := os.ReadFile(b.top + "/out/secret.go"); string(got) != "package secret\n" {
		t.Errorf("%q", got)
	}
}

func TestFileEdit(t *testing.T) {
	b := newBench(t, nil)
	file := b.top + "/w/f"
	for _, tc := range []struct {
		text, from, to string
		all            bool
		want           string // "!" and part of an error, the file unchanged
	}{
		{"a b c", "b", "X", false, "a X c"},
		{"a b b", "b", "X", false, "!more than once (2 places)"},
		{"a b b", "b", "X", true, "a X X"},
		{"aaa", "aa", "X", false, "!more than once"},
		{"aaa", "aa", "X", true, "Xa"},
		{"a", "b", "X", false, "!not in it"},
		{"a", "b", "X", true, "!not in it"},
		{"", "b", "X", false, "!not in it"},
		{"abc", "abc", "", false, ""},
		{"a", "a", "$1 ${x} \\1 &", false, "$1 ${x} \\1 &"},
		{"one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2\n3", false, "1\r\n2\r\n3\r\nthree\r\n"},
		{"one\r\ntwo\r\n", "two", "2\n3", false, "one\r\n2\r\n3\r\n"},
		{"one\r\ntwo\r\n", "one\r\n", "1\r\n", false, "1\r\ntwo\r\n"},
		{"one\r\ntwo\n", "one\ntwo", "X", false, "!not in it"},
		{"one\ntwo\n", "one\r\ntwo", "X", false, "!not in it"},
		{"one\r\n", "one\n", "one\r\n", false, "!the new text is the old one"},
		{"caf\xe9 b", "b", "X", false, "caf\xe9 X"},
		{"é è", "é", "e", false, "e è"},
		{"\ufeffa", "a", "b", false, "\ufeffb"},
		{"a\x00b", "b", "X", false, "!binary"},
		{"a", "a", strings.Repeat("x", maxFile+1), false, "!more than"},
		{strings.Repeat("a", 1000), "a", strings.Repeat("x", 20_000), true, "!more than"},
	} {
		put(t, file, tc.text)
		r, err := b.do(t, "file_edit", m{"path": "f", "old_string": tc.from, "new_string": tc.to, "replace_all": tc.all})
		got, _ := os.ReadFile(file)
		if text, fails := strings.CutPrefix(tc.want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), text) || string(got) != tc.text {
				t.Errorf("%.40q, %.40q: %v, now %.40q", tc.text, tc.from, err, got)
			}
		} else if err != nil || string(got) != tc.want || !strings.HasPrefix(r.Text, "changed ") {
			t.Errorf("%q, %q: %q %v", tc.text, tc.from, got, err)
		}
	}
	for _, tc := range []struct {
		path, want string
	}{{"../out/secret.go", "leaves cwd"}, {"out.go", "leaves cwd"}, {"ro/f", "read-only"}, {"none", "no such file"}, {"src", "a folder"}, {".hidden/key", "hidden"}} {
		if _, err := b.do(t, "file_edit", m{"path": tc.path, "old_string": "package", "new_string": "bad"}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.path, err)
		}
	}
	for _, args := range []m{{"path": "f", "old_string": "", "new_string": "x"}, {"path": "f", "old_string": "x", "new_string": "x"}, {"path": "f", "old_string": "x"}, {"path": "f", "new_string": "x"}} {
		if _, err := b.do(t, "file_edit", args); reasonOf(err) != "bad_request" {
			t.Errorf("%v: %v", args, err)
		}
	}
	// Larger than can be edited.
	if err := os.Truncate(file, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := b.do(t, "file_edit", m{"path": "f", "old_string": "a", "new_string": "b"}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}
