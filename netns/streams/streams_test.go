package streams

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egressd/egressd/netns"
)

// program plays the program: it writes to what it was given and closes it, as
// netns.Start does with its copies.
func program(t *testing.T, s netns.Streams, write func(out, errs io.Writer)) {
	t.Helper()
	write(s.Stdout, s.Stderr)
	for _, f := range []*os.File{s.Stdin, s.Stdout, s.Stderr} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func null(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Both streams into one file, as with >log 2>&1, keep every line and its order.
func TestOneFileForBoth(t *testing.T) {
	for _, flag := range []int{os.O_TRUNC, os.O_APPEND} {
		path := filepath.Join(t.TempDir(), "log")
		log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		same, err := apart(log)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(Config{Stdin: null(t), Stdout: log, Stderr: same})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Attach(nil, os.Getuid(), os.Getgid()); err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		program(t, s.Program(), func(out, errs io.Writer) {
			for i := range 500 {
				fmt.Fprintf(out, "out %d\n", i)
				fmt.Fprintf(errs, "err %d\n", i)
				fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
			}
		})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want.String() {
			t.Errorf("flag %d: %d bytes arrived of %d (%v)", flag, len(got), want.Len(), err)
		}
	}
}

// Two names of one file are not overwritten by each other's position either.
func TestTwoFilesAndAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "errs")
	errs, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(in, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Stdin: stdin, Stdout: w, Stderr: errs})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Attach(nil, os.Getuid(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	p := s.Program()
	if p.Pty || s.Terminal() {
		t.Error("a terminal without one")
	}
	got, err := io.ReadAll(p.Stdin)
	if err != nil || string(got) != "from a file\n" {
		t.Errorf("stdin is %q, %v", got, err)
	}
	program(t, p, func(out, errs io.Writer) {
		fmt.Fprint(out, "to the pipe")
		fmt.Fprint(errs, "to the file")
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	w.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "to the pipe" {
		t.Errorf("the pipe got %q, %v", got, err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "to the file" {
		t.Errorf("the file got %q, %v", got, err)
	}
}

// What cannot be written is an error, a reader that is gone is none.
func TestOutputThatFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	s, err := Open(Config{Stdin: null(t), Stdout: full, Stderr: w})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Attach(nil, os.Getuid(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	program(t, s.Program(), func(out, errs io.Writer) {
		fmt.Fprint(out, "x")
		fmt.Fprint(errs, "x")
	})
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "stdout") || strings.Contains(err.Error(), "stderr") {
		t.Errorf("closing: %v", err)
	}
}

// A folder is no stream.
func TestFolder(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Stdin: dir, Stdout: null(t), Stderr: null(t)}); err == nil || !strings.Contains(err.Error(), "stdin") {
		t.Errorf("opening: %v", err)
	}
}
