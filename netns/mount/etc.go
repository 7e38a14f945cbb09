//go:build linux

package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shared are the names of the host's /etc that are shown as they are. What is
// not here stays out: pip.conf, npmrc and their kin may hold passwords.
var shared = []string{
	"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "locale.*", "gai.conf",
	"services", "protocols", "mime.types", "magic", "terminfo", "inputrc", "bash.bashrc", "profile", "profile.d",
	"gitconfig", "java*", "python3*", "perl", "R", "fonts", "crypto-policies", "os-release", "debian_version",
	"shells", "login.defs", "xml", "maven", "manpath.config", "groff", "host.conf", "rpc", "networks", "dotnet",
	"lsb-release", "ssl/openssl.cnf",
}

// etc is the list of the new /etc: what is egressd's own, what is given, and
// what the host shares.
func (m *maker) etc() []Entry {
	text := func(name, data string) Entry {
		return Entry{Path: "/etc/" + name, Mode: 0o444, Data: []byte(data)}
	}
	out := []Entry{
		text("passwd", m.passwd()), text("group", m.group()), text("hostname", m.Hostname+"\n"), text("machine-id", ""),
		{Path: "/etc/mtab", Target: "/proc/self/mounts"},
		{Path: "/etc/ssl/certs", Dir: true},
	}
	out = append(out, m.lookup()...)
	for _, pattern := range shared {
		names, _ := filepath.Glob("/etc/" + pattern) // the only error is a bad pattern
		for _, path := range names {
			if e, ok := host(path); ok {
				out = append(out, e)
			}
		}
	}
	for _, f := range m.Files {
		if Below(f.Path, "/etc") {
			out = slices.DeleteFunc(out, func(e Entry) bool { return e.Path == f.Path })
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return byDepth(a.Path, b.Path) })
	return out
}

// host is a name of the host's /etc: a link stays a link.
func host(path string) (Entry, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return Entry{}, false
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		return Entry{Path: path, Target: target}, err == nil
	}
	return Entry{Path: path, Host: path, Dir: info.IsDir()}, info.IsDir() || info.Mode().IsRegular()
}

// lookup are the files that say how names are found.
func (m *maker) lookup() []Entry {
	own := map[string]string{
		"resolv.conf":   "nameserver 127.0.0.1\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		"hosts":         "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 " + m.Hostname + "\n",
	}
	var out []Entry
	for _, name := range []string{"hosts", "nsswitch.conf", "resolv.conf"} {
		data := []byte(own[name])
		if m.HostNetwork {
			// Read, not bound: resolv.conf is often a link into /run.
			if host, err := os.ReadFile("/etc/" + name); err == nil {
				data = host
			}
		}
		out = append(out, Entry{Path: "/etc/" + name, Mode: 0o444, Data: data})
	}
	return out
}

func (m *maker) passwd() string {
	home, shell := m.Home, m.User.Shell
	if home == "" {
		home = "/"
	}
	if shell == "" {
		shell = "/bin/sh"
	}
	line := func(name string, uid, gid int, home, shell string) string {
		return fmt.Sprintf("%s:x:%d:%d::%s:%s\n", name, uid, gid, home, shell)
	}
	out := ""
	if m.User.UID != 0 {
		out = line("root", 0, 0, "/", "/usr/sbin/nologin")
	}
	out += line(m.User.Name, m.User.UID, m.User.GID, home, shell)
	if m.User.UID != 65534 {
		out += line("nobody", 65534, 65534, "/nonexistent", "/usr/sbin/nologin")
	}
	return out
}

func (m *maker) group() string {
	out := ""
	if m.User.GID != 0 {
		out = "root:x:0:\n"
	}
	out += fmt.Sprintf("%s:x:%d:\n", m.User.Group, m.User.GID)
	if m.User.GID != 65534 {
		out += "nogroup:x:65534:\n"
	}
	return out
}

// files are the given files outside /etc. Each must lie over one that is
// there, or in a part of the view that is made new.
func (m *maker) files(p *Plan) ([]Entry, error) {
	var out []Entry
	for _, f := range m.Files {
		if Below(f.Path, "/etc") {
			continue
		}
		if !filepath.IsAbs(f.Path) || filepath.Clean(f.Path) != f.Path {
			return nil, fmt.Errorf("placing %s: the path is not absolute and clean", f.Path)
		}
		if Below(f.Path, "/run/egressd") || m.inFresh(f.Path, p) {
			out = append(out, f)
			continue
		}
		info, err := os.Lstat(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			m.note("%s is not placed: the host has no such file", f.Path)
		case err != nil:
			return nil, fmt.Errorf("placing a file: %w", err)
		case !info.Mode().IsRegular():
			m.note("%s is not placed: it is no regular file", f.Path)
		default:
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return byDepth(a.Path, b.Path) })
	return out, nil
}

// inFresh reports whether path lies in a fresh folder and in no root below it.
func (m *maker) inFresh(path string, p *Plan) bool {
	best, fresh := "", false
	for _, f := range p.Fresh {
		if Below(path, f.Path) && len(f.Path) > len(best) {
			best, fresh = f.Path, true
		}
	}
	for _, r := range p.Roots {
		if Below(path, r.Path) && len(r.Path) > len(best) {
			best, fresh = r.Path, false
		}
	}
	return fresh && !strings.HasSuffix(path, "/")
}
