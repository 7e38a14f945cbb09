//go:build linux

package netns

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A fan-in gives what comes to any of its listeners, takes more while it is
// served, and ends with all of them closed.
func TestFanIn(t *testing.T) {
	f := newFanIn()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second := listen(), listen()
	f.add(first)
	got := make(chan string)
	go func() {
		for {
			c, err := f.Accept()
			if err != nil {
				close(got)
				return
			}
			got <- c.LocalAddr().String()
			_ = c.Close()
		}
	}()
	dial := func(l net.Listener) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if at := <-got; at != l.Addr().String() {
			t.Errorf("came to %s, not %s", at, l.Addr())
		}
	}
	dial(first)
	f.add(second)
	dial(second)
	dial(first)
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if _, more := <-got; more {
		t.Error("a connection after the end")
	}
	for _, l := range []net.Listener{first, second} {
		if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
			t.Errorf("%s is still open", l.Addr())
		}
	}
	late := listen()
	f.add(late)
	if _, err := late.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a listener that was added late is open: %v", err)
	}
}

// Questions are answered by their number, in whatever order; one without an
// answer is given up, and its late answer's descriptors are closed.
func TestRemote(t *testing.T) {
	ours, theirs, err := controlPair()
	if err != nil {
		t.Fatal(err)
	}
	far, err := openControl(dupFD(t, theirs))
	if err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	events := make(chan message, 1)
	r := newRemote(ours, func(m message) { events <- m })
	answers := make(chan string, 2)
	for _, kind := range []string{"a", "b"} {
		go func() {
			m, _, err := r.ask(t.Context(), time.Second, message{Kind: kind})
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- kind + m.Kind
		}()
	}
	var asked []message
	for range 2 {
		m, _, err := far.receive()
		if err != nil {
			t.Fatal(err)
		}
		asked = append(asked, m)
	}
	for _, m := range []message{asked[1], asked[0], {Kind: kindStopped, Signal: 20}, {Kind: "c", ID: 99}} {
		if err := far.send(m); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if a := <-answers; a != "aa" && a != "bb" {
			t.Errorf("answer %q", a)
		}
	}
	if m := <-events; m.Signal != 20 {
		t.Errorf("event %+v", m)
	}
	if _, _, err := r.ask(t.Context(), 10*time.Millisecond, message{Kind: "d"}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a question without an answer: %v", err)
	}
	if err := far.close(); err != nil {
		t.Fatal(err)
	}
	<-r.ended
	if _, _, err := r.ask(t.Context(), time.Second, message{Kind: "e"}); err == nil {
		t.Error("an answer from nobody")
	}
}

func dupFD(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
