package main

import (
	"encoding/base64"
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

// url is the proxy's, as variables have it, with the token it asks for.
func (l layout) url(token string) string {
	if token == "" {
		return "http://" + l.proxy
	}
	return "http://" + proxyUser + ":" + token + "@" + l.proxy
}

// proxyUser stands before the token, for which any user will do.
const proxyUser = "sandbox"

// tokenField is the line of a request that shows the token.
func tokenField(token string) string {
	if token == "" {
		return ""
	}
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(proxyUser+":"+token)) + "\r\n"
}

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
