package scan

import (
	"bytes"
	"testing"
)

// The bodies that docs/benchmarks.md has figures of, scanned in place as they
// come from a connection: 16 KiB at a time.
func BenchmarkBodies(b *testing.B) {
	for _, body := range []struct{ name, piece string }{
		{"harness", "egressd-bench..."},
		{"prose", "The quick brown fox no. 1234 jumps over the lazy dog, and nobody was there to see it.\n"},
		{"json", `{"id":1234567,"name":"file-17.go","tags":["a","b"],"size":4711,"url":"https://api.test/x/y","ok":true,"note":"a text of some words"},`},
		{"log", "2026-11-30T12:00:00Z GET /v1/things/4711 200 took 12 ms, \"agent\" wrote a line of log like any other\n"},
	} {
		for _, secret := range []string{"sk-real-0123456789abcdef0123456789abcdef", "AKIAIOSFODNN7EXAMPLE"} {
			b.Run(body.name+"/"+secret[:2], func(b *testing.B) {
				st := New(set(secret)).Stream(Text)
				p := bytes.Repeat([]byte(body.piece), 64<<10/len(body.piece)+1)[:64<<10]
				b.SetBytes(int64(len(p)))
				for b.Loop() {
					for at := 0; at < len(p); at += 16 << 10 {
						copy(st.Room(32<<10), p[at:at+16<<10])
						st.Take(16 << 10)
					}
				}
			})
		}
	}
}
