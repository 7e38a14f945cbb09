package scan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever a body is split into, what comes out at each step is what the
// definition says of all that came before.
func TestStreamAgainstDefinition(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 2
	}
	for k, texts := range secretSets {
		secrets := set(texts...)
		s := New(secrets)
		for round := range rounds {
			rnd := rand.New(rand.NewPCG(uint64(k), uint64(round)))
			p := answer(rnd, secrets, 1+rnd.IntN(4))
			cuts := []int{len(p)}
			for range rnd.IntN(6) {
				cuts = append(cuts, rnd.IntN(len(p)+1))
			}
			slices.Sort(cuts)
			checkStream(t, s, secrets, p, cuts, Mode(rnd.IntN(2)), rnd.IntN(3) == 0)
		}
	}
}

func checkStream(t *testing.T, s *Set, secrets []Secret, p []byte, cuts []int, mode Mode, linger bool) {
	t.Helper()
	real, want := s.Stream(mode), naiveStream{secrets: secrets, hold: s.Hold(), mode: mode}
	inPlace := s.Stream(mode)
	took := func(p []byte) []byte {
		return bytes.Clone(inPlace.Take(copy(inPlace.Room(len(p)+3), p)))
	}
	check := func(did string, got, want []byte) {
		t.Helper()
		if !bytes.Equal(got, want) {
			t.Fatalf("secrets %q mode %d\nof   %q\nat %v, %s\ngot  %q\nwant %q", secrets, mode, p, cuts, did, got, want)
		}
	}
	at := 0
	for _, cut := range cuts {
		now := want.write(p[at:cut])
		check("written", real.Write(nil, p[at:cut]), now)
		check("taken", took(p[at:cut]), now)
		if real.Held() != len(want.all)-want.out {
			t.Fatalf("held %d, want %d", real.Held(), len(want.all)-want.out)
		}
		if linger && cut%3 == 0 {
			now := want.release()
			check("released", real.Release(nil), now)
			check("released where it was taken", inPlace.Release(nil), now)
		}
		at = cut
	}
	end := want.release()
	check("closed", real.Close(nil), end)
	check("closed where it was taken", inPlace.Close(nil), end)
	if a, b := real.Entries(), inPlace.Entries(); !slices.Equal(a, b) {
		t.Fatalf("entries %q, where it was taken %q", a, b)
	}
}

// What a Take gave out stays until the next Room, and a set that holds nothing
// passes everything on.
func TestTakeOfNothing(t *testing.T) {
	for _, s := range []*Set{nil, New(nil)} {
		st := s.Stream(Text)
		for _, text := range []string{"one\ntwo", "", "three"} {
			if got := st.Take(copy(st.Room(16), text)); string(got) != text {
				t.Errorf("got %q, want %q", got, text)
			}
		}
		if got := st.Close(nil); len(got) > 0 {
			t.Errorf("closing gave %q", got)
		}
	}
}

// Where no line is finished within it, a text comes out the same however it is
// split.
func TestEverySplit(t *testing.T) {
	for k, texts := range secretSets {
		secrets := set(texts...)
		s := New(secrets)
		rnd := rand.New(rand.NewPCG(uint64(k), 7))
		p := bytes.ReplaceAll(answer(rnd, secrets, 4), []byte("\n"), []byte(" "))
		pad := bytes.Repeat([]byte("padding, "), s.Hold()/9)
		p = slices.Concat(p, pad, answer(rnd, secrets, 3))
		p = bytes.ReplaceAll(p, []byte("\n"), []byte("\t"))
		want, _ := s.Text(p)
		for cut := 0; cut < len(p); cut += 1 + rnd.IntN(len(p)/60) {
			st := s.Stream(Text)
			got := st.Write(nil, p[:cut])
			got = st.Write(got, p[cut:])
			if got = st.Close(got); !bytes.Equal(got, want) {
				t.Fatalf("secrets %q, cut at %d\nin   %q\ngot  %q\nwant %q", texts, cut, p, got, want)
			}
		}
		for _, size := range []int{1, 7, 64} {
			st := s.Stream(Text)
			var got []byte
			for part := range slices.Chunk(p, size) {
				got = st.Write(got, part)
			}
			if got = st.Close(got); !bytes.Equal(got, want) {
				t.Fatalf("secrets %q, in pieces of %d\nin   %q\ngot  %q\nwant %q", texts, size, p, got, want)
			}
		}
	}
}

// A steps is what is done to a stream and what comes out at once.
type steps []struct{ do, in, out string }

