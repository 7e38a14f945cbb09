package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func TestGlob(t *testing.T) {
	b := newBench(t, nil)
	put(t, b.top+"/w/odd\nname.txt", "")
	put(t, b.top+"/w/[x].txt", "")
	for _, tc := range []struct {
		args m
		want string
	}{
		{m{"pattern": "*.go"}, "a.go abs.go link.go"},
		{m{"pattern": "**/*.go"}, "a.go abs.go link.go src/c.go src/deep/d.go"},
		{m{"pattern": "src/**"}, "src/c.go src/deep/ src/deep/d.go src/deep/e.txt"},
		{m{"pattern": "src/*"}, "src/c.go src/deep/"},
		{m{"pattern": "src/**/*.{go,txt}"}, "src/c.go src/deep/d.go src/deep/e.txt"},
		{m{"pattern": "{a,b}.*"}, "a.go b.txt"},
		{m{"pattern": "?.go"}, "a.go"},
		{m{"pattern": "[!a].txt"}, "b.txt"},
		{m{"pattern": `\[x\].txt`}, "[x].txt"},
		{m{"pattern": "odd*"}, `"odd\nname.txt"`},
		{m{"pattern": "a.go"}, "a.go"},
		{m{"pattern": "*.go", "path": "src"}, "src/c.go"},
		{m{"pattern": "deep/*.go", "path": "src"}, "src/deep/d.go"},
		{m{"pattern": "*.go", "path": b.top + "/w/src"}, "src/c.go"},
		{m{"pattern": b.top + "/w/src/*.go"}, "src/c.go"},
		{m{"pattern": "inside/*.go"}, "inside/c.go"},
		{m{"pattern": "src/../*.txt"}, "\"odd\\nname.txt\" [x].txt b.txt"},
		{m{"pattern": "src/"}, "src/"},
		{m{"pattern": "**/f"}, "ro/f"},
		{m{"pattern": ".*/*"}, ".github/ci.yml"},
		{m{"pattern": ".git/*"}, "no paths"},
		{m{"pattern": "node_modules/**"}, "no paths"},
		{m{"pattern": "**/i.js"}, "no paths"},
		{m{"pattern": "togit"}, "no paths"},
		{m{"pattern": "out*"}, "no paths"},
		{m{"pattern": "**/secret.go"}, "no paths"},
		{m{"pattern": "**/key"}, "no paths"},
		{m{"pattern": ".hid*"}, "no paths"},
		{m{"pattern": "none/*.go"}, "no paths"},
		{m{"pattern": "a.go/*"}, "no paths"},
		{m{"pattern": "*.go", "limit": 2}, "a.go abs.go [cut: there are more than these 2]"},
		{m{"pattern": "i.js", "path": "node_modules/m"}, "node_modules/m/i.js"},
	} {
		r, err := b.do(t, "glob", tc.args)
		got := strings.Join(strings.Split(strings.TrimSpace(r.Text), "\n"), " ")
		if tc.args["limit"] != nil { // which two is not said
			got = fmt.Sprint("a.go abs.go ", got[strings.Index(got, "["):])
		}
		if err != nil || got != tc.want || r.Truncated != (tc.args["limit"] != nil) {
			t.Errorf("%v: %s %v", tc.args, got, err)
		}
	}
	for _, tc := range []struct {
		args m
		want string
	}{
		{m{"pattern": "../*"}, "leaves cwd"}, {m{"pattern": "/etc/*"}, "leaves cwd"}, {m{"pattern": "*", "path": ".."}, "leaves cwd"}, {m{"pattern": "outdir/*"}, "leaves cwd"}, {m{"pattern": "/**"}, "leaves cwd"},
		{m{"pattern": ".hidden/*"}, "hidden"}, {m{"pattern": "*", "path": "none"}, "no such file"}, {m{"pattern": "x/*", "path": "none"}, "no such file"},
		{m{"pattern": "*/../../*"}, `".." cannot stand`}, {m{"pattern": ""}, "between 1"}, {m{"pattern": "[a"}, "no pattern"}, {m{"pattern": "{a"}, "braces"}, {m{"pattern": "{a}"}, "braces"}, {m{"pattern": "*}"}, "no {"},
		{m{"pattern": strings.Repeat("{a,b}", 10)}, "more than 64"}, {m{"pattern": strings.Repeat("*", 2000)}, "between 1"}, {m{"pattern": "*\x00"}, "NUL"}, {m{"pattern": "*", "limit": -1}, "limit"}, {m{"pattern": "*", "limit": 10001}, "limit"}, {m{}, "missing"},
	} {
		if r, err := b.do(t, "glob", tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %q %v", tc.args, r.Text, err)
		}
	}
}

