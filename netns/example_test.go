//go:build linux

package netns_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
)

// withFolder gives f a working folder with a file whose name begins with a dot.
func withFolder(f func(dir string)) {
	dir, err := os.MkdirTemp("", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("secret\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	f(dir)
}

// What a sandbox would see, without making one.
func ExampleLook() {
	withFolder(func(dir string) {
		view, err := netns.Look(netns.Config{
			Cwd: dir, Grants: []mount.Grant{{Path: dir}}, Home: "/home/nobody-here", Network: netns.NoNetwork, Path: "/usr/bin:/bin",
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, root := range view.Plan.Roots {
			fmt.Println(root.Path == dir, root.Write, root.Masks)
		}
	})
	// Output: true false [{.env false false false []}]
}

// A helper started while the rest is still being read. Whoever begins closes.
func ExampleBegin() {
	withFolder(func(dir string) {
		ahead := netns.Begin(dir, netns.Invoker{})
		defer ahead.Close()
		fmt.Println("go on reading the policy")
	})
	// Output: go on reading the policy
}
