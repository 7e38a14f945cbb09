package main

import (
	"crypto/rand"
	"path/filepath"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
)

// insideLayout is in words that each session replaces by its own: nothing can lie over
// the host's files, and its loopback is the sandbox's too.
var insideLayout = layout{proxy: "127.0.0.1:" + netns.ProxyPort, bundle: netns.Shown + "/ca-certificates.crt",
	java: netns.Shown + "/cacerts", folder: netns.Shown + "/credentials"}

// stores are the truststores that are made, and whether there are others: none
// of the host's is replaced, so all are pointed past.
func (l layout) stores(found []string, loose bool) ([]string, bool) {
	if len(found) == 0 && !loose {
		return nil, false
	}
	return []string{l.java}, true
}

// trustFiles are the files that make programs inside trust the session's
// authority, where variables lead to them. Their texts come later, from
// trustTexts.
func (l layout) trustFiles(stores []string) []mount.Entry {
	return entries(append([]string{l.bundle}, stores...)...)
}

// neverShown are folders that are hidden in any grant.
func neverShown(home string) []string {
	return []string{"/var/run", filepath.Join(home, "Library/Keychains"), filepath.Join(home, "Library/Cookies")}
}

// shadow is a file of the host's that no sandbox may read.
const shadow = "/private/etc/master.passwd"

// networkChecks look from inside for ways out. The dials that must be refused
// are all there is to see.
func networkChecks() []netns.Check { return nil }

// insideFound is what doctor says when a look from inside finds all well.
const insideFound = "/usr takes no write, what is not granted cannot be read"

// newToken is what the explicit proxy asks for: every program of the host can
// reach it, other users' too.
func newToken() string { return rand.Text() }
