//go:build linux

package mount_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/netns/mount"
)

func ExampleMake() {
	dir, err := os.MkdirTemp("", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{".env", "policy.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	plan, notes, err := mount.Make(mount.Request{
		Cwd: dir, Grants: []mount.Grant{{Path: dir, Write: true}, {Path: filepath.Join(dir, "nowhere")}},
		ReadOnly: []string{filepath.Join(dir, "policy.yaml")}, Home: "/home/nobody-here", Launcher: "/usr/bin/true",
		User: mount.User{UID: 1000, GID: 1000, Name: "user", Group: "user"}, Hostname: "box",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	root := plan.Roots[0]
	fmt.Println(root.Write, root.Parts, root.Masks[0].Path, len(notes))
	// Output: true [policy.yaml] .env 1
}
