package safepath

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// swap keeps renaming what lies at to and from over name, in turn, until the
// test ends; what it swaps in must never be seen.
func swap(t *testing.T, name string, make ...func(string) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	t.Cleanup(func() { stop(); wait.Wait() })
	wait.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			next := fmt.Sprintf("%s.next%d", name, n)
			if err := make[n%len(make)](next); err != nil {
				t.Errorf("making %s: %v", next, err)
				return
			}
			_ = os.Rename(name, fmt.Sprintf("%s.old%d", name, n))
			_ = os.Rename(next, name)
			_ = os.RemoveAll(fmt.Sprintf("%s.old%d", name, n))
			time.Sleep(time.Duration(n%4) * 50 * time.Microsecond)
		}
	})
}

func link(to string) func(string) error { return func(p string) error { return os.Symlink(to, p) } }
func file(text string) func(string) error {
	return func(p string) error { return os.WriteFile(p, []byte(text), 0o666) }
}
func fifo(p string) error { return syscall.Mkfifo(p, 0o666) }
func dir(text string) func(string) error {
	return func(p string) error {
		return errors.Join(os.Mkdir(p, 0o777), os.WriteFile(p+"/f", []byte(text), 0o666))
	}
}

// under calls do until some time is over and enough is true, and fails if one
// call takes long: nothing waits for a FIFO.
func under(t *testing.T, do func(), enough func() bool) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 400*time.Millisecond || !enough() && time.Since(begin) < 30*time.Second; {
		done := make(chan bool)
		go func() { do(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("a call hangs")
		}
	}
}

func always() bool { return true }

// Whatever a name is swapped for while it is read, what comes back is the good
// file or an error: never the file outside, never the hidden neighbour.
func TestSwapRead(t *testing.T) {
	for name, makers := range map[string][]func(string) error{
		"file for a link outside":       {file("good"), link("../../out/f")},
		"file for a link to hidden":     {file("good"), link(".key")},
		"file for a hidden path":        {file("good"), link("../../w/x/.key")},
		"file for a FIFO":               {file("good"), fifo},
		"file for links and FIFOs":      {file("good"), link("../../out/f"), fifo, link(".key"), dir("good")},
		"folder for a link outside":     {dir("good"), link("../../out")},
		"folder for a link to hidden":   {dir("good"), link(".secret")},
		"folder for a FIFO":             {dir("good"), fifo},
		"folder for links and FIFOs":    {dir("good"), link(".secret"), link("../../out"), fifo, file("good")},
		"link inside for a link out":    {link("goodfile"), link("../../out/f")},
		"folder link for a link hidden": {link("gooddir"), link(".secret")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			for p, text := range map[string]string{"out/f": "bad", "w/x/.key": "bad", "w/x/.secret/f": "bad", "w/x/goodfile": "good", "w/x/gooddir/f": "good", "w/x/n": "good"} {
				put(t, filepath.Join(top, p), text)
			}
			f := open(t, Config{Cwd: top + "/w", Access: Write, Grants: []Grant{{Path: top + "/w/x/.key"}, {Path: top + "/w/x/.secret"}}})
			swap(t, top+"/w/x/n", makers...)
			got := 0
			under(t, func() {
				for _, path := range []string{"x/n", "x/n/f"} {
					text, err := f.ReadFile(path, 100)
					if err == nil {
						got++
					}
					if bytes.Contains(text, []byte("bad")) {
						t.Errorf("%s holds %q", path, text)
					}
				}
				_, err := f.Walk(t.Context(), ".", none, func(e Entry) error {
					if strings.Contains(e.Real, "/.key") || strings.Contains(e.Real, "/.secret") || !strings.Contains(e.Real, "/w") {
						t.Errorf("%s was visited", e.Real)
					}
					if e.Info.Mode().IsRegular() && strings.HasPrefix(e.Path, "x/n") {
						if file, err := e.Open(); err == nil {
							b := make([]byte, 100)
							n, _ := file.Read(b)
							if string(b[:n]) == "bad" {
								t.Errorf("%s holds %q", e.Path, b[:n])
							}
							_ = file.Close()
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}, func() bool { return got > 0 })
			if got == 0 {
				t.Error("the good file was never read")
			}
		})
	}
}

// Nor does a write land outside, or in a hidden neighbour, or in what is
// read-only.
func TestSwapWrite(t *testing.T) {
	for name, makers := range map[string][]func(string) error{
		"file for a link outside":  {file("old"), link("../../out/f")},
		"file for a link hidden":   {file("old"), link(".key"), link("ro/f")},
		"file for nothing and out": {file("old"), link("../../out/new"), fifo},
		"folder for links":         {dir("old"), link("../../out"), link(".secret"), link("ro"), fifo},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			kept := []string{"out/f", "w/x/.key", "w/x/.secret/f", "w/x/ro/f"}
			for _, p := range append(kept, "w/x/n/f") {
				put(t, filepath.Join(top, p), "old")
			}
			f := open(t, Config{Cwd: top + "/w", Access: Write, Grants: []Grant{{Path: top + "/w/x/.key"}, {Path: top + "/w/x/.secret"}, {Path: top + "/w/x/ro", Access: Read}}})
			swap(t, top+"/w/x/n", makers...)
			done := 0
			under(t, func() {
				for _, path := range []string{"x/n", "x/n/f", "x/n/new/f"} {
					if f.WriteFile(path, []byte("written")) == nil {
						done++
					}
					_ = f.Update(path, 100, func([]byte) ([]byte, error) { return []byte("written"), nil })
				}
			}, func() bool { return done > 0 })
			if done == 0 {
				t.Error("nothing was ever written")
			}
			for _, p := range kept {
				if got, err := os.ReadFile(filepath.Join(top, p)); err != nil || string(got) != "old" {
					t.Errorf("%s holds %q: %v", p, got, err)
				}
			}
			for _, p := range []string{"out", "w/x/.secret", "w/x/ro"} {
				if names, err := os.ReadDir(filepath.Join(top, p)); err != nil || len(names) != 1 {
					t.Errorf("%s holds %v: %v", p, names, err)
				}
			}
		})
	}
}

// A folder that is renamed away while it is walked through stays the folder
// that was judged, and ".." does not lead where it went.
func TestSwapUp(t *testing.T) {
	top := t.TempDir()
	put(t, top+"/w/x/d/e/f", "good")
	put(t, top+"/w/x/secret", "good")
	put(t, top+"/out/secret", "bad")
	put(t, top+"/out/d/secret", "bad")
	f := open(t, Config{Cwd: top + "/w", Access: Write})
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for !stop.Load() {
			_ = os.Rename(top+"/w/x/d", top+"/out/moved")
			_ = os.Rename(top+"/out/moved", top+"/w/x/d")
		}
	})
	under(t, func() {
		if text, err := f.ReadFile("x/d/e/../../secret", 100); err == nil && string(text) != "good" {
			t.Errorf("%q", text)
		}
	}, always)
	stop.Store(true)
	wait.Wait()
}