func TestGrep(t *testing.T) {
	b := newBench(t, nil)
	w := b.top + "/w/"
	put(t, w+"crlf.txt", "first\r\nneedle\r\n")
	put(t, w+"binary", "needle\n\x00needle\n")
	put(t, w+"late", strings.Repeat("x\n", 9000)+"needle\n\x00\nneedle\n")
	put(t, w+"latin", "caf\xe9 needle\n")
	put(t, w+"open", "x\nneedle")
	put(t, w+"odd\nname", "needle\n")
	put(t, w+"long", strings.Repeat("é", 5000)+"needle"+strings.Repeat("é", 5000)+"\n")
	for _, tc := range []struct {
		args m
		want []string
	}{
		{m{"pattern": "^package src"}, []string{"src/c.go:1:package src/c.go", "src/deep/d.go:1:package src/deep/d.go", "src/deep/e.txt:1:package src/deep/e.txt"}},
		{m{"pattern": "package", "path": "a.go"}, []string{"a.go:1:package a.go"}},
		{m{"pattern": "package", "path": "link.go"}, []string{"link.go:1:package a.go"}},
		{m{"pattern": "PACKAGE", "ignore_case": true, "glob": "a.go"}, []string{"a.go:1:package a.go"}},
		{m{"pattern": "package", "glob": "link.*"}, []string{"link.go:1:package a.go"}},
		{m{"pattern": "package", "glob": "{link,a}.go"}, []string{"a.go:1:package a.go"}},
		{m{"pattern": "PACKAGE"}, []string{"no matches"}},
		{m{"pattern": "package", "glob": "*.go", "path": "src"}, []string{"src/c.go:1:package src/c.go", "src/deep/d.go:1:package src/deep/d.go"}},
		{m{"pattern": "package", "glob": "deep/*.go", "path": "src"}, []string{"src/deep/d.go:1:package src/deep/d.go"}},
		{m{"pattern": "package", "path": "inside", "glob": "c.go"}, []string{"inside/c.go:1:package src/c.go"}},
		{m{"pattern": "package", "path": w + "src/deep"}, []string{"src/deep/d.go:1:package src/deep/d.go", "src/deep/e.txt:1:package src/deep/e.txt"}},
		{m{"pattern": "secret"}, []string{"no matches"}},
		{m{"pattern": "key|config|i.js"}, []string{"no matches"}},
		{m{"pattern": "package", "path": "node_modules"}, []string{"node_modules/m/i.js:1:package node_modules/m/i.js"}},
		{m{"pattern": "needle$", "glob": "crlf.txt"}, []string{"crlf.txt:2:needle"}},
		{m{"pattern": "needle", "glob": "{binary,late,latin,open,odd*}"}, []string{"late:9001:needle", "latin:1:caf� needle", `"odd\nname":1:needle`, "open:2:needle"}},
		{m{"pattern": "^package .*go$", "limit": 1}, []string{"a.go:1:package a.go", "[cut: there are more than these 1]"}},
	} {
		r, err := b.do(t, "grep", tc.args)
		if got := strings.Split(strings.TrimSuffix(r.Text, "\n"), "\n"); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%v: %q %v", tc.args, got, err)
		}
	}
	for _, tc := range []struct {
		args m
		want string
	}{
		{m{"pattern": "x", "path": ".."}, "leaves cwd"}, {m{"pattern": "x", "path": "/etc/passwd"}, "leaves cwd"}, {m{"pattern": "x", "path": "out.go"}, "leaves cwd"}, {m{"pattern": "x", "path": ".hidden"}, "hidden"}, {m{"pattern": "x", "path": "none"}, "no such file"},
		{m{"pattern": "("}, "missing closing"}, {m{"pattern": "a)(?:b"}, "unexpected )"}, {m{"pattern": ""}, "between 1"}, {m{"pattern": strings.Repeat("x", 5000)}, "between 1"}, {m{"pattern": "x{1001}"}, "repeat"}, {m{"pattern": "x", "glob": "[a"}, "no pattern"}, {m{"pattern": "x", "limit": -2}, "limit"}, {m{}, "missing"},
	} {
		if r, err := b.do(t, "grep", tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %q %v", tc.args, r.Text, err)
		}
	}
	r, err := b.do(t, "grep", m{"pattern": "needle", "path": "long"})
	if err != nil || !strings.Contains(r.Text, "éneedleé") || !strings.HasPrefix(r.Text, "long:1:…é") || !strings.HasSuffix(r.Text, "é…\n") || len(r.Text) > shownLine+40 || strings.Contains(r.Text, "�") || !utf8.ValidString(r.Text) {
		t.Errorf("%q %v", r.Text, err)
	}
}

