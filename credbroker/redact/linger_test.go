package redact

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// dripping is an origin that sends a piece, and waits.
func dripping(w *io.PipeWriter, gap time.Duration, pieces ...string) {
	for _, p := range pieces {
		io.WriteString(w, p)
		time.Sleep(gap)
	}
	w.Close()
}

// step is a text and when it is there, in milliseconds.
type step struct {
	want string
	at   time.Duration
}

// arrives reads a body whose texts come each at its time, and nothing behind
// them.
func arrives(t *testing.T, body io.ReadCloser, steps ...step) {
	t.Helper()
	start := time.Now()
	for _, s := range steps {
		readFor(t, body, s.want)
		if at := time.Since(start); at != s.at*time.Millisecond {
			t.Errorf("%q after %v, want %v ms", s.want, at, int(s.at))
		}
	}
	if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
		t.Errorf("behind it: %q, %v", rest, err)
	}
	body.Close()
}

func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := config()
		cfg.Linger = 50 * time.Millisecond
		r, w := io.Pipe()
		res, _ := answerOf(200, chunked, "")
		res.Body = r
		if err := Answer(res, cfg); err != nil {
			t.Fatal(err)
		}
		go dripping(w, 600*time.Millisecond, "please wait ", "more\nand ", "done")
		arrives(t, res.Body, step{"please wait ", 50}, step{"more\n", 600}, step{"and ", 650}, step{"done", 1250})
	})
}

// What linger let go of still counts as the beginning of a secret: the rest is
// blanked, wherever it was cut.
func TestLingerRemembers(t *testing.T) {
	for cut := 1; cut < len(secret); cut++ {
		synctest.Test(t, func(t *testing.T) {
			cfg, found := config()
			cfg.Linger = 50 * time.Millisecond
			r, w := io.Pipe()
			res, _ := answerOf(200, chunked, "")
			res.Body = r
			if err := Answer(res, cfg); err != nil {
				t.Fatal(err)
			}
			go dripping(w, 600*time.Millisecond, "a "+secret[:cut], secret[cut:]+" b\n")
			got, err := io.ReadAll(res.Body)
			want := "a " + secret[:cut] + " b\n"
			if cut >= 16 { // a find of its own
				want = "a [redacted] b\n"
			}
			if string(got) != want || err != nil || len(*found) != 1 {
				t.Errorf("cut at %d: got %q, %v; want %q; noted %q", cut, got, err, want, *found)
			}
			res.Body.Close()
		})
	}
}

// The clock runs for the oldest byte that is held, not for the last: what drips
// does not wait for ever.
func TestLingerOfADrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := config()
		cfg.Linger = 50 * time.Millisecond
		r, w := io.Pipe()
		res, _ := answerOf(200, chunked, "")
		res.Body = r
		if err := Answer(res, cfg); err != nil {
			t.Fatal(err)
		}
		go dripping(w, 20*time.Millisecond, letterwise("it goes on and on and on")...)
		start := time.Now()
		p := make([]byte, 100)
		for i := 1; ; i++ {
			n, err := res.Body.Read(p)
			if err == io.EOF {
				break
			}
			if want := time.Duration(i*60-10) * time.Millisecond; n != 3 || err != nil || time.Since(start) != want {
				t.Fatalf("%q, %v, after %v; want three letters after %v", p[:n], err, time.Since(start), want)
			}
		}
		res.Body.Close()
	})
}

// In a message the clock frees what is held of it, and half a prefix does not
// confuse it.
func TestLingerInMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := config()
		cfg.Linger = 50 * time.Millisecond
		r, w := io.Pipe()
		res, _ := answerOf(200, chunked, "", "Content-Type", "application/grpc")
		res.Body = r
		if err := Answer(res, cfg); err != nil {
			t.Fatal(err)
		}
		long := message(0, "a message that is not whole")
		go dripping(w, 100*time.Millisecond, "\x00\x00", "\x00\x00\x02ok", long[:20], long[20:])
		arrives(t, res.Body, step{message(0, "ok"), 100}, step{long[:5], 200}, step{long[5:20], 250}, step{long[20:], 300})
	})
}

// Without linger no clock frees anything.
func TestNoClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := config()
		r, w := io.Pipe()
		res, _ := answerOf(200, chunked, "")
		res.Body = r
		if err := Answer(res, cfg); err != nil {
			t.Fatal(err)
		}
		go dripping(w, time.Hour, "wait ")
		start := time.Now()
		readFor(t, res.Body, "wait ")
		if at := time.Since(start); at != time.Hour {
			t.Errorf("after %v", at)
		}
	})
}

// Close ends a Read that waits, and the goroutine with it.
func TestClose(t *testing.T) {
	for _, linger := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			cfg, _ := config()
			cfg.Linger = linger
			r, w := io.Pipe()
			defer w.Close()
			res, _ := answerOf(200, chunked, "")
			res.Body = r
			if err := Answer(res, cfg); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() {
				_, err := res.Body.Read(make([]byte, 10))
				ended <- err
			}()
			synctest.Wait()
			for range 2 {
				if err := res.Body.Close(); err != nil {
					t.Errorf("closing: %v", err)
				}
			}
			if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("got %v", err)
			}
			if _, err := res.Body.Read(make([]byte, 10)); err == nil {
				t.Error("reads on")
			}
		})
	}
}

// A body that was never read is closed like any other.
func TestCloseUnread(t *testing.T) {
	cfg, _ := config()
	cfg.Linger = time.Second
	res, origin := answerOf(200, chunked, "unread")
	if err := Answer(res, cfg); err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || !origin.closed {
		t.Errorf("closing: %v, closed %v", err, origin.closed)
	}
	if n, err := res.Body.Read(make([]byte, 10)); err == nil {
		t.Errorf("read %d bytes", n)
	}
}

// With linger a long body comes through as without.
func TestLingerOfALongBody(t *testing.T) {
	long := strings.Repeat(strings.Repeat("z", 1000)+"\n", 1000)
	cfg, _ := config()
	cfg.Linger = time.Second
	client, url := through(t, cfg, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Auth")
		io.WriteString(w, long+secret+"\n"+long)
		w.Header().Set("X-Auth", secret)
	})
	res := get(t, client, url)
	got, err := io.ReadAll(res.Body)
	if err != nil || string(got) != long+"[redacted]\n"+long {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got := res.Trailer.Get("X-Auth"); got != "[redacted]" {
		t.Errorf("trailer: %q", got)
	}
}
