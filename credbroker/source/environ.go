package source

import (
	"slices"
	"strings"
)

// handed are the variables that a program on the host is given, beside those
// that begin with one of handedPrefixes: what it needs to know the user, the
// language and where its own settings lie.
var (
	handed         = []string{"HOME", "USER", "LOGNAME", "LANG", "TZ", "DBUS_SESSION_BUS_ADDRESS", "DATABRICKS_CONFIG_FILE", "GH_CONFIG_DIR"}
	handedPrefixes = []string{"LC_", "XDG_", "VAULT_"}
)

// Environment is the fixed environment of every program that is started on the
// host, of environ (NAME=VALUE, the first of a name counts, as for getenv) and
// with path as its PATH: see SafePath. The secrets of other entries, loader
// variables such as LD_PRELOAD, and whatever else there is stay out.
func Environment(environ []string, path string) []string {
	env := []string{"PATH=" + path}
	seen := map[string]bool{}
	for _, kv := range environ {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		if slices.Contains(handed, name) || slices.ContainsFunc(handedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			env = append(env, kv)
		}
	}
	return env
}
