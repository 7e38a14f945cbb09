package scan

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The scanner finds what the definition says, in texts made to try it.
func TestAgainstDefinition(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for k, texts := range secretSets {
		secrets := set(texts...)
		s := New(secrets)
		for round := range rounds {
			rnd := rand.New(rand.NewPCG(uint64(k), uint64(round)))
			checkText(t, s, secrets, answer(rnd, secrets, 1+rnd.IntN(4)))
		}
	}
}

func checkText(t *testing.T, s *Set, secrets []Secret, p []byte) {
	t.Helper()
	var want []byte
	at := 0
	for _, f := range (&naive{secrets: secrets, p: p}).finds() {
		want = append(append(want, p[at:f.start]...), instead(secrets[f.pat].Replacement, f.read)...)
		at = f.end
	}
	want = append(want, p[at:]...)
	if got, _ := s.Text(p); !bytes.Equal(got, want) {
		t.Fatalf("secrets %q\nin   %q\ngot  %q\nwant %q", secrets, p, got, want)
	}
}
