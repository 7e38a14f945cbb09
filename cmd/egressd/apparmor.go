package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// apparmorProfile is deploy/apparmor/egressd for a binary that lies at path.
func apparmorProfile(path string) string {
	if strings.ContainsAny(path, " \t\"\\") {
		path = strconv.Quote(path)
	}
	return fmt.Sprintf(`abi <abi/4.0>,
include <tunables/global>

profile egressd %s flags=(unconfined) {
  userns,

  include if exists <local/egressd>
}
`, path)
}

// apparmorSetting is what keeps programs without a profile from making user
// namespaces, and apparmorOn whether there is AppArmor at all.
const (
	apparmorSetting = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	apparmorOn      = "/sys/module/apparmor/parameters/enabled"
)

// examineAppArmor says whether AppArmor stands in the way, which only a sandbox
// that could not be made shows, and what profile to install.
// word gives the text of a small file of the kernel.
func examineAppArmor(so []finding, word func(path string) string) finding {
	restricts := word(apparmorSetting) == "1"
	hindered := false
	for _, f := range so {
		hindered = hindered || f.Level != isOK && (f.Check == "namespaces" || f.Check == "capture")
	}
	switch {
	case word(apparmorOn) != "Y":
		return good("AppArmor", "not on this host")
	case !restricts:
		return good("AppArmor", "on, and lets programs without a profile make user namespaces")
	case !hindered && os.Geteuid() == 0:
		return good("AppArmor", "on; root needs no profile")
	case !hindered:
		return good("AppArmor", "on, and lets egressd make user namespaces: "+confinement(word))
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return bad("AppArmor", fmt.Errorf("finding egressd's own file: %w", err), "")
	}
	advice := "put this into /etc/apparmor.d/egressd, then run: sudo apparmor_parser --replace /etc/apparmor.d/egressd\n" + strings.TrimSpace(apparmorProfile(self))
	if !rootOwned(self) {
		advice = "first install egressd where only root may write, as /usr/local/bin: whatever lies at the path of a profile gets its permission; then " + advice
	}
	return odd("AppArmor", "on, and keeps egressd from making user namespaces: "+confinement(word), advice)
}

// confinement is the profile that this process is under.
func confinement(word func(path string) string) string {
	if profile := word("/proc/self/attr/current"); profile != "" {
		return "it runs under the profile " + profile
	}
	return "it runs under no profile"
}

// rootOwned says that nobody but root can put another file at the path.
func rootOwned(path string) bool {
	for {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o022 != 0 {
			return false
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 {
			return false
		}
		if path == "/" {
			return true
		}
		path = filepath.Dir(path)
	}
}

// word is the text of a small file of the kernel, "" where there is none.
func word(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimRight(string(data), "\x00"))
}