func TestStreamSteps(t *testing.T) {
	hold := 12*len(tok) - 1
	dots := func(n int) string { return strings.Repeat(".", n) }
	for _, c := range []struct {
		why     string
		mode    Mode
		steps   steps
		entries []string
	}{
		{"lines go out at once", Text, steps{
			{"write", "data: one\n\ndata: two\n", "data: one\n\ndata: two\n"}, {"close", "", ""}}, nil},
		{"of a line that is not ended so much is held", Text, steps{
			{"write", dots(hold), ""}, {"write", "..", ".."}, {"write", "x\ny", dots(hold) + "x\n"}, {"close", "", "y"}}, nil},
		{"a secret over two writes", Text, steps{
			{"write", "a tok-live-7Qm", ""}, {"write", "4x9Zr2Lp8 b", ""}, {"close", "", "a [redacted] b"}}, []string{"e"}},
		{"a line of base64 goes on in the next", Text, steps{
			{"write", "dG9rLWxpdmUt\r\n", ""}, {"write", "N1FtNHg5WnIyTHA4\r\n", ""}, {"write", "\r\n", "[redacted]\r\n\r\n"}, {"close", "", ""}}, []string{"e"}},
		{"a soft break ends no line", Text, steps{
			{"write", "t: tok-live-7Qm=\n", ""}, {"write", "4x9Zr2Lp8\nx", ""}, {"close", "", "t: [redacted]\nx"}}, []string{"e"}},
		{"any other line does", Text, steps{
			{"write", "h: 746f6b2d6c6976652d\n", "h: 746f6b2d6c6976652d\n"}, {"write", "37516d3478395a72324c7038;\n", ";\n"}, {"close", "", ""}}, []string{"e"}},
		{"a find that goes on behind a line break", Text, steps{
			{"write", "h: 746f6b2d6c6976652d37516d3478395a\n", "h: [redacted]\n"}, {"write", "72324c7038;\n", ";\n"}, {"close", "", ""}}, []string{"e"}},
		{"what was let go counts", Text, steps{
			{"write", "a tok-live-7Qm", ""}, {"release", "", "a tok-live-7Qm"}, {"write", "4x9Zr2Lp8 b\n", " b\n"}, {"close", "", ""}}, []string{"e"}},
		{"a replacement comes once", Text, steps{
			{"write", "a tok-live-7Qm4x9Zr", ""}, {"release", "", "a [redacted]"}, {"write", "2Lp8 b\n", " b\n"}, {"close", "", ""}}, []string{"e"}},
		{"a message", Framed, steps{
			{"write", `{"t":"tok-live-7Qm4`, ""}, {"write", `x9Zr2Lp8"}`, ""}, {"end", "", `{"t":"*********************"}`}, {"close", "", ""}}, []string{"e"}},
		{"line breaks end no message", Framed, steps{
			{"write", "one\ntwo\n", ""}, {"end", "", "one\ntwo\n"}, {"close", "", ""}}, nil},
		{"no secret spans two messages", Framed, steps{
			{"write", "tok-live-7Q", ""}, {"end", "", "tok-live-7Q"}, {"write", "m4x9Zr2Lp8", ""}, {"end", "", "m4x9Zr2Lp8"}, {"close", "", ""}}, nil},
		{"a long message goes on", Framed, steps{
			{"write", dots(hold + 3), "..."}, {"write", tok, dots(len(tok))}, {"end", "", dots(hold-len(tok)) + strings.Repeat("*", len(tok))}}, []string{"e"}},
		{"what was let go of a message is covered as far as it can be", Framed, steps{
			{"write", "a tok-live-7Qm", ""}, {"release", "", "a tok-live-7Qm"}, {"write", "4x9Zr2Lp8 b", ""}, {"end", "", "********* b"}}, []string{"e"}},
	} {
		s := New([]Secret{{[]byte(tok), "[redacted]", "e"}}).Stream(c.mode)
		for k, step := range c.steps {
			var out []byte
			switch step.do {
			case "write":
				out = s.Write(nil, []byte(step.in))
			case "release":
				out = s.Release(nil)
			case "end":
				out = s.EndMessage(nil)
			case "close":
				out = s.Close(nil)
			}
			if string(out) != step.out {
				t.Errorf("%s: step %d gave %q, want %q", c.why, k, out, step.out)
			}
			if held := s.Held(); step.do != "write" && held != 0 {
				t.Errorf("%s: %d bytes held", c.why, held)
			}
		}
		if got := s.Entries(); !slices.Equal(got, c.entries) {
			t.Errorf("%s: entries %q, want %q", c.why, got, c.entries)
		}
		if s.Entries() != nil {
			t.Errorf("%s: entries are told twice", c.why)
		}
	}
}

