package remains

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[core]\n\thooksPath = a b # c\n", "core..hookspath=a b"},
		{"[Core] HooksPath=\"a;b\\\"c\" ; d", "core..hookspath=a;b\"c"},
		{"[includeIf \"gitdir:~/w\\\\x\"]\npath = ~/inc\n[include]path=x", "includeif.gitdir:~/w\\x.path=~/inc include..path=x"},
		{"[a.B]\nc\n[d \"E\"] f = 1\\\n  2\\t3\\n\n", "a.b.c=true d.E.f=1  2\t3\n"},
		{"\ufeff[a]\r\nb = c  \r\n d=\"  e  \"  \n", "a..b=c a..d=  e  "},
		{"garbage\n[a\nb = c\n[", "..garbage=true a..b=c"},
		{"", ""},
	} {
		var got []string
		for _, s := range settings(c.text) {
			got = append(got, s.section+"."+s.sub+"."+s.key+"="+s.value)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// What git reads of a file is among what is read here, and a reader that is not
// sure must not stop early.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{"[a]\nb=c\\\nd\n", "[a \"b\\\"\"]c = \"x;y\" ;z", "[a", "\\", "[a]b=\\", "=x", "\"\n[x]y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before := settings(text)
		after := settings(text + "\n\n[zz]\nyy = ww\n")
		if len(after) == 0 || len(after) < len(before) {
			t.Errorf("%q hides what comes behind it: %q, %q", text, before, after)
		}
	})
}

// Mentioned finds what git finds.
func TestMentioned(t *testing.T) {
	home := t.TempDir()
	tree := filepath.Join(home, "tree")
	git := filepath.Join(tree, ".git")
	for path, text := range map[string]string{
		"tree/.git/config":   "[core]\nhooksPath = hooks/git\nfsmonitor = ./t/watch.sh\n[include]\npath = ../inc\npath = ~/glob\n[remote \"o\"]\nurl = t/watch.sh\n",
		"tree/inc":           "[include]\npath = inc\npath = deep/inc\n[filter \"x\"]\nclean = \"sh 't/clean.sh' %f\"\n",
		"tree/deep/inc":      "[alias]\nx = !t/watch.sh --now\n",
		"glob":               "[core]\nattributesFile = /etc/attr\n",
		"user":               "[core]\nhooksPath = own\n",
		"tree/t/watch.sh":    "",
		"tree/t/clean.sh":    "",
		"tree/deep/t/x":      "",
		"tree/hooks/git/pre": "",
	} {
		put(t, filepath.Join(home, path), text)
	}
	var got []string
	for _, m := range Mentioned(git, []string{filepath.Join(home, "user"), filepath.Join(home, "none")}, home) {
		rel, err := filepath.Rel(home, m.Path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(rel, "..") {
			rel = m.Path
		}
		got = append(got, m.Key+"="+rel)
	}
	want := []string{
		"core.hookspath=tree/own", "core.hookspath=tree/hooks/git", "core.fsmonitor=tree/t/watch.sh", "include.path=tree/inc",
		"include.path=tree/deep/inc", "alias.x=tree/t/watch.sh", "filter.clean=tree/t/clean.sh", "include.path=glob", "core.attributesfile=/etc/attr",
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s is not among %q", w, got)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("%s is too much", g)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The indexes are git's own.
func TestGitlinks(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			t.Run(format+" "+version, func(t *testing.T) {
				dir := t.TempDir()
				run := func(args ...string) string {
					cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.test"}, args...)...)
					cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
					out, err := cmd.CombinedOutput()
					if err != nil {
						t.Fatalf("git %q: %v %s", args, err, out)
					}
					return strings.TrimSpace(string(out))
				}
				run("init", "-q", "--object-format="+format)
				run("commit", "-q", "--allow-empty", "-m", "x")
				head := run("rev-parse", "HEAD")
				for _, name := range []string{"a", "abc", "b/" + strings.Repeat("c", 200), "b/d", "later"} {
					put(t, filepath.Join(dir, name), "")
				}
				run("add", "a", "abc", "b")
				run("add", "-N", "later") // an entry with more flags
				run("update-index", "--add", "--cacheinfo", "160000,"+head+",abd/mod")
				run("update-index", "--add", "--cacheinfo", "160000,"+head+",z")
				run("update-index", "--index-version", version)
				text, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
				if err != nil {
					t.Fatal(err)
				}
				i := indexOf(dir)
				if !i.known || strings.Join(i.links, " ") != "abd/mod z" {
					t.Errorf("%q %v", i.links, i.known)
				}
				for cut := range len(text) - 200 { // nothing that is cut short is taken for whole
					if links, err := gitlinks(text[:cut], 20); err == nil && len(links) > 2 {
						t.Errorf("cut at %d: %q", cut, links)
					}
				}
				run("update-index", "--split-index")
				if i := indexOf(dir); i.known {
					t.Errorf("a split index: %q", i.links)
				}
			})
		}
	}
}

func FuzzGitlinks(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"+strings.Repeat("\x00", 80)), false)
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x02"+strings.Repeat("\x00", 62)+"\x80\x80\x00x\x00"), true)
	f.Fuzz(func(t *testing.T, index []byte, long bool) {
		sum := 20
		if long {
			sum = 32
		}
		links, err := gitlinks(index, sum)
		if err == nil && len(links) > len(index)/(42+sum) {
			t.Errorf("%d links in %d bytes", len(links), len(index))
		}
	})
}
