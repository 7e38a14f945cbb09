//go:build linux

package netns

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// runChecks runs inside, in the launcher, and says what does not hold.
func runChecks(checks []Check) []string {
	var failures []string
	for _, c := range checks {
		if err := c.run(); err != nil {
			failures = append(failures, err.Error())
		}
	}
	return failures
}

func (c Check) run() error {
	switch c.Kind {
	case CheckAbsent:
		if _, err := os.Lstat(c.Path); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("checking that %s is absent: it is not (%v)", c.Path, err)
		}
	case CheckReadOnly:
		return checkReadOnly(c.Path)
	case CheckDevices:
		return checkDevices()
	case CheckRoutes:
		return checkRoutes()
	case CheckConfined:
		return checkConfined()
	default:
		return fmt.Errorf("checking %q: no such check", c.Kind)
	}
	return nil
}

// checkReadOnly tries to make a file that has no name, so that nothing is left
// if it succeeds.
func checkReadOnly(folder string) error {
	fd, err := unix.Open(folder, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		_ = unix.Close(fd)
		return fmt.Errorf("checking that %s takes no write: it does", folder)
	}
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOENT) {
		return nil // a folder that is not there takes none either
	}
	return fmt.Errorf("checking that %s takes no write: %w", folder, err)
}

// checkConfined reads what the kernel says of this process, and tries a call
// that the filter refuses.
func checkConfined() error {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("checking privileges: %w", err)
	}
	want := map[string]string{"CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapBnd": "0000000000000000",
		"NoNewPrivs": "1", "Seccomp": "2"}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if w, ok := want[name]; ok && strings.TrimSpace(value) != w {
			return fmt.Errorf("checking privileges: %s is %s, not %s", name, strings.TrimSpace(value), w)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		return fmt.Errorf("checking privileges: the kernel does not tell of %v", slices.Sorted(maps.Keys(want)))
	}
	if _, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); errno != unix.EPERM && errno != unix.ENOSYS {
		return fmt.Errorf("checking the filter: io_uring_setup is not refused (%w)", errno)
	}
	return nil
}

func checkDevices() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing network devices: %w", err)
	}
	for _, l := range links {
		if l.Attrs().Name != "lo" {
			return fmt.Errorf("checking network devices: there is one beside lo, %s", l.Attrs().Name)
		}
	}
	return nil
}

// checkRoutes allows what stays in the namespace: local and broadcast routes,
// and whatever is bound to lo.
func checkRoutes() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding lo: %w", err)
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("listing routes: %w", err)
	}
	for _, r := range routes {
		if r.LinkIndex != lo.Attrs().Index || len(r.MultiPath) > 0 || r.Gw != nil {
			return fmt.Errorf("checking routes: %s leads out", r)
		}
	}
	return nil
}
