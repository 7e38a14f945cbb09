//go:build linux

package netns

import (
	"os"
	"strconv"
	"syscall"
)

// Names that the binary answers to when the chain starts it.
const (
	helperName   = "egressd-helper"
	idmapName    = "egressd-idmap"
	launcherWord = "launcher"
	jailedWord   = "egressd-launcher-in-firejail"
	programWord  = "program"
	stageWord    = "stage"
)

// The one variable of this package that does something, and it must be one:
// where the process is an actor of the chain it has to take over before main
// and before the packages that are initialised after this one, which cost two
// actors of each start half a millisecond each and are never used.
var _ = takeOver(os.Args)

// takeOver does not return where args, the process's own, say that the chain
// has started it as one of its actors.
func takeOver(args []string) (no bool) {
	switch {
	case len(args) > 0 && args[0] == helperName:
		helper()
	case len(args) > 0 && args[0] == idmapName:
		// Held at its exec, and let go only when egressd has died: ends at once.
	case len(args) == 3 && args[0] == launcherPath && args[1] == launcherWord:
		if fd, err := strconv.Atoi(args[2]); err == nil {
			launcher(fd)
		}
	case len(args) == 3 && args[1] == jailedWord:
		if fd, err := strconv.Atoi(args[2]); err == nil {
			jailed(fd)
		}
	case len(args) == 2 && args[0] == launcherPath && args[1] == programWord:
		becomeProgram(os.NewFile(programSpec, "program"), os.NewFile(programErrors, "errors"))
	case len(args) == 2 && args[0] == launcherPath && args[1] == stageWord:
		awaitCommand()
	default:
		return false
	}
	syscall.Exit(0)
	return true
}
