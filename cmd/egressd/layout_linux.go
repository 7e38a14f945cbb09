package main

import (
	"os"
	"path/filepath"

	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
)

// insideLayout is the same in every sandbox.
var insideLayout = layout{proxy: "127.0.0.1:3128", bundle: "/etc/ssl/certs/ca-certificates.crt", java: javaStore, folder: "/etc/egressd"}

// stores are the truststores that are replaced, and whether there are others.
func (l layout) stores(found []string, loose bool) ([]string, bool) { return found, loose }

// trustFiles are the files that make programs inside trust the session's
// authority: the bundle at every place the host has one, and the truststores of
// JDKs. Their texts come later, from trustTexts.
func (l layout) trustFiles(stores []string) []mount.Entry {
	paths := []string{l.bundle}
	for _, place := range ca.Places() {
		if st, err := os.Stat(place); err != nil || !st.Mode().IsRegular() {
			continue
		}
		paths = append(paths, realPath(place))
		// /etc is made new, so there the name itself is made too; elsewhere a
		// link leads to what was replaced.
		if dir := realPath(filepath.Dir(place)); dir != "" && within(dir, "/etc") {
			paths = append(paths, filepath.Join(dir, filepath.Base(place)))
		}
	}
	return entries(append(paths, stores...)...)
}

// neverShown are folders that show empty in any grant.
func neverShown(string) []string { return []string{"/run", "/var/run"} }

// shadow is a file of the host's that no sandbox may read.
const shadow = "/etc/shadow"

// networkChecks look from inside for ways out.
func networkChecks() []netns.Check {
	return []netns.Check{{Kind: netns.CheckDevices}, {Kind: netns.CheckRoutes}}
}

// insideFound is what doctor says when a look from inside finds all well.
const insideFound = "/usr takes no write, the host's /etc is not there, no network but lo"

// newToken is what the explicit proxy asks for: nothing, since nobody but the
// sandbox can reach it.
func newToken() string { return "" }
