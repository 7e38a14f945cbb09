package survey_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/egressd/egressd/netns/survey"
)

func ExampleWalk() {
	dir, err := os.MkdirTemp("", "tree")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"lib/.git", "app/.cache"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			fmt.Println(err)
			return
		}
	}
	found, err := survey.Walk(context.Background(), survey.Config{Roots: []survey.Root{{Path: dir, Write: true}}, Recursive: true, MaxEntries: 50000})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range append(found.Hidden, found.Git...) {
		fmt.Println(strings.TrimPrefix(path, dir))
	}
	// Output:
	// /app/.cache
	// /lib/.git
	// /lib/.git
}
