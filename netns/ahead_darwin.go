package netns

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// An Ahead is a part of a sandbox that is made while the policy is read: its
// folder and the port of its proxy. It is good for one Start; any other makes its
// own.
type Ahead struct {
	base     string
	listener net.Listener
	err      error
}

// Begin makes a folder and opens a port. What fails is told by the Start that
// takes it. Close it in any case.
func Begin(_ string, invoker Invoker) *Ahead {
	a := &Ahead{}
	a.base, a.err = newBase(invoker)
	if a.err == nil {
		a.listener, a.err = net.Listen("tcp4", "127.0.0.1:0")
	}
	if a.err != nil {
		a.err = fmt.Errorf("making the sandbox's folder and port: %w", a.err)
	}
	return a
}

// newBase makes the folder of a session, named as the kernel names it.
func newBase(invoker Invoker) (string, error) {
	base, err := os.MkdirTemp("", "egressd-")
	if err != nil {
		return "", err
	}
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return "", err
	}
	for _, part := range []string{homePart, tempPart, shownPart} {
		if err = os.Mkdir(filepath.Join(base, part), 0o700); err == nil && invoker.SudoUID > 0 {
			err = os.Lchown(filepath.Join(base, part), invoker.SudoUID, invoker.SudoGID)
		}
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(base))
		}
	}
	// The program's user reaches its own parts below.
	if invoker.SudoUID > 0 {
		err = os.Chmod(base, 0o711)
	}
	return base, err
}

// Parts of a session's folder.
const (
	homePart    = "home"       // HOME
	tempPart    = "tmp"        // TMPDIR
	shownPart   = "shown"      // files that are made for the program: trust, credentials
	profilePart = "profile.sb" // not for the program
)

// Close removes the folder and closes the port if no Start has taken them.
func (a *Ahead) Close() {
	if a == nil {
		return
	}
	if a.listener != nil {
		_ = a.listener.Close()
	}
	if a.base != "" {
		_ = os.RemoveAll(a.base)
	}
	a.listener, a.base = nil, ""
}

// take gives both away.
func (a *Ahead) take() (base string, l net.Listener, err error) {
	base, l, err = a.base, a.listener, a.err
	a.base, a.listener = "", nil
	return base, l, err
}
