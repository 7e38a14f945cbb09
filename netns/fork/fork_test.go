//go:build linux

package fork_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/fork"
)

// bed is a folder to copy and one for copies.
func bed(t *testing.T) (source, dir string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	source, dir = filepath.Join(base, "work"), filepath.Join(base, "forks")
	for _, d := range []string{source, dir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return source, dir
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	return path
}

func stat(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return st
}

func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) > 0 {
		t.Errorf("left in %s: %v", dir, entries)
	}
}

// A copy is what the folder is: contents, modes, times, links, hard links, holes
// and attributes; and nothing of the folder changes.
func TestMake(t *testing.T) {
	source, dir := bed(t)
	put(t, source+"/a", "one\n")
	put(t, source+"/sub/deep/b", strings.Repeat("x", 300<<10))
	put(t, source+"/run.sh", "#!/bin/sh\n")
	put(t, source+"/empty", "")
	must(t, os.Chmod(source+"/run.sh", 0o755|fs.ModeSetuid), os.Link(source+"/a", source+"/sub/a2"),
		os.Symlink("a", source+"/link"), os.Symlink("/etc/shadow", source+"/out"), os.Symlink("../..", source+"/sub/up"))
	hole, err := os.Create(source + "/hole")
	must(t, err)
	_, err = hole.WriteAt([]byte("end"), 40<<20)
	must(t, err, hole.Truncate(64<<20), hole.Close())
	attributes := unix.Setxattr(source+"/a", "user.note", []byte("kept"), 0) == nil
	when := time.Unix(1_500_000_000, 123456789)
	must(t, os.Chtimes(source+"/a", when, when), os.Chmod(source+"/sub/deep", 0o500), os.Chtimes(source+"/sub", when, when))
	t.Cleanup(func() { _ = os.Chmod(source+"/sub/deep", 0o700) })
	f, err := fork.Make(t.Context(), fork.Config{Source: source, Dir: dir})
	must(t, err)
	for path, want := range map[string]string{"a": "one\n", "sub/a2": "one\n", "sub/deep/b": strings.Repeat("x", 300<<10), "empty": ""} {
		if got, err := os.ReadFile(filepath.Join(f.Path, path)); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
	for path, want := range map[string]string{"link": "a", "out": "/etc/shadow", "sub/up": "../.."} {
		if got, err := os.Readlink(filepath.Join(f.Path, path)); err != nil || got != want {
			t.Errorf("%s leads to %q, %v", path, got, err)
		}
	}
	a, a2, orig := stat(t, f.Path+"/a"), stat(t, f.Path+"/sub/a2"), stat(t, source+"/a")
	if a.Ino != a2.Ino || a.Nlink != 2 || a.Mtim != orig.Mtim {
		t.Errorf("a and sub/a2: %+v %+v", a, a2)
	}
	if orig.Nlink != 2 || orig.Ino == a.Ino {
		t.Error("the copy is linked to the original")
	}
	if sub := stat(t, f.Path+"/sub"); sub.Mtim != stat(t, source+"/sub").Mtim {
		t.Error("the time of a folder is not kept")
	}
	if deep := stat(t, f.Path+"/sub/deep"); deep.Mode&0o7777 != 0o500 {
		t.Errorf("the mode of a folder is %o", deep.Mode)
	}
	if sh := stat(t, f.Path+"/run.sh"); sh.Mode&0o7777 != 0o755 {
		t.Errorf("the mode of a set-uid program is %o", sh.Mode)
	}
	if h := stat(t, f.Path+"/hole"); h.Size != 64<<20 || h.Blocks > 1<<20/512 {
		t.Errorf("the hole has %d bytes in %d blocks", h.Size, h.Blocks)
	}
	var note [8]byte
	if n, err := unix.Getxattr(f.Path+"/a", "user.note", note[:]); attributes && (err != nil || string(note[:n]) != "kept") {
		t.Errorf("attribute %q, %v", note[:max(n, 0)], err)
	}
	if f.Files != 5 || len(f.Notes) != 0 {
		t.Errorf("%d files, notes %q", f.Files, f.Notes)
	}
	put(t, f.Path+"/a", "two\n")
	if got, _ := os.ReadFile(source + "/a"); string(got) != "one\n" {
		t.Errorf("the original became %q", got)
	}
	must(t, f.Close())
	empty(t, dir)
}

// What is left out: names that are skipped, with all below them, the folder of
// the copies itself, and what is neither file, folder nor link.
func TestLeftOut(t *testing.T) {
	source, _ := bed(t)
	dir := filepath.Join(source, "state", "forks")
	must(t, os.MkdirAll(dir, 0o700))
	put(t, source+"/.env", "K=1")
	put(t, source+"/.ssh/id", "K")
	put(t, source+"/sub/.env", "seen")
	l, err := net.Listen("unix", source+"/sock")
	must(t, err, unix.Mkfifo(source+"/sub/pipe", 0o600))
	defer l.Close()
	if os.Getuid() != 0 {
		put(t, source+"/closed", "x")
		must(t, os.Chmod(source+"/closed", 0), os.Mkdir(source+"/shut", 0))
	}
	f, err := fork.Make(t.Context(), fork.Config{Source: source, Dir: dir, Skip: func(rel string) bool { return rel[0] == '.' }})
	must(t, err)
	defer f.Close()
	for _, path := range []string{".env", ".ssh", "sock", "sub/pipe", "state/forks", "closed", "shut"} {
		if _, err := os.Lstat(filepath.Join(f.Path, path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is in the copy: %v", path, err)
		}
	}
	if _, err := os.Lstat(f.Path + "/sub/.env"); err != nil {
		t.Error(err)
	}
	if notes := strings.Join(f.Notes, "\n"); !strings.Contains(notes, `sockets, pipes and devices: ["sock" "sub/pipe"]`) || os.Getuid() != 0 && !strings.Contains(notes, `["closed" "shut"]`) {
		t.Errorf("notes %q", f.Notes)
	}
}

// What a program leaves in its copy goes, whatever its modes and depth.
func TestCloseAnything(t *testing.T) {
	source, dir := bed(t)
	f, err := fork.Make(t.Context(), fork.Config{Source: source, Dir: dir})
	must(t, err)
	at, err := os.Open(f.Path)
	must(t, err)
	for i := range 2500 { // deeper than a path may be long
		must(t, unix.Mkdirat(int(at.Fd()), "d", 0o700))
		if i%100 == 0 {
			must(t, unix.Mkdirat(int(at.Fd()), "e", 0o700), unix.Symlinkat("/", int(at.Fd()), "l"))
		}
		fd, err := unix.Openat(int(at.Fd()), "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err, at.Close())
		at = os.NewFile(uintptr(fd), "d")
	}
	must(t, at.Close())
	for i := range 3000 {
		put(t, f.Path+"/many/"+strconv.Itoa(i), "")
		must(t, os.Mkdir(f.Path+"/."+strconv.Itoa(i), 0o700))
	}
	must(t, os.MkdirAll(f.Path+"/x/y/z", 0o700), os.Chmod(f.Path+"/x/y/z", 0), os.Chmod(f.Path+"/x/y", 0o500), os.Chmod(f.Path+"/x", 0))
	must(t, f.Close())
	empty(t, dir)
}

// Copies of a process that is gone are cleared away, those of one that lives are
// not, and no copy is taken away while it is begun.
func TestClear(t *testing.T) {
	source, dir := bed(t)
	put(t, source+"/a", "x")
	put(t, dir+"/DEAD/tree/a", "x")
	put(t, dir+"/half/other", "x")
	must(t, os.Symlink(source, dir+"/link"))
	f, err := fork.Make(t.Context(), fork.Config{Source: source, Dir: dir})
	must(t, err)
	must(t, fork.Clear(t.Context(), dir))
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 2 { // the one that lives, and what is none
		t.Errorf("left: %v", entries)
	}
	if _, err := os.Stat(f.Path + "/a"); err != nil {
		t.Error(err)
	}
	must(t, f.Close(), os.Remove(dir+"/link"))
	empty(t, dir)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	put(t, dir+"/DEAD/tree/a", "x")
	if err := fork.Clear(ended, dir); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, fork.Clear(t.Context(), dir), fork.Clear(t.Context(), dir+"/none"))
	empty(t, dir)

	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = fork.Clear(t.Context(), dir) // it may meet one that ends itself
			}
		}
	})
	for range 100 {
		f, err := fork.Make(t.Context(), fork.Config{Source: source, Dir: dir})
		must(t, err)
		if _, err := os.Stat(f.Path + "/a"); err != nil {
			t.Error(err)
		}
		must(t, f.Close())
	}
	close(stop)
	wg.Wait()
	empty(t, dir)
}

