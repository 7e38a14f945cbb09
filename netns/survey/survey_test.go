package survey_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/egressd/egressd/netns/survey"
)

// lay makes a tree: a name that ends in / is a folder, one with -> a link, one
// with = at its end a socket, any other a file.
func lay(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, n := range names {
		name, target, isLink := strings.Cut(n, "->")
		at := filepath.Join(root, strings.TrimRight(name, "/="))
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(target, at)
		case strings.HasSuffix(n, "/"):
			err = os.MkdirAll(at, 0o755)
		case strings.HasSuffix(n, "="):
			var l net.Listener
			if l, err = net.Listen("unix", at); err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
		default:
			err = os.WriteFile(at, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func walk(t *testing.T, c survey.Config) survey.Found {
	t.Helper()
	f, err := survey.Walk(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// below are paths as seen from a root.
func below(root string, paths []string) string {
	var out []string
	for _, p := range paths {
		out = append(out, strings.TrimPrefix(strings.TrimPrefix(p, root), "/"))
	}
	return strings.Join(out, " ")
}

func TestWalkFinds(t *testing.T) {
	tree := []string{
		".env", ".git/config", ".venv/.x", "a/.env", "a/.deep/.env", "a/b/.x->/etc", "a/b/.venv/y", "a/b/.venv/.z",
		"sub/.git/config", "sub/.git/objects/ab/.git/x", "sub/.git/modules/m/config", "wt/.git", "bare/HEAD", "bare/objects/", "s/d=", "d=",
		"lnk->a", "odd\nname/.e\nnv", "Makefile", "a/Makefile",
	}
	for _, tt := range []struct {
		name                              string
		config                            survey.Config
		write                             bool
		hidden, git, sockets, named, miss string // miss is not among the folders
	}{
		{name: "nothing to look for"},
		{name: "git folders of a writable root", write: true,
			git: ".git bare sub/.git wt/.git", sockets: "d s/d", miss: ".git sub/.git/objects/ab lnk"},
		{name: "dot names of a root to read", config: survey.Config{Recursive: true, AllowHidden: []string{".venv"}},
			hidden: "a/.deep a/.env a/b/.venv/.z a/b/.x odd\nname/.e\nnv sub/.git wt/.git .venv/.x", sockets: "d s/d", miss: "a/.deep sub/.git lnk"},
		{name: "all that is asked of a writable root", write: true,
			config: survey.Config{Recursive: true, AllowHidden: []string{".git"}, Names: []string{"Makefile"}},
			hidden: "a/.deep a/.env a/b/.venv a/b/.x odd\nname/.e\nnv", git: ".git bare sub/.git wt/.git", sockets: "d s/d", named: "Makefile a/Makefile",
			miss: "a/b/.venv"},
		{name: "sockets alone", config: survey.Config{Sockets: true}, sockets: "d s/d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := lay(t, tree...)
			tt.config.Roots = []survey.Root{{Path: root, Write: tt.write}}
			f := walk(t, tt.config)
			for _, l := range []struct {
				what string
				got  []string
				want string
			}{{"hidden", f.Hidden, tt.hidden}, {"git", f.Git, tt.git}, {"sockets", f.Sockets, tt.sockets}, {"named", f.Named, tt.named}, {"unreached", f.Unreached, ""}} {
				if got, want := sorted(below(root, l.got)), sorted(l.want); got != want {
					t.Errorf("%s: %q, want %q", l.what, got, want)
				}
			}
			for m := range strings.FieldsSeq(tt.miss) {
				for _, folder := range f.Folders {
					if folder.Path == filepath.Join(root, m) {
						t.Errorf("%s was looked into", m)
					}
				}
			}
		})
	}
}

func sorted(list string) string {
	f := strings.Split(list, " ")
	for i := range f {
		for j := i + 1; j < len(f); j++ {
			if f[j] < f[i] {
				f[i], f[j] = f[j], f[i]
			}
		}
	}
	return strings.Join(f, " ")
}

// A root in a root is walked by itself, and what is hidden is not walked.
func TestWalkLeavesApart(t *testing.T) {
	root := lay(t, "a/in/.git/x", "a/.git/x", "mask/.git/x", "b/.git/x")
	f := walk(t, survey.Config{
		Roots: []survey.Root{{Path: root, Write: true}, {Path: root + "/a"}, {Path: root + "/a/in", Write: true}},
		Skip:  []string{root + "/mask"},
	})
	if got := below(root, f.Git); got != "a/in/.git b/.git" {
		t.Errorf("found %s", got)
	}
}

// The bound cuts off what lies deep, and the same each time, however many
// threads there are.
func TestWalkBound(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("d%02d/a/b/.env", i), fmt.Sprintf("d%02d/.env", i))
	}
	root := lay(t, names...)
	for _, tt := range []struct {
		max, hidden int
		unreached   int // folders
		first       string
	}{
		{0, 80, 0, ""},
		{200, 80, 0, ""},
		{40, 0, 40, "d00"}, // the top uses it up
		{1, 0, 40, "d00"},  // and is read whole
		{60, 10, 40, "d10"},
		{61, 11, 40, "d11"}, // a folder that was begun is read to its end
		{120, 40, 40, "d00/a"},
		{170, 50, 40, "d10/a/b"},
	} {
		var last survey.Found
		for i := range 5 {
			f := walk(t, survey.Config{Roots: []survey.Root{{Path: root}}, Recursive: true, MaxEntries: tt.max})
			first := ""
			if len(f.Unreached) > 0 {
				first = strings.TrimPrefix(f.Unreached[0], root+"/")
			}
			if len(f.Hidden) != tt.hidden || first != tt.first || len(f.Unreached) != 0 != (len(f.Bounded) == 1) {
				t.Errorf("a bound of %d: %d hidden, %d unreached from %q on, bounded %v", tt.max, len(f.Hidden), len(f.Unreached), first, f.Bounded)
			}
			if i > 0 && !reflect.DeepEqual(f, last) {
				t.Errorf("a bound of %d finds another thing the next time", tt.max)
			}
			last = f
		}
	}
}

// A folder that we may not read is no secret to a sandbox of our uid, which can
// give itself the right; one of another user that is closed to us is closed to
// it as well.
func TestWalkClosed(t *testing.T) {
	want := "own"
	if os.Geteuid() == 0 {
		want = "" // root reads everything
	}
	root := lay(t, "own/.env", "open/.env")
	if err := os.Chmod(root+"/own", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(root+"/own", 0o755) })
	f := walk(t, survey.Config{Roots: []survey.Root{{Path: root}}, Recursive: true})
	if got := below(root, f.Closed); got != want || len(f.Unreached) != 0 {
		t.Errorf("closed: %q", got)
	}
}

func TestWalkEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := survey.Walk(ctx, survey.Config{Roots: []survey.Root{{Path: t.TempDir()}}, Recursive: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("a walk that is not wanted any more: %v", err)
	}
	if _, err := survey.Walk(t.Context(), survey.Config{Roots: []survey.Root{{Path: t.TempDir() + "/no"}}, Recursive: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a root that is not there: %v", err)
	}
}

// A folder that is swapped for a link while the walk is under way leads nowhere.
func TestWalkStaysInside(t *testing.T) {
	outside := lay(t, "x/.env", "x/.git/y")
	root := lay(t, "a/b/c/f")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			_ = os.Rename(root+"/a", root+"/old")
			_ = os.Symlink(outside, root+"/a")
			_ = os.Remove(root + "/a")
			_ = os.Rename(root+"/old", root+"/a")
		}
	}()
	for {
		f, err := survey.Walk(t.Context(), survey.Config{Roots: []survey.Root{{Path: root, Write: true}}, Recursive: true})
		if err != nil || len(f.Hidden)+len(f.Git) > 0 {
			t.Fatalf("found %v, %v", f, err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
