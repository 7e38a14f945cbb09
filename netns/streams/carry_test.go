package streams

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Two streams that go to one file, as `>file 2>&1` has them, and what the
// caller writes behind them, do not overwrite each other.
func TestOneFileForTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	done := make(chan error, 2)
	var ends []*os.File
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Dup(int(file.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, w)
		go func() {
			done <- carry(fd, int(r.Fd()))
			_ = unix.Close(fd)
			_ = r.Close()
		}()
	}
	time.Sleep(20 * time.Millisecond) // both wait by now
	for i, text := range []string{"one\n", "two\n", "three\n"} {
		if _, err := ends[i%2].WriteString(text); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, w := range ends {
		_ = w.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if _, err := file.WriteString("the caller\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := "one\ntwo\nthree\nthe caller\n"; err != nil || string(got) != want {
		t.Errorf("the file holds %q, not %q (%v)", got, want, err)
	}
}
