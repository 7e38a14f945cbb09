package redact

import (
	"slices"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/scan"
)

// counting counts what is asked of a stream.
type counting struct {
	stream
	writes int
}

func (c *counting) Write(dst, p []byte) []byte {
	c.writes++
	return c.stream.Write(dst, p)
}

// Fragments of a byte that come together are scanned together: one by one each
// would cost what is held, and an origin could have a core for itself.
func TestSmallFragments(t *testing.T) {
	set := scan.New(secrets())
	c := &counting{stream: set.Stream(scan.Framed)}
	f := newFrames(c, set.Overwrite)
	in, want := frame(0x02, "x"), frame(0x02, "x")
	for i := range 3000 {
		in += frame(0x00, secret[i%len(secret):i%len(secret)+1])
		want += frame(0x00, "*")
	}
	in, want = in+frame(0x80, "")+frame(0x82, "end"), want+frame(0x80, "")+frame(0x82, "end")
	var out []byte
	for piece := range slices.Chunk([]byte(in), 4000) {
		out, _ = f.Write(out, piece)
	}
	if got := string(out); got != want {
		t.Errorf("%d bytes of %d, %d of them asterisks", len(got), len(want), strings.Count(got, "*"))
	}
	if c.writes > 10 {
		t.Errorf("%d bytes were scanned in %d pieces", len(in), c.writes)
	}
}
