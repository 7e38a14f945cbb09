package netns

import (
	"os"
	"strconv"
)

// Names that the binary answers to when the chain starts it.
const (
	helperName   = "egressd-helper"
	idmapName    = "egressd-idmap"
	keeperName   = "egressd-keeper"
	launcherWord = "launcher"
	programWord  = "program"
)

// Child takes over when args, the process's own, say that the chain has
// started it as one of its actors, and reports that it did: main then returns
// with status 0. It must be called before anything else.
func Child(args []string) (handled bool) {
	switch {
	case len(args) > 0 && args[0] == helperName:
		helper()
	case len(args) > 0 && args[0] == keeperName:
		keeper()
	case len(args) > 0 && args[0] == idmapName:
		// Held at its exec, and let go only when egressd has died: ends at once.
	case len(args) == 3 && args[0] == launcherPath && args[1] == launcherWord:
		if fd, err := strconv.Atoi(args[2]); err == nil {
			launcher(fd)
		}
	case len(args) == 2 && args[0] == launcherPath && args[1] == programWord:
		becomeProgram(os.NewFile(programSpec, "program"), os.NewFile(programErrors, "errors"))
	default:
		return false
	}
	return true
}
