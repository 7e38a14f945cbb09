package seatbelt_test

import (
	"fmt"
	"strings"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/netns/seatbelt"
)

// The profile of a folder to write in with one hidden file, and of a network
// that is the proxy alone.
func ExampleView() {
	view := seatbelt.View{
		Plan: mount.Plan{Roots: []mount.Root{{
			Source: "/Users/ann/project", Path: "/Users/ann/project", Write: true, Dir: true, Masks: []mount.Mask{{Path: ".env"}},
		}}},
		Exists: func(string) bool { return true },
	}
	profile := view.Profile()
	profile.Network, profile.Proxy = seatbelt.Proxied, 50123
	text, err := profile.Text()
	for line := range strings.Lines(text) {
		if strings.Contains(line, ".env") || strings.Contains(line, "50123") {
			fmt.Print(line)
		}
	}
	fmt.Println(err)
	// Output:
	// (deny file-read* file-test-existence file-map-executable process-exec* file-write* (subpath "/Users/ann/project/.env"))
	// (allow network-outbound (remote ip "localhost:50123"))
	// <nil>
}
