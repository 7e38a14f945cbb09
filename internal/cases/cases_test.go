package cases

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The copy must be the shared folder's: a case that was added there and not
// here would not run on a machine that has only the checkout.
func TestCopyEqualsShared(t *testing.T) {
	dir := Dir(t)
	if dir == Copy(t) {
		t.Log("no shared folder beside the checkout: only the copy is here")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".jsonl") && e.Name() != "README.md" {
			continue
		}
		n++
		want, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(Copy(t), e.Name()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("testdata/cases/%s differs from the shared file (%v): copy it anew", e.Name(), err)
		}
	}
	if n < 8 {
		t.Errorf("%d files in %s, expected seven lists and a README", n, dir)
	}
}

// Each line of later.txt is an id or group and the number of the issue that
// builds it.
func TestLaterNamesIssues(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(Copy(t), "later.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 2 || strings.Trim(f[1], "0123456789") != "" {
			t.Errorf("%q is not an id and an issue", strings.TrimSpace(line))
		}
	}
}
