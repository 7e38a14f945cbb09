//go:build linux

package census_test

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/census"
)

// The tree of this process's own namespace.
func ExampleNew() {
	in := census.Inside{}
	var err error
	for _, f := range []struct {
		at    **os.File
		path  string
		flags int
	}{
		{&in.Proc, "/proc", os.O_RDONLY}, {&in.Segments, "/proc/sysvipc/shm", os.O_RDONLY},
		{&in.Mounts, "/proc/self/mountinfo", os.O_RDONLY}, {&in.Root, "/", unix.O_PATH},
	} {
		if *f.at, err = os.OpenFile(f.path, f.flags, 0); err != nil {
			fmt.Println(err)
			return
		}
	}
	c, err := census.New(in)
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, err := c.Count(1 << 60)
	fmt.Println(sum.Memory > 0, err, c.Close())
	// Output: true <nil> <nil>
}
