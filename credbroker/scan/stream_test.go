package scan

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever a body is split into, what comes out at each step is what the
// definition says of all that came before.
func TestStreamAgainstDefinition(t *testing.T) {
	rounds := 12
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
	check := func(did string, got, want []byte) {
		t.Helper()
		if !bytes.Equal(got, want) {
			t.Fatalf("secrets %q mode %d\nof   %q\nat %v, %s\ngot  %q\nwant %q", secrets, mode, p, cuts, did, got, want)
		}
	}
	at := 0
	for _, cut := range cuts {
		check("written", real.Write(nil, p[at:cut]), want.write(p[at:cut]))
		if real.Held() != len(want.all)-want.out {
			t.Fatalf("held %d, want %d", real.Held(), len(want.all)-want.out)
		}
		if linger && cut%3 == 0 {
			check("released", real.Release(nil), want.release())
		}
		at = cut
	}
	check("closed", real.Close(nil), want.release())
}

// Where no line is finished within it, a text comes out the same however it is
// split.
func TestEverySplit(t *testing.T) {
	for k, texts := range secretSets {
		secrets := set(texts...)
		s := New(secrets)
		rnd := rand.New(rand.NewPCG(uint64(k), 7))
		p := bytes.ReplaceAll(answer(rnd, secrets, 12), []byte("\n"), []byte(" "))
		pad := bytes.Repeat([]byte("padding, "), s.Hold()/9)
		p = slices.Concat(p, pad, answer(rnd, secrets, 3))
		p = bytes.ReplaceAll(p, []byte("\n"), []byte("\t"))
		want, _ := s.Text(p)
		for cut := range len(p) {
			st := s.Stream(Text)
			got := st.Write(nil, p[:cut])
			got = st.Write(got, p[cut:])
			if got = st.Close(got); !bytes.Equal(got, want) {
				t.Fatalf("secrets %q, cut at %d\nin   %q\ngot  %q\nwant %q", texts, cut, p, got, want)
			}
		}
		for _, size := range []int{1, 2, 3, 7, 64} {
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
