//go:build linux

package streams_test

import (
	"fmt"
	"io"
	"os"

	"github.com/egressd/egressd/netns/streams"
)

func ExampleOpen() {
	read, write, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := streams.Open(streams.Config{Stdout: write}) // the other two are /dev/null inside
	if err != nil {
		fmt.Println(err)
		return
	}
	program := s.Program()
	if err := s.Attach(nil, os.Getuid(), os.Getgid()); err != nil { // no terminal was made inside
		fmt.Println(err)
		return
	}
	fmt.Fprintln(program.Stdout, "from inside")
	for _, f := range []*os.File{program.Stdin, program.Stdout, program.Stderr} {
		f.Close()
	}
	fmt.Println(s.Terminal(), s.Close())
	write.Close()
	text, err := io.ReadAll(read)
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// false <nil>
	// from inside
	// <nil>
}
