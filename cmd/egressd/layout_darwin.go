package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
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

// noFork is why no copy is made.
const noFork = "os_env.fork needs Linux: macOS cannot show a copy of the working folder in its place"

// refusedHere is what a policy asks for that this platform lacks.
func refusedHere(p *policy.Policy) []error {
	var errs []error
	no := func(found bool, text string) {
		if found {
			errs = append(errs, errors.New(text))
		}
	}
	no(p.Fork, noFork)
	no(p.Sandbox.Limits.Memory > 0, "sandbox.limits.memory needs Linux: macOS bounds no program's memory")
	no(p.Sandbox.Limits.Processes > 0, "sandbox.limits.processes needs Linux: macOS counts the processes of a user, not of a sandbox")
	for _, c := range p.Credentials {
		switch c.Type {
		case "gh_basic", "github_app", "databricks_cli":
			errs = append(errs, fmt.Errorf("credential %s: %s is for programs written in Go, and on macOS these ask the system whom to trust and ignore SSL_CERT_FILE, so they could not speak to egressd; for git use git_https", c.ID, c.Type))
		}
	}
	return errs
}

// shadow is a file of the host's that no sandbox may read.
const shadow = "/private/etc/master.passwd"

// networkChecks look from inside for ways out. The dials that must be refused
// are all there is to see.
func networkChecks() []netns.Check { return nil }
