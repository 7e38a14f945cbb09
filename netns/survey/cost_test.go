package survey_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/egressd/egressd/netns/survey"
)

// tree makes n folders of ten names each below root, a hundred to a folder, and
// returns how many names there are.
func tree(tb testing.TB, root string, n int) int {
	tb.Helper()
	names := 0
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("g%d/h%d", i/1000, i/100%10), fmt.Sprintf("f%d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
		for k := range 10 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("some-file-%d.go", k)), nil, 0o644); err != nil {
				tb.Fatal(err)
			}
		}
		names += 11
	}
	return names
}

// The figures of docs/benchmarks.md: a tree of 1,000,000 names (EGRESSD_TREE
// names one that stands), walked whole and up to the default bound, and a small
// project.
func BenchmarkWalk(b *testing.B) {
	large := os.Getenv("EGRESSD_TREE")
	if large == "" {
		large = b.TempDir()
		tree(b, large, 9000)
	}
	small := b.TempDir()
	tree(b, small, 20)
	for _, bb := range []struct {
		name string
		root string
		max  int
	}{{"whole", large, 0}, {"bound50000", large, 50000}, {"small", small, 50000}} {
		b.Run(bb.name, func(b *testing.B) {
			entries := 0
			for b.Loop() {
				f, err := survey.Walk(b.Context(), survey.Config{Roots: []survey.Root{{Path: bb.root, Write: true}}, Recursive: true, MaxEntries: bb.max})
				if err != nil {
					b.Fatal(err)
				}
				entries = f.Entries
			}
			b.ReportMetric(float64(entries), "names")
		})
	}
}
