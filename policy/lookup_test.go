package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egressd/egressd/policy"
)

// put writes files below dir; a name that ends in / is a folder.
func put(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("audit: {keep: 3}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The lookup goes from the working folder up to the nearest repository, never
// further, and outside of one no further than the working folder.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  string
		found bool
	}{
		{"nothing", []string{"repo/a/b/"}, "", false},
		{"here", []string{"repo/a/b/egressd.yaml", "repo/a/b/.egressd/config.yaml"}, "repo/a/b/egressd.yaml", true},
		{"hidden", []string{"repo/a/b/.egressd/config.yaml", "conf/egressd.yaml"}, "repo/a/b/.egressd/config.yaml", true},
		{"above, in a repository", []string{"repo/.git/", "repo/a/b/", "repo/egressd.yaml", "egressd.yaml"}, "repo/egressd.yaml", true},
		{"nearer wins", []string{"repo/.git/", "repo/egressd.yaml", "repo/a/.egressd/config.yaml", "repo/a/b/"}, "repo/a/.egressd/config.yaml", true},
		{"a .git that is a file", []string{"repo/.git", "repo/a/b/", "repo/egressd.yaml"}, "repo/egressd.yaml", true},
		{"above the repository", []string{"repo/a/.git/", "repo/a/b/", "repo/egressd.yaml"}, "", false},
		{"above, outside of a repository", []string{"repo/a/b/", "repo/egressd.yaml"}, "", false},
		{"the user's own", []string{"repo/a/b/", "conf/egressd.yaml"}, "conf/egressd.yaml", false},
		{"a folder of that name", []string{"repo/a/b/egressd.yaml/", "conf/egressd.yaml"}, "conf/egressd.yaml", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, c.files...)
			path, found := policy.Lookup{Cwd: filepath.Join(dir, "repo/a/b"), Config: filepath.Join(dir, "conf"), UID: os.Getuid()}.Find()
			if rel := strings.TrimPrefix(path, dir+"/"); rel != c.want || found != c.found {
				t.Errorf("found %q %v, want %q %v", rel, found, c.want, c.found)
			}
		})
	}
}

// A file of another user is not taken, nor a link of another user's to ours.
func TestFindOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: only a made-up uid is looked at")
	}
	dir := t.TempDir()
	put(t, dir, "egressd.yaml")
	l := policy.Lookup{Cwd: dir, UID: 4711}
	owned := os.Getuid() == 0 // root's files are taken
	if path, _ := l.Find(); (path != "") != owned {
		t.Errorf("found %q", path)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(filepath.Join(dir, "egressd.yaml"), 4712, 4712); err != nil {
			t.Fatal(err)
		}
		if path, _ := l.Find(); path != "" {
			t.Errorf("found %q of another user", path)
		}
		if over := l.PassedOver(); len(over) != 1 || over[0] != filepath.Join(dir, "egressd.yaml") {
			t.Errorf("passed over %q", over)
		}
		if err := os.Rename(filepath.Join(dir, "egressd.yaml"), filepath.Join(dir, "real")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("real", filepath.Join(dir, "egressd.yaml")); err != nil {
			t.Fatal(err)
		}
		if path, _ := l.Find(); path != "" {
			t.Errorf("found %q, a link to a file of another user", path)
		}
	}
}

// Every place that a later lookup would find something at is named.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "r/.git/", "r/a/")
	got := strings.ReplaceAll(strings.Join(policy.Lookup{Cwd: filepath.Join(dir, "r/a")}.Places(), " "), dir, "")
	if got != "/r/a/egressd.yaml /r/a/.egressd /r/egressd.yaml /r/.egressd" {
		t.Error(got)
	}
}

// What a .git hides from the lookup is told of, so that nobody who makes one is
// rid of the policy above.
func TestAbove(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"nothing", []string{"repo/a/b/.git/"}, ""},
		{"behind a .git in cwd", []string{"repo/.git/", "repo/a/b/.git/", "repo/egressd.yaml"}, "repo/egressd.yaml"},
		{"behind a .git that is a file", []string{"repo/.git/", "repo/a/.git", "repo/a/b/", "repo/egressd.yaml"}, "repo/egressd.yaml"},
		{"behind two", []string{"repo/.git/", "repo/a/.git/", "repo/a/b/.git/", "repo/egressd.yaml"}, "repo/egressd.yaml"},
		{"a repository of its own below a policy of none", []string{"repo/a/b/.git/", "repo/egressd.yaml"}, ""},
		{"nearest first", []string{"repo/.git/", "repo/a/b/.git/", "repo/a/.egressd/config.yaml", "repo/egressd.yaml"}, "repo/a/.egressd/config.yaml repo/egressd.yaml"},
		{"what Find meets is not above", []string{"repo/.git/", "repo/a/b/", "repo/egressd.yaml"}, ""},
		{"above, outside of a repository", []string{"repo/a/b/", "repo/egressd.yaml"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, c.files...)
			var got []string
			for _, path := range (policy.Lookup{Cwd: filepath.Join(dir, "repo/a/b"), UID: os.Getuid()}).Above() {
				if rel, ok := strings.CutPrefix(path, dir+"/"); ok {
					got = append(got, rel)
				}
			}
			if list := strings.Join(got, " "); list != c.want {
				t.Errorf("above are %q, want %q", list, c.want)
			}
		})
	}
}
