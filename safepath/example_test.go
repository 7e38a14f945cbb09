package safepath_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/egressd/egressd/safepath"
)

func ExampleOpen() {
	work, err := os.MkdirTemp("", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(work)

	files, err := safepath.Open(safepath.Config{
		Cwd:    work,
		Access: safepath.Write,
		Grants: []safepath.Grant{{Path: filepath.Join(work, ".env"), Access: safepath.Hidden}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer files.Close()

	fmt.Println(files.WriteFile("notes/today.txt", []byte("hello\n")))
	text, err := files.ReadFile("notes/today.txt", 1<<20)
	fmt.Printf("%q %v\n", text, err)
	for _, path := range []string{"../../etc/passwd", ".env"} {
		_, err = files.ReadFile(path, 1<<20)
		fmt.Println(strings.ReplaceAll(err.Error(), files.Cwd(), "WORK"))
	}
	// Output:
	// <nil>
	// "hello\n" <nil>
	// reading ../../etc/passwd leaves cwd (WORK): sandbox.read_paths opens what lies outside
	// reading .env is hidden: sandbox.cwd_allow_hidden shows a dot name, sandbox.read_paths a path
}