// A secret is found wherever it stands in a long body, also across the pieces
// that the stream scans at a time.
func TestLongStream(t *testing.T) {
	key := make([]byte, 3000)
	for k := range key {
		key[k] = "ABCDEFGHijklmnop0123456789"[rand.New(rand.NewPCG(uint64(k), 1)).IntN(26)]
	}
	s := New([]Secret{{[]byte(tok), "[redacted]", "e"}, {key, "[key]", "k"}})
	for at := piece - 60; at < piece+60; at += 7 {
		for _, spelled := range []string{tok, wide(tok, false), "%74ok" + tok[3:], string(key)} {
			in := strings.Repeat("z", at) + spelled + strings.Repeat(" y", 40000)
			want, _ := s.Text([]byte(in))
			st := s.Stream(Text)
			got := st.Close(st.Write(nil, []byte(in)))
			if bytes.Contains(got, []byte(spelled)) || !bytes.Equal(got, want) {
				t.Fatalf("at %d %.30q is not found", at, spelled)
			}
		}
	}
}

// How much is held, and how long a write takes, does not tell how much of a
// guess was right.
func TestNothingIsTold(t *testing.T) {
	s := New([]Secret{{[]byte(tok), "[redacted]", "e"}})
	rnd := rand.New(rand.NewPCG(3, 3))
	guesses := [][]byte{}
	for n := range 16 {
		g := []byte("q=" + tok[:n] + strings.Repeat("x", 15-n) + " and so on")
		guesses = append(guesses, g, []byte("q="+fmt.Sprintf("%015d", rnd.IntN(1e9))+" and so on"))
	}
	for _, g := range guesses {
		st := s.Stream(Text)
		for k, c := range g {
			if out := st.Write(nil, []byte{c}); len(out) != 0 || st.Held() != k+1 {
				t.Fatalf("%q: held %d of %d", g, st.Held(), k+1)
			}
		}
	}
	// The least of many runs is what the work takes; the rest is noise, the same
	// for both where they take turns.
	took := [2]time.Duration{time.Hour, time.Hour}
	var texts [2][]byte
	for k := range texts {
		texts[k] = append(bytes.Repeat([]byte("and so on, "), 2000), guesses[30+k]...)
	}
	for turn := range 600 {
		st := s.Stream(Text)
		begin := time.Now()
		st.Close(st.Write(nil, texts[turn%2]))
		took[turn%2] = min(took[turn%2], time.Since(begin))
	}
	if gap := (took[0] - took[1]).Abs(); gap > took[1]/4+5*time.Microsecond {
		t.Errorf("a right guess takes %v, a wrong one %v", took[0], took[1])
	}
}

// A warm stream allocates nothing.
func TestSteadyState(t *testing.T) {
	s := New(benchSecrets())
	for _, text := range benchTexts {
		p := fill(8<<10, text.line)
		st := s.Stream(Text)
		dst := make([]byte, 0, 64<<10)
		for range 20 {
			dst = st.Write(dst[:0], p)
		}
		st.Entries()
		if n := testing.AllocsPerRun(20, func() { dst = st.Write(dst[:0], p) }); n > 1 {
			t.Errorf("%s: %v allocations", text.name, n)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add(uint64(1), uint8(0), []byte("tok-live-7Qm4x9Zr2Lp8"))
	f.Fuzz(func(t *testing.T, seed uint64, which uint8, mix []byte) {
		secrets := set(secretSets[int(which)%len(secretSets)]...)
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := answer(rnd, secrets, 1+rnd.IntN(3))
		for _, c := range mix[:min(len(mix), 20)] {
			p = slices.Insert(p, rnd.IntN(len(p)+1), c)
		}
		checkText(t, New(secrets), secrets, p)
	})
}

func FuzzStream(f *testing.F) {
	f.Add(uint64(1), uint8(0), []byte{3, 20, 40}, true, false)
	f.Fuzz(func(t *testing.T, seed uint64, which uint8, at []byte, framed, linger bool) {
		secrets := set(secretSets[int(which)%len(secretSets)]...)
		rnd := rand.New(rand.NewPCG(seed, 2))
		p := answer(rnd, secrets, 1+rnd.IntN(3))
		cuts := []int{len(p)}
		for _, c := range at[:min(len(at), 6)] {
			cuts = append(cuts, int(c)*len(p)/255)
		}
		slices.Sort(cuts)
		mode := Text
		if framed {
			mode = Framed
		}
		checkStream(t, New(secrets), secrets, p, cuts, mode, linger)
	})
}
