//go:build linux

package netns

import (
	"context"
	"errors"
	"os"
	"strings"
)

// obstacle is something of a host that keeps unprivileged programs from
// making namespaces, and what an administrator does about it.
type obstacle struct {
	path, value string // a setting, and the value that forbids
	advice      string
}

var obstacles = []obstacle{
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		"AppArmor keeps programs without a profile from making user namespaces: add a profile with `userns,` for egressd and for bwrap"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "user namespaces are off: set the sysctl kernel.unprivileged_userns_clone to 1"},
	{"/proc/sys/user/max_user_namespaces", "0", "user namespaces are off: set the sysctl user.max_user_namespaces to 10000"},
	{"/proc/sys/user/max_net_namespaces", "0", "network namespaces are off: set the sysctl user.max_net_namespaces to 10000"},
}

// Obstacles says what of this host is known to forbid a sandbox, or transparent
// capture in one. An empty list is no promise: containers forbid without a
// setting that could be read.
func Obstacles() []string {
	var out []string
	for _, o := range obstacles {
		if data, err := os.ReadFile(o.path); err == nil && strings.TrimSpace(string(data)) == o.value {
			out = append(out, o.advice)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return append(out, "/proc/self cannot be read: /proc must be mounted")
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 10 || f[len(f)-3] != "proc" {
			continue
		}
		switch at := f[4]; {
		case at == "/proc" && hidesProcesses(f[len(f)-1]):
			out = append(out, "/proc is mounted with hidepid, under which no fresh /proc can be mounted: mount it without, or give egressd's group access")
		case strings.HasPrefix(at, "/proc/"):
			// A container's masks: the kernel then calls a fresh /proc too revealing.
			return append(out, "parts of /proc are masked, as in a container: run the container with `--security-opt systempaths=unconfined` or the like")
		}
	}
	return out
}

func hidesProcesses(options string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if v, ok := strings.CutPrefix(o, "hidepid="); ok && v != "0" && v != "off" {
			return true
		}
	}
	return false
}

// advice is the first obstacle, or where to look.
func advice() string {
	if o := Obstacles(); len(o) > 0 {
		return o[0]
	}
	return "this host or container forbids namespaces: see egressd doctor"
}

// bwrapFailed explains a bwrap that ended before the launcher was there. Its
// version is only looked at then, since that costs a process.
func bwrapFailed(ctx context.Context, bwrap, said string) error {
	if _, err := BwrapVersion(ctx, bwrap); err != nil {
		return err
	}
	said = strings.TrimSpace(said)
	if said == "" {
		said = "it said nothing"
	}
	return &Unavailable{Problem: "bwrap failed", Advice: advice(), Err: errors.New(said)}
}
