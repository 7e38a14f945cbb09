// Package seatbelt writes the profile of a sandbox for macOS, as the text that
// `sandbox-exec -f FILE` reads. It looks at nothing: a [Profile] is a plain
// value, and the same value gives the same text on every system.
//
// Apple documents the language of profiles (SBPL) nowhere. What this package
// takes for granted of it:
//
//	the last rule that matches decides, so rules go from shallow to deep
//	the kernel asks with the path of the file itself: links followed, /tmp as
//	  /private/tmp, names in the case in which they are stored
//	on its way through a link it asks for the metadata of the link
//	a file that is to be made is asked for under the name that was given
//	rename and remove ask for file-write-unlink of what goes away
//	"localhost:PORT" is the one address that an address filter can name
//
// Nothing is allowed that is not named here. What stays shut whatever the
// profile says: the keychain and trustd, Apple events, starting programs through
// launchd or LaunchServices, preferences, IOKit, other processes, their
// terminals and their environment, hard links and clones of files, and set-uid
// bits.
//
// What differs from a sandbox of mounts: a hidden name is denied and does not
// look empty; a name that is not there can be kept from being made; and since
// rules are about paths, a hard link that was there before shows the file under
// its other name.
package seatbelt

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Profile is all that a sandbox may do. Paths are absolute and clean; the zero
// value of each field allows nothing.
type Profile struct {
	Places []Place  // what is seen of the host's files
	Dots   []Dots   // dot names that are hidden wherever they come from
	Pins   []string // what is neither renamed nor removed: grants, and folders above what is hidden or read-only
	Absent []string // names that are not there and must not be made, in any spelling that the file system takes for them
	Links  []string // links that a path shown here leads through
	// Sockets are folders in which unix sockets are made and dialled, such as the
	// session's own. No other unix socket can be.
	Sockets  []string
	Terminal string // the program's own, such as /dev/ttys003; empty: none
	Network  Network
	Proxy    int   // port of the proxy on loopback, of Proxied
	Publish  []int // ports on loopback that the program may serve and dial
}

// Place says what may be done with a file, or with a folder and all below it.
// The most specific place wins.
type Place struct {
	Path   string
	Access Access
	// Over makes the place beat those below it too.
	Over bool
}

// Access is what a place allows. The zero value allows nothing.
type Access int

const (
	Hidden Access = iota // neither seen nor made
	Read                 // read and executed
	Write                // read, executed, changed
)

// Dots hides names that begin with a dot in a folder, those that will be made
// too. A place at or below such a name beats it.
type Dots struct {
	Path   string
	Deep   bool     // at every depth, not only in the folder itself
	Except []string // names that stay, in ASCII
}

// Network is what the sandbox has of one.
type Network int

const (
	NoNetwork Network = iota
	Proxied           // one port on loopback, the proxy's
	Unfiltered
)

// Text is the profile. An error is a path or a port that no rule can be made
// of.
func (p Profile) Text() (string, error) {
	if err := p.check(); err != nil {
		return "", err
	}
	w := &writer{}
	w.start()
	if err := w.files(&p); err != nil {
		return "", err
	}
	w.devices(p.Terminal)
	w.network(&p)
	return w.text.String(), nil
}

func (p *Profile) check() error {
	paths := append(append(append(append([]string{}, p.Pins...), p.Absent...), p.Links...), p.Sockets...)
	for _, x := range p.Places {
		paths = append(paths, x.Path)
	}
	for _, x := range p.Dots {
		paths = append(paths, x.Path)
	}
	if p.Terminal != "" {
		paths = append(paths, p.Terminal)
		if path.Dir(p.Terminal) != "/dev" {
			return fmt.Errorf("writing a profile: %q is no terminal", p.Terminal)
		}
	}
	for _, x := range paths {
		if !path.IsAbs(x) || path.Clean(x) != x || !utf8.ValidString(x) || strings.ContainsRune(x, 0) {
			return fmt.Errorf("writing a profile: %q is not an absolute and clean path of characters", x)
		}
	}
	ports := p.Publish
	if p.Network == Proxied {
		ports = append([]int{p.Proxy}, ports...)
	}
	for _, port := range ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("writing a profile: %d is no port", port)
		}
	}
	return nil
}

// Canonical is how the kernel names a path that is written with the links of
// every macOS, or through the volume on which users' files lie. It looks at
// nothing: other links must have been followed before.
func Canonical(p string) string {
	p = path.Clean(p)
	if rest, ok := below(p, "/System/Volumes/Data"); ok {
		for _, top := range []string{"/Applications", "/Library", "/Users", "/Volumes", "/cores", "/opt", "/private", "/usr/local"} {
			if _, ok := below(rest, top); ok {
				p = rest
				break
			}
		}
	}
	for _, link := range []string{"/tmp", "/var", "/etc"} {
		if _, ok := below(p, link); ok {
			return "/private" + p
		}
	}
	return p
}

// below gives what of p lies below folder, with its slash, and whether p is the
// folder or lies in it. Both are clean.
func below(p, folder string) (string, bool) {
	if folder == "/" {
		return p, true
	}
	rest, ok := strings.CutPrefix(p, folder)
	return rest, ok && (rest == "" || rest[0] == '/')
}
