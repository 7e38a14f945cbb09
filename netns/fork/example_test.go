//go:build linux

package fork_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/netns/fork"
)

func ExampleMake() {
	work, err := os.MkdirTemp("", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(work)
	copies, err := os.MkdirTemp("", "copies")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(copies)
	if err := os.WriteFile(filepath.Join(work, "a"), []byte("as it was\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	f, err := fork.Make(context.Background(), fork.Config{Source: work, Dir: copies})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(filepath.Join(f.Path, "a"), []byte("spoilt\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(filepath.Join(work, "a"))
	fmt.Printf("%s%d %v %v\n", text, f.Files, err, f.Close())
	// Output:
	// as it was
	// 1 <nil> <nil>
}
