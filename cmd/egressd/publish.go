package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/egressd/egressd/netns"
)

// parsePublish reads the --publish flags, PORT or PORT:HOSTPORT each.
func parsePublish(list []string) ([]netns.Publish, error) {
	var out []netns.Publish
	for _, text := range list {
		inside, host, ok := strings.Cut(text, ":")
		if !ok {
			host = inside
		}
		var p netns.Publish
		for _, x := range []struct {
			text string
			to   *int
		}{{inside, &p.Port}, {host, &p.HostPort}} {
			n, err := strconv.ParseUint(x.text, 10, 16)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("--publish is PORT or PORT:HOSTPORT, each from 1 to 65535, not %q", text)
			}
			*x.to = int(n)
		}
		out = append(out, p)
	}
	return out, nil
}
