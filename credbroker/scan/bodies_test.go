package scan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Bodies as docs/benchmarks.md has figures of, scanned in place as they come from
// a connection, 32 KiB at a time. Their lines are of many lengths: what a
// processor foresees of lines that are all the same it does not of others.
func BenchmarkBodies(b *testing.B) {
	words := strings.Fields("the quick brown fox no. jumps over a lazy dog, and nobody was there to see it at all. But it")
	prose := func(rnd *rand.Rand) string {
		var line strings.Builder
		for range 5 + rnd.IntN(20) {
			line.WriteString(words[rnd.IntN(len(words))] + " ")
		}
		return line.String()
	}
	for _, body := range []struct {
		name string
		line func(rnd *rand.Rand) string
	}{
		{"plain", func(*rand.Rand) string { return "egressd-bench..." }},
		{"prose", func(rnd *rand.Rand) string { return prose(rnd) + "end.\n" }},
		{"json", func(rnd *rand.Rand) string {
			return fmt.Sprintf(`{"id":%d,"name":"file-17.go","tags":["a","b"],"url":"https://api.test/x/y","ok":true,"note":"%s"},`, rnd.IntN(1e9), prose(rnd))
		}},
		{"log", func(rnd *rand.Rand) string {
			return fmt.Sprintf("2026-11-30T12:%02d:00Z GET /v1/things/%d 200 took 12 ms, \"agent\" %send\n", rnd.IntN(60), rnd.IntN(1e5), prose(rnd))
		}},
	} {
		p := fill(4<<20, body.line)
		for _, secret := range []string{"sk-real-0123456789abcdef0123456789abcdef", "AKIAIOSFODNN7EXAMPLE"} {
			b.Run(fmt.Sprintf("%s/%d", body.name, len(secret)), func(b *testing.B) {
				st, at := New(set(secret)).Stream(Text), 0
				b.SetBytes(32 << 10)
				for b.Loop() {
					copy(st.Room(32<<10), p[at:at+32<<10])
					st.Take(32 << 10)
					at = (at + 32<<10) % len(p)
				}
			})
		}
	}
}
