package survey

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const unixTitle = "Num       RefCount Protocol Flags    Type St Inode Path\n"

func TestParseSockets(t *testing.T) {
	line := func(name string) string {
		return "00000000deadbeef: 00000002 00000000 00010000 0001 01    12 " + name + "\n"
	}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"none", unixTitle, nil},
		{"no name", unixTitle + strings.TrimSuffix(line(""), " \n") + "\n", nil},
		{"abstract", unixTitle + line("@x"), nil},
		{"a path, a relative one and one with spaces", unixTitle + line("/run/a") + line("b.sock") + line(" /c d "),
			[]string{"/run/a", "b.sock", " /c d "}},
		{"a line break", unixTitle + line("/a\nb"), []string{"/a", "/a\nb"}},
		{"a line break and a false line", unixTitle + line("/a\n0: 1 1 1 1 1 1 /b"), []string{"/a", "/a\n0: 1 1 1 1 1 1 /b", "/b"}},
		{"an odd end", unixTitle + "00000000deadbeef: 00000002", nil},
		{"pointers that are not shown", unixTitle + strings.Replace(line("/a"), "deadbeef", "00000000", 1), []string{"/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := parseSockets([]byte(tt.text))
			for _, w := range tt.want {
				if !slices.Contains(got, w) {
					t.Errorf("%q is not among %q", w, got)
				}
			}
			if len(tt.want) == 0 && len(got) > 0 {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Whatever bytes a name has, it is among the names.
func FuzzParseSockets(f *testing.F) {
	f.Add("/run/a")
	f.Add("/a\n00000000deadbeef: 00000002 00000000 00010000 0001 01 12 /b")
	f.Add("\n\n ")
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > maxSocketName || strings.HasPrefix(name, "@") || strings.Contains(name, "\x00") || name == "" {
			return
		}
		text := unixTitle + "00000000deadbeef: 00000002 00000000 00010000 0001 01    12 " + name + "\n00000000deadbeef: 00000002 00000000 00010000 0001 01    13 /z\n"
		if got := parseSockets([]byte(text)); !slices.Contains(got, name) || !slices.Contains(got, "/z") {
			t.Errorf("%q gave %q", name, got)
		}
	})
}

func TestParseMount(t *testing.T) {
	m, ok := parseMount(`36 35 98:0 /mnt1\040x /mnt\0122\134 rw,noatime master:1 - ext3 /dev/root rw`)
	if !ok || m != (mounted{"98:0", "/mnt1 x", "/mnt\n2\\"}) {
		t.Errorf("%v %v", m, ok)
	}
	for _, line := range []string{"", "1 2 3", "1 2 3 net:[1] /x rw"} {
		if _, ok := parseMount(line); ok {
			t.Errorf("%q is a mount", line)
		}
	}
}

// Sockets are found by the names that the folder has for them.
func TestSockets(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, d := range []string{"g/deep", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("g/deep", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	bind := func(name string) {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	bind("g/a")
	bind("link/b")
	bind("out/c")
	bind("g/n\nl")
	found, _, err := Sockets([]string{dir + "/g"})
	if want := []string{dir + "/g/a", dir + "/g/deep/b", dir + "/g/n\nl"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("found %q, %v; want %q", found, err, want)
	}
	if err := os.Link(dir+"/out/c", dir+"/g/hard"); err != nil {
		t.Fatal(err)
	}
	if _, elsewhere, err := Sockets([]string{dir + "/g"}); err != nil || !elsewhere {
		t.Errorf("a socket with another name is not told of (%v)", err)
	}
}
