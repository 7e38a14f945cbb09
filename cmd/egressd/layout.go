package main

import (
	"path/filepath"
	"strings"

	"github.com/egressd/egressd/netns/mount"
)

// layout is where a program inside finds what is made for it.
type layout struct {
	proxy  string // HOST:PORT of the explicit proxy
	bundle string // whom to trust
	java   string // the same, for a JDK whose own store is not replaced
	folder string // files of credentials
}

// url is the proxy's, as variables have it.
func (l layout) url() string { return "http://" + l.proxy }

// file is where a file of a credential lies.
func (l layout) file(name string) string { return filepath.Join(l.folder, name) }

// port is the proxy's host and port.
func (l layout) port() (host, port string) {
	host, port, _ = strings.Cut(l.proxy, ":")
	return host, port
}

// entries are files to be made, each once.
func entries(paths ...string) []mount.Entry {
	var out []mount.Entry
	seen := map[string]bool{}
	for _, path := range paths {
		if !seen[path] {
			seen[path] = true
			out = append(out, mount.Entry{Path: path, Mode: 0o444})
		}
	}
	return out
}
