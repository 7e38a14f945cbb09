package safepath

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// world is a folder with a root, w, and what lies beside it: each file holds
// its own name.
func world(t testing.TB) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"w/a", "w/sub/b", "w/sub/deep/c", "w/.hidden/key", "w/.config/app/f", "w/.config/other",
		"w/masked/in/f", "w/ro/f", "w/odd\nname", "out/secret", "more/f", "more/inner/f", "single", "wx/secret",
	} {
		put(t, filepath.Join(top, name), name)
	}
	for name, text := range map[string]string{
		"w/in": "sub/b", "w/up": "../out/secret", "w/updir": "../out", "w/abs": top + "/w/a", "w/alias": top + "/name/sub/b",
		"w/absout": top + "/out/secret", "w/round": "../w/a", "w/dangling": "nothing", "w/loop": "loop", "w/loop2": "loop3", "w/loop3": "loop2",
		"w/dir": "sub", "w/dirdot": "sub/.", "w/absdir": top + "/w/sub", "w/tohidden": ".hidden/key", "w/.link": "a", "w/self": ".",
		"w/sub/back": "../a", "w/tomore": top + "/more/f", "w/proc": "/proc/self/root" + top + "/out/secret", "w/cwd": "/proc/self/cwd",
		"name": "w", "w/prefix": top + "/wx/secret", "w/slash": "a/",
	} {
		if err := os.Symlink(text, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, cfg Config) *FS {
	t.Helper()
	f, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// granted is w, opened by another name, with everything else that can be said.
func granted(top string) Config {
	return Config{Cwd: top + "/name", Access: Write, Grants: []Grant{
		{Path: top + "/w/.hidden"},
		{Path: top + "/w/.link"},
		{Path: top + "/w/.config"},
		{Path: top + "/w/.config/app", Access: Write},
		{Path: top + "/w/masked", Access: Masked},
		{Path: top + "/w/masked/in", Access: Write},
		{Path: top + "/w/ro", Access: Read},
		{Path: top + "/more", Access: Read},
		{Path: top + "/more/inner", Access: Write},
		{Path: top + "/single", Access: InPlace},
	}}
}

func TestRead(t *testing.T) {
	top := world(t)
	f := open(t, granted(top))
	for path, want := range map[string]string{
		"a": "w/a", "./a": "w/a", "sub/../a": "w/a", "sub//b": "w/sub/b", "sub/./deep/../b": "w/sub/b", "odd\nname": "w/odd\nname",
		"sub/deep/../../a": "w/a", "in": "w/sub/b", "abs": "w/a", "alias": "w/sub/b", "round": "w/a", "dir/b": "w/sub/b", "dirdot/b": "w/sub/b", "absdir/deep/c": "w/sub/deep/c",
		"sub/back": "w/a", "dir/back": "w/a", "dir/../a": "w/a", "self/self/self/a": "w/a", "tomore": "more/f",
		".config/app/f": "w/.config/app/f", ".config/../a": "w/a", "ro/f": "w/ro/f",
		top + "/w/a": "w/a", top + "/name/a": "w/a", top + "/name/sub/../a": "w/a", "/" + top + "//w/./a": "w/a", top + "/w/../w/a": "w/a", "../w/a": "w/a",
		top + "/more/f": "more/f", "../more/inner/f": "more/inner/f", top + "/single": "single", "../single": "single",
		"cwd": "cwd is the folder of the process", "slash": "w/a is no folder", "": "empty", "a\x00": "NUL", "a/": "no folder", "a/.": "no folder", "a/..": "no folder", "a/b": "no folder",
		strings.Repeat("x", 5000): "too long", "sub": "a folder", ".": "a folder", "sub/": "a folder", "nothing": "missing", "dangling": "missing", "nothing/../a": "missing", "loop": "loop", "loop2": "loop",
		"../out/secret": "cwd", "../../../../../../../../etc/passwd": "cwd", "/etc/passwd": "cwd", "sub/../../out/secret": "cwd", "up": "cwd", "updir/secret": "cwd", "absout": "cwd",
		"dir/../../out/secret": "cwd", "absdir/../../out/secret": "cwd", top + "/out/secret": "cwd", top + "/w/../out/secret": "cwd", top + "/name/../out/secret": "cwd",
		top + "/wx/secret": "cwd", "prefix": "cwd", "proc": "cwd", "/proc/self/root/etc/passwd": "cwd", "/proc/self/environ": "cwd", "/dev/null": "cwd", "..": "cwd", "../": "cwd", "/": "cwd", top: "cwd",
		"../out/nothing": "cwd", "../nothing": "cwd", "~/x": "missing", "..%2fout/secret": "missing", `..\out\secret`: "missing", ".../a": "missing", ".. /out/secret": "missing", "．．/out/secret": "missing",
		".hidden": "hidden", ".hidden/key": "hidden", ".hidden/nothing": "hidden", ".hidden/../a": "hidden", "tohidden": "hidden", ".link": "hidden", ".config/other": "hidden", ".config/nothing": "hidden",
		"masked": "hidden", "masked/in/f": "hidden", "sub/../masked/in/f": "hidden", top + "/w/.hidden/key": "hidden",
		"../more/../out/secret": "cwd",
	} {
		got, err := f.ReadFile(path, 1000)
		if err == nil {
			if string(got) != want {
				t.Errorf("%q holds %q, want %q", path, got, want)
			}
			continue
		}
		var r *Refusal
		refused := errors.As(err, &r)
		ok := false
		switch want {
		case "cwd":
			ok = refused && strings.Contains(err.Error(), "leaves cwd ("+top+"/w)") && strings.Contains(err.Error(), "sandbox.read_paths") && errors.Is(err, fs.ErrPermission) && r.Reason() == "not_granted"
		case "hidden":
			ok = refused && strings.Contains(err.Error(), "is hidden")
		case "missing":
			ok = errors.Is(err, fs.ErrNotExist)
		case "loop":
			ok = errors.Is(err, syscall.ELOOP)
		case "no folder", "w/a is no folder":
			ok = errors.Is(err, syscall.ENOTDIR)
		case "too long":
			ok = errors.Is(err, syscall.ENAMETOOLONG)
		case "a folder":
			ok = strings.Contains(err.Error(), "is a folder, not a regular file")
		case "cwd is the folder of the process":
			ok = refused
		case "empty", "NUL":
			ok = strings.Contains(err.Error(), want)
		}
		if !ok {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
		if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%q: %q breaks lines", path, err)
		}
	}
}

func TestWrite(t *testing.T) {
	top := world(t)
	f := open(t, granted(top))
	for path, lands := range map[string]string{
		"a": "w/a", "new": "w/new", "x/y/z": "w/x/y/z", "in": "w/sub/b", "abs": "w/a", "dangling": "w/nothing", "dir/n": "w/sub/n",
		"dir/m/n": "w/sub/m/n", ".config/app/new": "w/.config/app/new", top + "/more/inner/new": "more/inner/new", "../single": "single", ".new": "w/.new",
	} {
		if err := f.WriteFile(path, []byte("text of "+path)); err != nil {
			t.Error(err)
		} else if got, err := os.ReadFile(filepath.Join(top, lands)); err != nil || string(got) != "text of "+path {
			t.Errorf("%s holds %q: %v", lands, got, err)
		}
	}
	for path, want := range map[string]string{
		"../out/secret": "leaves cwd", "../new": "leaves cwd", "up": "leaves cwd", "updir/new": "leaves cwd", "/etc/new": "leaves cwd", "absout": "leaves cwd",
		"ro/f": "is read-only: sandbox.write_paths", "ro/new": "read-only", "ro/d/new": "read-only", "../more/f": "read-only", "tomore": "read-only",
		".hidden/key": "hidden", ".hidden/new": "hidden", ".hidden": "hidden", ".link": "hidden", "tohidden": "hidden", "masked/in/new": "hidden", ".config/new": "hidden",
		"sub": "is a folder", "q/r/": "is a directory", "q/r/..": "is a directory", "q/.": "is a directory", "q/r/../../../out/new": "does not exist", "loop": "symbolic links", "a/b": "not a directory", "": "empty",
	} {
		if err := f.WriteFile(path, []byte("bad")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	if err := f.WriteFile("/etc/new", nil); !strings.Contains(err.Error(), "sandbox.write_paths opens") {
		t.Errorf("%v names no key for writing", err)
	}
	for _, name := range []string{"w/q", "w/.hidden/new", "out/new", "new", "w/ro/d"} {
		if _, err := os.Lstat(filepath.Join(top, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	left, err := filepath.Glob(top + "/*/.egressd-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if info, err := os.Lstat(top + "/w/in"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Error("a link was replaced, not followed")
	}
}

// The zero Access, and a grant without a kind, refuse.
func TestZero(t *testing.T) {
	top := world(t)
	f := open(t, Config{Cwd: top + "/w", Grants: []Grant{{Path: top + "/more"}}})
	for _, path := range []string{"a", "/", top + "/more/f", "."} {
		if _, err := f.Stat(path); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, cfg := range []Config{
		{}, {Cwd: "w"}, {Cwd: top, Grants: []Grant{{Path: "rel", Access: Read}}}, {Cwd: top, Grants: []Grant{{Access: Read}}},
		{Cwd: top, Grants: []Grant{{Path: "/x", Access: 9}}}, {Cwd: top, Grants: []Grant{{Path: "/proc", Access: Read}}}, {Cwd: top, Grants: []Grant{{Path: "/x\x00", Access: Read}}},
		{Cwd: top, Grants: []Grant{{Path: top, As: "rel", Access: Read}}}, {Cwd: top, Unconfined: true}, {Cwd: top, Unconfined: true, Access: Read, Warn: func(string) {}},
	} {
		if f, err := Open(cfg); err == nil {
			t.Errorf("%+v was opened", cfg)
			_ = f.Close()
		}
	}
}

// Of two grants of a path the greater holds; a mask beats both.
func TestSpecific(t *testing.T) {
	top := world(t)
	for _, tc := range []struct {
		access []Access
		read   bool
		write  bool
	}{
		{[]Access{Hidden}, false, false}, {[]Access{Hidden, Read}, true, false}, {[]Access{Write, Read}, true, true},
		{[]Access{Write, Masked, Read}, false, false},
	} {
		cfg := Config{Cwd: top + "/w", Access: Read}
		for _, a := range tc.access {
			cfg.Grants = append(cfg.Grants, Grant{Path: top + "/w/sub", Access: a})
		}
		f := open(t, cfg)
		_, err := f.ReadFile("sub/b", 100)
		if (err == nil) != tc.read {
			t.Errorf("%v: reading: %v", tc.access, err)
		}
		if err := f.WriteFile("sub/new", nil); (err == nil) != tc.write {
			t.Errorf("%v: writing: %v", tc.access, err)
		}
	}
}

// A folder has another name inside: a copy that stands for the real one.
func TestAs(t *testing.T) {
	top := world(t)
	f := open(t, Config{Cwd: top + "/w", Grants: []Grant{{Path: top + "/w", As: "/nowhere/work", Access: Write}}})
	for _, path := range []string{"/nowhere/work/a", "/nowhere/./work//a", "/nowhere/work/sub/../a"} {
		if got, err := f.ReadFile(path, 10); err != nil || string(got) != "w/a" {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	for _, path := range []string{"/nowhere/work/../x", "/nowhere/workx/a", "/nowhere"} {
		if _, err := f.ReadFile(path, 10); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A root that does not exist is made by the first write and reported by a read.
func TestMissingRoot(t *testing.T) {
	top := world(t)
	f := open(t, Config{Cwd: top + "/new/root", Access: Write})
	_, err := f.ReadFile("x", 10)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "cwd ("+top+"/new/root) does not exist") {
		t.Error(err)
	}
	if _, err := f.Walk(t.Context(), ".", none, func(Entry) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := f.Update("x", 10, func(b []byte) ([]byte, error) { return b, nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Lstat(top + "/new"); err == nil {
		t.Error("a read made the root")
	}
	if err := f.WriteFile("../x", nil); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if err := f.WriteFile("d/x", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if got, err := f.ReadFile("d/x", 10); err != nil || string(got) != "1" {
		t.Errorf("%q %v", got, err)
	}
	read := open(t, Config{Cwd: top + "/new/other", Access: Read})
	if err := read.WriteFile("x", nil); err == nil {
		t.Error("a root that is to be read was made")
	}
	if _, err := os.Lstat(top + "/new/other"); err == nil {
		t.Error("a root that is to be read was made")
	}
}

// Only regular files, and nothing is waited for.
func TestKinds(t *testing.T) {
	top := world(t)
	f := open(t, granted(top))
	if err := syscall.Mkfifo(top+"/w/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", top+"/w/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]string{"fifo": "a FIFO", "socket": "a socket"} {
		if _, err := f.ReadFile(path, 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(path, err)
		}
		if err := f.WriteFile(path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(path, err)
		}
	}
	if _, err := f.ReadFile("fifo/x", 10); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
	if _, err := f.Walk(t.Context(), ".", none, func(e Entry) error {
		if e.Path == "fifo" || e.Path == "socket" {
			t.Error(e.Path, "was visited")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	told := ""
	free := open(t, Config{Cwd: top + "/w", Unconfined: true, Warn: func(s string) { told = s }})
	if !strings.Contains(told, "NOT contained (cwd: null)") || free.Contained() || !f.Contained() {
		t.Errorf("told %q", told)
	}
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/tty"} {
		if _, err := free.ReadFile(path, 10); err == nil || !strings.Contains(err.Error(), "a device") {
			t.Error(path, err)
		}
		if err := free.WriteFile(path, nil); err == nil {
			t.Error(path, "was written")
		}
	}
}

func TestUnconfined(t *testing.T) {
	top := world(t)
	f := open(t, Config{Cwd: top + "/w", Unconfined: true, Warn: func(string) {}})
	for path, want := range map[string]string{
		"a": "w/a", "../out/secret": "out/secret", "up": "out/secret", "updir/../single": "single", ".hidden/key": "w/.hidden/key",
		"abs": "w/a", "proc": "out/secret", "dir/back": "w/a", top + "/single": "single",
	} {
		if got, err := f.ReadFile(path, 100); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	for _, path := range []string{"loop", "nothing", "a/", "a/b", "sub", ".", ""} {
		if _, err := f.ReadFile(path, 100); err == nil {
			t.Errorf("%q was read", path)
		}
	}
	for path, lands := range map[string]string{"../out/new": "out/new", "p/q/r": "w/p/q/r", "up": "out/secret", "dangling": "w/nothing"} {
		if err := f.WriteFile(path, []byte("x")); err != nil {
			t.Error(err)
		} else if got, _ := os.ReadFile(filepath.Join(top, lands)); string(got) != "x" {
			t.Errorf("%s holds %q", lands, got)
		}
	}
	found := 0
	if _, err := f.Walk(t.Context(), "..", none, func(Entry) error { found++; return nil }); err != nil || found < 20 {
		t.Errorf("%d found: %v", found, err)
	}
}

func TestSizes(t *testing.T) {
	top := world(t)
	f := open(t, granted(top))
	var large *TooLarge
	if _, err := f.ReadFile("a", 2); !errors.As(err, &large) || large.Size != 3 || large.Max != 2 || !strings.Contains(err.Error(), "a has 3 bytes, more than 2") {
		t.Error(err)
	}
	if got, err := f.ReadFile("a", 3); err != nil || string(got) != "w/a" {
		t.Errorf("%q %v", got, err)
	}
	// A file of a terabyte, all of it a hole, is not read.
	if err := os.Truncate(top+"/w/a", 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFile("a", 1<<20); !errors.As(err, &large) {
		t.Error(err)
	}
	if err := f.Update("a", 1<<20, func(b []byte) ([]byte, error) { return b, nil }); !errors.As(err, &large) {
		t.Error(err)
	}
	// A file of /proc says that it is empty and is not.
	free := open(t, Config{Cwd: top, Unconfined: true, Warn: func(string) {}})
	if _, err := free.ReadFile("/proc/self/maps", 10); !errors.As(err, &large) {
		t.Error(err)
	}
}

func none(string) bool { return false }

func TestWalk(t *testing.T) {
	top := world(t)
	f := open(t, granted(top))
	walk := func(start string, skip func(string) bool) []string {
		var got []string
		missed, err := f.Walk(t.Context(), start, skip, func(e Entry) error {
			name := e.Path
			if e.Info.IsDir() {
				name += "/"
			}
			if ok := e.Path == e.Below || e.Below != "" && strings.HasSuffix(e.Path, "/"+e.Below) || e.Path == start && e.Below == ""; !ok || start == "." && e.Path != e.Below {
				t.Errorf("%q is %q below the start", e.Path, e.Below)
			}
			if e.Again {
				name += " again"
			}
			got = append(got, name)
			if e.Info.Mode().IsRegular() {
				file, err := e.Open()
				if err != nil {
					return err
				}
				return file.Close()
			}
			return nil
		})
		if err != nil || missed != 0 {
			t.Errorf("%s: %d missed, %v", start, missed, err)
		}
		return got
	}
	want := []string{".config/", ".config/app/", ".config/app/f", "a", "odd\nname", "ro/", "ro/f", "sub/", "sub/b", "sub/deep/", "sub/deep/c",
		"abs again", "absdir/ again", "alias again", "dir/ again", "dirdot/ again", "in again", "round again", "self/ again", "tomore", "sub/back again"}
	slices.Sort(want)
	got := walk(".", none)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for start, want := range map[string][]string{
		"sub": {"sub/b", "sub/deep/", "sub/deep/c", "sub/back"}, "dir": {"dir/b", "dir/deep/", "dir/deep/c", "dir/back"}, "sub/../ro": {"ro/f"},
		"a": {"a"}, "abs": {"abs"}, top + "/name/ro": {"ro/f"}, top + "/more": {top + "/more/f", top + "/more/inner/", top + "/more/inner/f"}, ".config": {".config/app/", ".config/app/f"},
	} {
		if got := walk(start, none); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", start, got, want)
		}
	}
	if got := walk(".", func(s string) bool { return s == "sub" || strings.HasPrefix(s, ".") }); slices.Contains(got, "dir/") || slices.Contains(got, "in") || !slices.Contains(got, "abs again") {
		t.Errorf("with names left out: %q", got)
	}
	for _, start := range []string{"..", "updir", ".hidden", "masked", "loop", "/", "nothing"} {
		if _, err := f.Walk(t.Context(), start, none, func(Entry) error { return nil }); err == nil {
			t.Errorf("%s was walked", start)
		}
	}
	inside := 0
	if _, err := f.Walk(t.Context(), ".", none, func(e Entry) error {
		if strings.Contains(e.Path, "/") {
			inside++
		}
		return fs.SkipDir
	}); err != nil || inside != 0 {
		t.Errorf("%d visits below folders: %v", inside, err)
	}
	n := 0
	if _, err := f.Walk(t.Context(), ".", none, func(Entry) error { n++; return fs.SkipAll }); err != nil || n != 1 {
		t.Errorf("%d visits: %v", n, err)
	}
	stop := errors.New("stop")
	if _, err := f.Walk(t.Context(), ".", none, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Walk(ctx, ".", none, func(Entry) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A link to a folder outside the start of a walk is walked once, however many
// links lead there and wherever it leads back to.
func TestWalkLinks(t *testing.T) {
	top := world(t)
	put(t, top+"/w/start/f", "")
	for name, text := range map[string]string{"w/start/l1": "../sub", "w/start/l2": "../sub", "w/start/top": "..", "w/sub/start": "../start"} {
		if err := os.Symlink(text, top+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	f := open(t, granted(top))
	count := map[string]int{}
	if _, err := f.Walk(t.Context(), "start", none, func(e Entry) error {
		if !e.Again && e.Info.Mode().IsRegular() {
			count[e.Real]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if count[top+"/w/sub/b"] == 0 || count[top+"/w/start/f"] != 1 {
		t.Error(count)
	}
	for name, n := range count {
		if n > 2 { // by a link to sub, and below the link to all of it
			t.Errorf("%s %d times", name, n)
		}
	}
}

// A tree that is deeper than folders are held open is said to be cut.
func TestWalkDeep(t *testing.T) {
	top := world(t)
	deep := top + "/w/sub" + strings.Repeat("/d", maxDepth+20)
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	f := open(t, granted(top))
	missed, err := f.Walk(t.Context(), "sub", none, func(Entry) error { return nil })
	if missed != 1 || err != nil {
		t.Errorf("%d missed: %v", missed, err)
	}
	if _, err := f.Stat("sub" + strings.Repeat("/d", maxDepth+20)); err != nil {
		t.Error(err)
	}
}

func TestStat(t *testing.T) {
	top := world(t)
	f := open(t, granted(top))
	if info, err := f.Stat("dir"); err != nil || !info.IsDir() {
		t.Error(info, err)
	}
	if _, err := f.Stat("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := f.Stat("up"); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if real, err := f.Real("dir/new"); err != nil || real != top+"/w/sub/new" {
		t.Error(real, err)
	}
	if f.Cwd() != top+"/w" || f.Rel(top+"/w/a/b") != "a/b" || f.Rel(top+"/w") != "." || f.Rel(top+"/wx") != top+"/wx" {
		t.Error(f.Cwd())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Stat("a"); err == nil {
		t.Error("a closed FS answers")
	}
}
