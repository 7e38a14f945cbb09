//go:build linux

package netns

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that was made anew is another one, also where the file system gives it
// the number of the first at once; one that was only written to is not.
func TestIdentify(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/dev/shm"} {
		path := filepath.Join(dir, "identify-test")
		write := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if id := identify(path); id != (fileID{}) {
			t.Errorf("a name without a file is %+v", id)
		}
		write("a")
		first := identify(path)
		write("b")
		if first != identify(path) {
			t.Errorf("%s: written in place it is another", dir)
		}
		for range 20 {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if first == identify(path) {
				t.Errorf("%s: a file that is gone is the same", dir)
			}
			write("c")
			if first == identify(path) {
				t.Fatalf("%s: a file that was made anew is the same", dir)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
