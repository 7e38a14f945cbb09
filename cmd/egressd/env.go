package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/netns/mount"
)

// passed are the variables of the caller that a program inside may see,
// beside LC_*, and HOME, TMPDIR, USER and LOGNAME, which netns sets: what it needs to speak the user's language to the user's
// terminal, and nothing that could hold a secret.
var passed = []string{"TERM", "COLORTERM", "LANG", "TZ", "SHELL", "EDITOR", "NO_COLOR", "CI"}

// proxyVariables lead clients that honour them to the explicit door. NO_PROXY
// is short and has no wildcards, since curl, Python and Go read it differently;
// ::1 stands twice, since Python's urllib and Node compare it in brackets.
func proxyVariables(url string) []string {
	const direct = "localhost,127.0.0.1,::1,[::1]"
	return []string{
		"HTTP_PROXY=" + url, "http_proxy=" + url,
		"HTTPS_PROXY=" + url, "https_proxy=" + url,
		"NO_PROXY=" + direct, "no_proxy=" + direct,
		"GIT_TERMINAL_PROMPT=0",
	}
}

// clientVariables are what a client of serve needs, who sees this proxy and
// this bundle. A folder of certificates there is none, and its own sandbox is
// its own affair.
func clientVariables(proxy, bundle string) []string {
	trust := slices.DeleteFunc(ca.Variables(bundle, ""), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "SSL_CERT_DIR" || name == "ELECTRON_DISABLE_SANDBOX"
	})
	return append(proxyVariables(proxy), trust...)
}

// sandboxEnviron is the environment inside but for trust and proxy: the
// allowlist, and what the policy passes through. secrets are names that are
// never passed on.
func sandboxEnviron(host, passthrough, secrets []string, visible func(dir string) bool) []string {
	var env []string
	for _, kv := range host {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || slices.Contains(secrets, name) {
			continue
		}
		switch {
		case name == "PATH":
			env = append(env, "PATH="+visiblePath(value, visible))
		case slices.Contains(passed, name), strings.HasPrefix(name, "LC_"), slices.Contains(passthrough, name):
			env = append(env, kv)
		}
	}
	if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }) {
		env = append(env, "PATH="+visiblePath("/usr/local/bin:/usr/bin:/bin", visible))
	}
	return env
}

// withVariables is an environment in which more replaces what there is of the
// same names: of two values of one variable programs take one or the other.
func withVariables(env, more []string) []string {
	set := map[string]bool{}
	for _, kv := range more {
		name, _, _ := strings.Cut(kv, "=")
		set[name] = true
	}
	kept := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return set[name]
	})
	return append(kept, more...)
}

// visiblePath keeps the absolute entries of a search path that exist inside.
func visiblePath(path string, visible func(string) bool) string {
	var keep []string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || !visible(dir) {
			continue
		}
		// The name may be a link that is not there inside: then what it leads to
		// counts. The launcher takes out what does not exist.
		for _, d := range []string{dir, realPath(dir)} {
			if d != "" && (d == dir || !mount.InBase(d)) && !slices.Contains(keep, d) {
				keep = append(keep, d)
			}
		}
	}
	return strings.Join(keep, ":")
}

// within says whether a clean absolute path is the folder or lies below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
