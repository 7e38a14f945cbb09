package safepath

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The kernel says where a path leads; an FS follows it there where that is
// granted, and nowhere else.
func FuzzPath(f *testing.F) {
	top := world(f)
	files := open(f, granted(top))
	for _, seed := range []string{"a", "sub/../a", "../out/secret", "TOP/w/a", "TOP/name/sub/b", "dir/../up", "absdir/../../out/secret", ".config/app/f", "masked/in/f", "self/self/../w/a",
		"//", "/proc/self/root/TOP/out/secret", "../single", "TOP/../..//etc/passwd", "sub/back/", "odd\nname", "\xff", "updir/../more/f", "./.hidden/./key", "tohidden", "loop/../a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		path = strings.ReplaceAll(path, "TOP", top)
		got, err := files.ReadFile(path, 1<<16)
		full := path
		if !strings.HasPrefix(path, "/") {
			full = top + "/w/" + path
		}
		real, realErr := filepath.EvalSymlinks(full)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Errorf("%q: %q", path, err)
			}
			return
		}
		if realErr != nil || files.table.at(real) < Read || files.table.at(real) == Masked {
			t.Fatalf("%q leads to %q (%v) and was read", path, real, realErr)
		}
		if want, err := os.ReadFile(real); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q: %q, the kernel has %q (%v)", path, got, want, err)
		}
	})
}

// What a link says is a path of the one who is not trusted.
func FuzzLink(f *testing.F) {
	top := world(f)
	files := open(f, granted(top))
	for _, seed := range []string{"a", "../a", "TOP/w/a", "TOP/name/../out/secret", "/etc/passwd", "../../out/secret", "./link", "sub/", ".hidden/key", "TOP//w/./sub/b", "/", ".."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "TOP", top)
		link := top + "/w/sub/link"
		_ = os.Remove(link)
		if os.Symlink(text, link) != nil {
			return
		}
		got, err := files.ReadFile("sub/link", 1<<16)
		if err != nil {
			return
		}
		real, realErr := filepath.EvalSymlinks(link)
		if realErr != nil || files.table.at(real) < Read || files.table.at(real) == Masked {
			t.Fatalf("%q leads to %q (%v) and was read", text, real, realErr)
		}
		if want, err := os.ReadFile(real); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q: %q, want %q (%v)", text, got, want, err)
		}
	})
}