// What is large or never ends holds nobody up, and an answer has its bounds.
func TestSearchBounds(t *testing.T) {
	b := newBench(t, nil)
	w := b.top + "/w/"
	if err := os.WriteFile(w+"hole", []byte("needle\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w+"hole", 1<<40); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(w+"fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	put(t, w+"line", strings.Repeat("y", 3<<20)+"needle\nneedle\n")
	put(t, w+"many", strings.Repeat("match "+strings.Repeat("z", 300)+"\n", 20_000))
	for n := range 3000 {
		put(t, filepath.Join(w, "d", strings.Repeat("n", 100)+fmt.Sprint(n)), "")
	}
	begin := time.Now()
	if r, err := b.do(t, "grep", m{"pattern": "needle"}); err != nil || r.Text != "line:2:needle\n[1 lines were searched in their first 1048576 bytes only]\n" {
		t.Errorf("%q %v", r.Text, err)
	}
	if r, err := b.do(t, "grep", m{"pattern": "match", "limit": 10000}); err != nil || len(r.Text) > maxText+100 || !r.Truncated || !strings.Contains(r.Text, "[cut:") {
		t.Errorf("%d bytes, %v", len(r.Text), err)
	}
	if r, err := b.do(t, "glob", m{"pattern": "d/*", "limit": 10000}); err != nil || len(r.Text) > maxText+100 || !r.Truncated {
		t.Errorf("%d bytes, %v", len(r.Text), err)
	}
	if r, err := b.do(t, "grep", m{"pattern": "(a*)*(y|yy)*$x", "path": "line"}); err != nil || !strings.HasPrefix(r.Text, "no matches") {
		t.Errorf("%q %v", r.Text, err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"**", "a", true}, {"**", "a/b/c", true}, {"**/c", "c", true}, {"**/c", "a/b/c", true}, {"**/c", "a/b/cc", false}, {"a/**", "a", true}, {"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"a/**/b", "ab", false},
		{"*", "a/b", false}, {"a**", "abc", true}, {"a**", "a/b", false}, {"**/a/**/b", "x/a/y/a/z/b", true}, {"**/a/*/b", "a/a/x/b", true}, {"*/*", "a", false}, {"./a", "a", true}, {"a//b", "a/b", true},
		{"[a-c]", "b", true}, {"[!a-c]", "b", false}, {"[^a-c]", "d", true}, {`\*`, "*", true}, {`\*`, "a", false}, {"{a,b/**}/c", "b/x/c", true}, {"{a,{b,c}}", "c", true}, {"{,a}b", "b", true}, {"é?", "éé", true}, {"*.GO", "a.go", false},
	} {
		p, err := compile(tc.pattern)
		if err != nil || p.match(tc.name) != tc.want {
			t.Errorf("%s on %s: %v %v", tc.pattern, tc.name, !tc.want, err)
		}
	}
	// The worst that can be asked takes no time.
	p, err := compile(strings.Repeat("**/a*a*a*a*b/", 60) + "**")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	p.match(strings.Repeat(strings.Repeat("a", 200)+"/", 20) + "x")
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %v", took)
	}
}