// A reader sees the old text or the new one, never a part.
func TestAtomic(t *testing.T) {
	top := t.TempDir()
	f := open(t, Config{Cwd: top, Access: Write})
	texts := []string{strings.Repeat("a", 200_000), strings.Repeat("b", 100_000)}
	if err := f.WriteFile("f", []byte(texts[0])); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for n := 0; !stop.Load(); n++ {
			if err := f.WriteFile("f", []byte(texts[n%2])); err != nil {
				t.Error(err)
			}
		}
	})
	under(t, func() {
		if got, err := os.ReadFile(top + "/f"); err != nil || string(got) != texts[0] && string(got) != texts[1] {
			t.Errorf("%d bytes: %v", len(got), err)
		}
	}, always)
	stop.Store(true)
	wait.Wait()
	if names, err := os.ReadDir(top); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
}

func TestMode(t *testing.T) {
	top := t.TempDir()
	f := open(t, Config{Cwd: top, Access: Write, Grants: []Grant{{Path: top + "/place", Access: InPlace}}})
	for _, mode := range []fs.FileMode{0o644, 0o755, 0o600, 0o664} {
		path := top + "/f"
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.WriteFile("f", []byte("new")), f.Update("f", 9, func(b []byte) ([]byte, error) { return append(b, '2'), nil })); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != mode {
			t.Errorf("%v became %v: %v", mode, info.Mode(), err)
		}
		if got, _ := os.ReadFile(path); string(got) != "new2" {
			t.Errorf("%q", got)
		}
	}
	// In place: the same file before and after, longer and shorter.
	put(t, top+"/place", "first text")
	before, _ := os.Stat(top + "/place")
	for _, text := range []string{"2", "the third text, a longer one"} {
		if err := f.WriteFile("place", []byte(text)); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(top + "/place")
		if got, _ := os.ReadFile(top + "/place"); err != nil || string(got) != text || !os.SameFile(before, after) {
			t.Errorf("%q %v", got, err)
		}
	}
	if err := os.Remove(top + "/place"); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("place", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	// What is read-only by its mode is not written by way of its folder.
	if os.Geteuid() != 0 {
		if err := errors.Join(os.WriteFile(top+"/r", nil, 0o600), os.Chmod(top+"/r", 0o444)); err != nil {
			t.Fatal(err)
		}
		if err := f.WriteFile("r", []byte("x")); !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
	}
}

// What root writes belongs to whom the folder belongs to.
func TestOwner(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(top+"/w", 0o777); err != nil {
		t.Fatal(err)
	}
	want := uint32(os.Geteuid())
	if want == 0 {
		want = 12345
		if err := os.Chown(top+"/w", 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	f := open(t, Config{Cwd: top + "/w", Access: Write})
	if err := errors.Join(f.WriteFile("d/e/f", []byte("x")), f.WriteFile("d/e/f", []byte("y"))); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"d", "d/e", "d/e/f"} {
		info, err := os.Lstat(filepath.Join(top, "w", p))
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != want {
			t.Errorf("%s belongs to %d", p, s.Uid)
		}
	}
}

// A change by somebody else between reading and writing is not lost, and two
// Updates at a time both count.
func TestUpdate(t *testing.T) {
	top := t.TempDir()
	put(t, top+"/f", "1")
	f := open(t, Config{Cwd: top, Access: Write})
	err := f.Update("f", 100, func([]byte) ([]byte, error) { return []byte("3"), os.WriteFile(top+"/f", []byte("22"), 0o666) })
	if got, _ := os.ReadFile(top + "/f"); err == nil || string(got) != "22" || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("%q %v", got, err)
	}
	no := errors.New("no")
	if err := f.Update("f", 100, func([]byte) ([]byte, error) { return nil, no }); !errors.Is(err, no) {
		t.Error(err)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if err := f.Update("f", 100, func(b []byte) ([]byte, error) { return append(b, 'x'), nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got, _ := os.ReadFile(top + "/f"); string(got) != "22"+strings.Repeat("x", 20) {
		t.Errorf("%q", got)
	}
}

// A thousand operations leave no descriptor.
func TestDescriptors(t *testing.T) {
	top := world(t)
	f := open(t, granted(top))
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	before := count()
	for range 1000 {
		for _, path := range []string{"sub/deep/c", "dir/back", "up", "loop", "a/b", "nothing/x", "masked/in/f", "sub", "self/self/self/../a"} {
			_, _ = f.ReadFile(path, 100)
			_, _ = f.Stat(path)
		}
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}
