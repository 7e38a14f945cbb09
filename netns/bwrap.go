package netns

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/egressd/egressd/netns/mount"
)

// oldestBwrap is the first version with --disable-userns.
var oldestBwrap = []int{0, 8}

// FindBwrap looks bwrap up in path as FindProgram does.
func FindBwrap(path string, avoid []string) (string, error) {
	if at, ok := FindProgram("bwrap", path, avoid); ok {
		return at, nil
	}
	return "", &Unavailable{Problem: "bwrap is not installed", Advice: "install the package bubblewrap, version 0.8 or newer"}
}

// FindProgram looks a program of the host up in path, a PATH. Relative folders
// are passed over, and those that a sandbox may write (avoid): what lies there
// would run on the host. The answer is without links, so that none can be
// swapped later.
func FindProgram(name, path string, avoid []string) (string, bool) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		at := filepath.Join(dir, name)
		real, err := filepath.EvalSymlinks(at)
		if err != nil || inAny(real, avoid) || inAny(at, avoid) {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return real, true
		}
	}
	return "", false
}

// inAny reports whether one of the folders holds path. The root folder as a
// grant leaves the system's own folders as they are, read-only.
func inAny(path string, folders []string) bool {
	for _, f := range folders {
		if f == "/" && mount.InBase(path) {
			continue
		}
		if mount.Below(path, f) {
			return true
		}
	}
	return false
}

// BwrapVersion asks bwrap for its version, and refuses one that is too old.
func BwrapVersion(ctx context.Context, bwrap string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bwrap, "--version")
	cmd.Env, cmd.Dir = []string{}, "/"
	out, err := cmd.Output()
	if err != nil {
		return "", &Unavailable{Problem: bwrap + " does not run", Advice: "reinstall the package bubblewrap", Err: err}
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "bubblewrap ")
	if olderThan(version, oldestBwrap) {
		return version, &Unavailable{
			Problem: fmt.Sprintf("bwrap %s is too old, %d.%d is needed", version, oldestBwrap[0], oldestBwrap[1]),
			Advice:  "install a newer package bubblewrap",
		}
	}
	return version, nil
}

func olderThan(version string, oldest []int) bool {
	parts := strings.Split(version, ".")
	for i, want := range oldest {
		have := 0
		if i < len(parts) {
			n, err := strconv.Atoi(parts[i])
			if err != nil {
				return true // not a version at all
			}
			have = n
		}
		if have != want {
			return have < want
		}
	}
	return false
}