// A name that somebody turns into a link while it is copied leads nowhere.
func TestSwapped(t *testing.T) {
	source, dir := bed(t)
	secret := put(t, filepath.Dir(source)+"/secret/key", "K-7731")
	for i := range 50 {
		put(t, source+"/d"+strconv.Itoa(i)+"/key", "open")
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			at := source + "/d" + strconv.Itoa(i%50)
			_ = os.Rename(at, at+".old")
			_ = os.Symlink(filepath.Dir(secret), at)
			_ = os.Remove(at)
			_ = os.Rename(at+".old", at)
			_ = os.Remove(at + "/key")
			_ = os.Symlink(secret, at+"/key")
			_ = os.Remove(at + "/key")
			_ = os.WriteFile(at+"/key", []byte("open"), 0o600)
		}
	})
	for range 40 {
		f, err := fork.Make(t.Context(), fork.Config{Source: source, Dir: dir})
		must(t, err)
		err = filepath.WalkDir(f.Path, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "7731") {
				t.Errorf("%s holds %q, %v", path, text, err)
			}
			return nil
		})
		must(t, err, f.Close())
	}
	close(stop)
	wg.Wait()
}

// What cannot be copied is told with its path, and nothing stays behind.
func TestFails(t *testing.T) {
	source, dir := bed(t)
	at := source
	for range 20 {
		at += strings.Repeat("/d", 60)
		must(t, os.MkdirAll(at, 0o700))
	}
	_, err := fork.Make(t.Context(), fork.Config{Source: source, Dir: dir})
	var told *fork.Error
	if !errors.As(err, &told) || !strings.Contains(err.Error(), "more than 1000 folders") || told.Hint() != "" {
		t.Error(err)
	}
	empty(t, dir)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fork.Make(ended, fork.Config{Source: source, Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	empty(t, dir)
	must(t, os.Symlink(source, source+".l"))
	for _, c := range []fork.Config{{Source: source + ".l", Dir: dir}, {Source: source, Dir: dir + "/none"}, {Source: source + "/none", Dir: dir}} {
		if _, err := fork.Make(t.Context(), c); err == nil {
			t.Errorf("%+v was copied", c)
		}
	}
	empty(t, dir)
	if os.Getuid() != 0 {
		return // a full file system is root's to make
	}
	small := dir + "/small"
	must(t, os.Mkdir(small, 0o700))
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mounting a small file system: %v", err)
	}
	defer func() { must(t, unix.Unmount(small, 0)) }()
	must(t, os.RemoveAll(source), os.Mkdir(source, 0o700))
	for i := range 40 {
		put(t, source+"/f"+strconv.Itoa(i), strings.Repeat("x", 8<<10))
	}
	_, err = fork.Make(t.Context(), fork.Config{Source: source, Dir: small})
	if !errors.As(err, &told) || !errors.Is(err, unix.ENOSPC) || !strings.Contains(told.Hint(), "make room there") {
		t.Error(err)
	}
	empty(t, small)
}

// A tree of the size of a project is copied in a moment.
func TestManyFiles(t *testing.T) {
	source, dir := bed(t)
	for i := range 200 {
		for j := range 25 {
			put(t, source+"/d"+strconv.Itoa(i)+"/f"+strconv.Itoa(j), strings.Repeat("x", j*100))
		}
	}
	begin := time.Now()
	f, err := fork.Make(t.Context(), fork.Config{Source: source, Dir: dir})
	must(t, err)
	if took := time.Since(begin); f.Files != 5000 || took > 10*time.Second {
		t.Errorf("%d files in %v", f.Files, took)
	}
	t.Logf("5000 files in %v, removed in %v", time.Since(begin), func() time.Duration {
		begin := time.Now()
		must(t, f.Close())
		return time.Since(begin)
	}())
	if left, _ := os.ReadDir(dir); slices.ContainsFunc(left, fs.DirEntry.IsDir) {
		t.Error("it is left")
	}
}
