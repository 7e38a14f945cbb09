package proxy

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"testing"
)

// writes is a connection that keeps what each Write was given.
type writes struct {
	net.Conn
	all []string
	err error
}

func (w *writes) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.all = append(w.all, string(p))
	return len(p), nil
}

// TestGatheredWrites: what is written between begin and end goes out as one,
// what has no room in between, and all else at once.
func TestGatheredWrites(t *testing.T) {
	conn := &writes{}
	c := &client{Conn: conn}
	put := func(s string) {
		t.Helper()
		if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("writing %d bytes: %d, %v", len(s), n, err)
		}
	}
	long := string(bytes.Repeat([]byte("x"), gatherMost-3))
	longer := string(bytes.Repeat([]byte("y"), gatherMost+1))
	put("at once")
	c.gather.begin()
	put("5\r\n")
	put("chunk")
	put("\r\n")
	if err := c.gather.end(conn.Write); err != nil {
		t.Fatal(err)
	}
	c.gather.begin()
	put("4\r\n")
	put(long)
	put("more")
	put(longer)
	if err := c.gather.end(conn.Write); err != nil {
		t.Fatal(err)
	}
	c.gather.begin()
	if err := c.gather.end(conn.Write); err != nil {
		t.Fatal(err)
	}
	put("end")
	want := []string{"at once", "5\r\nchunk\r\n", "4\r\n" + long, "more", longer, "end"}
	if !slices.Equal(conn.all, want) {
		t.Errorf("%d writes, want %d", len(conn.all), len(want))
	}
}

// TestGatheredWritesFail: a client that is gone is found where they end.
func TestGatheredWritesFail(t *testing.T) {
	gone := errors.New("gone")
	conn := &writes{err: gone}
	c := &client{Conn: conn}
	c.gather.begin()
	if _, err := c.Write([]byte("chunk")); err != nil {
		t.Errorf("gathering: %v", err)
	}
	if err := c.gather.end(conn.Write); !errors.Is(err, gone) {
		t.Errorf("ending: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, gone) {
		t.Errorf("writing on: %v", err)
	}
}
