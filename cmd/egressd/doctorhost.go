package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/egressd/egressd/credbroker"
	keyrings "github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/netguard"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/netns/survey"
	"github.com/egressd/egressd/policy"
)

// publicName has an address wherever names can be looked up.
const publicName = "example.com"

// fakeRanges are what resolvers of some VPN and proxy clients answer with in
// the place of a name's addresses.
var fakeRanges = []netip.Prefix{netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("fc00::/18")}

// examineNames asks for the address of one public name, as the proxy would.
func examineNames(ctx context.Context, p *policy.Policy) finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	server, from := "", "this host's resolver"
	if dns := p.Upstream.DNS; dns != (netip.AddrPort{}) {
		server, from = dns.String(), "upstream.dns "+dns.String()
	}
	resolver, err := netguard.NewResolver(server)
	if err != nil {
		return bad("names", fmt.Errorf("using upstream.dns: %w", err), "")
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", publicName)
	switch {
	case p.Upstream.Proxy != nil:
		return good("names", "the corporate proxy of upstream.proxy looks names up")
	case err != nil && !p.HasRules && p.HasSandbox:
		return good("names", "not looked up by egressd under this policy")
	}
	for _, a := range addrs {
		if slices.ContainsFunc(fakeRanges, func(f netip.Prefix) bool { return f.Contains(a.Unmap()) }) {
			return odd("names", fmt.Sprintf("%s gives fake addresses (%s is %s), as some VPN clients do: Clash, sing-box, WARP", from, publicName, a),
				"set upstream.dns to a resolver that gives real ones, else every request is private_address")
		}
	}
	if err != nil {
		return odd("names", fmt.Sprintf("%s does not know %s: %v", from, publicName, err), "look at /etc/resolv.conf, or set upstream.dns or upstream.proxy")
	}
	return good("names", fmt.Sprintf("%s answers: %s is %s", from, publicName, addrs[0]))
}

// powerful are the groups that can become root, or reach its disks.
var powerful = []string{"docker", "podman", "lxd", "incus", "incus-admin", "libvirt", "disk", "kvm", "sudo", "wheel", "adm", "shadow"}

// groupFiles is how many files are looked at in grants for those of a group.
const groupFiles = 50000

// examineGroups says what a sandbox keeps of its caller's groups: the kernel
// lets an ordinary user drop none.
func examineGroups(i isolator, grants []mount.Grant) finding {
	ids, err := os.Getgroups()
	if err != nil {
		return bad("groups", fmt.Errorf("listing groups: %w", err), "")
	}
	switch {
	case i.bare():
		return odd("groups", "without a sandbox yours stay", "")
	case os.Geteuid() == 0:
		return good("groups", "none inside: a run of root drops them")
	case i.kind == policy.BackendFirejail:
		return good("groups", "none inside: firejail drops them")
	}
	held := map[uint32]string{}
	for _, id := range ids {
		if g, err := user.LookupGroupId(strconv.Itoa(id)); err == nil && slices.Contains(powerful, g.Name) {
			held[uint32(id)] = g.Name
		}
	}
	if len(held) == 0 {
		return good("groups", "yours stay inside, and none of them is one that reaches root or disks")
	}
	var names []string
	for _, n := range held {
		names = append(names, n)
	}
	slices.Sort(names)
	list := strings.Join(names, ", ")
	if file, group := groupFile(grants, held); file != "" {
		return odd("groups", fmt.Sprintf("%s stay inside, and a grant holds a file of %s: %s", list, group, file),
			"do not grant it, or run egressd as a user who is in none of these groups")
	}
	return good("groups", list+" stay inside, but no grant holds a file of theirs, and /run is not shown")
}

// groupFile finds a file in the grants that one of the groups may use.
func groupFile(grants []mount.Grant, groups map[uint32]string) (file, group string) {
	seen := 0
	for _, g := range grants {
		err := filepath.WalkDir(g.Path, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // what cannot be read is not reached from inside either
			}
			if seen++; seen > groupFiles {
				return fs.SkipAll
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && groups[st.Gid] != "" && info.Mode().Perm()&0o070 != 0 {
				file, group = path, groups[st.Gid]
				return fs.SkipAll
			}
			return nil
		})
		if err != nil || file != "" || seen > groupFiles {
			return file, group
		}
	}
	return "", ""
}

// examineSockets names the folders that a sandbox sees and in which programs of
// the host listen.
func examineSockets(cwd string, grants []mount.Grant) finding {
	folders := []string{cwd}
	for _, g := range grants {
		folders = append(folders, g.Path)
	}
	slices.Sort(folders)
	found, _, err := survey.Sockets(slices.Compact(folders))
	if err != nil {
		return bad("sockets", err, "")
	}
	var dirs []string
	for _, s := range found {
		dirs = append(dirs, filepath.Dir(s))
	}
	slices.Sort(dirs)
	if dirs = slices.Compact(dirs); len(dirs) == 0 {
		return good("sockets", "no program of this host listens in a folder that is shown")
	}
	return odd("sockets", "programs of this host listen in folders that are shown: "+strings.Join(dirs, ", "),
		"what is there when a run starts is hidden; a socket that is made again later can be connected to: grant narrower folders")
}

// examineKeyring looks for the user's keyring, where an entry needs one.
func examineKeyring(ctx context.Context, p *policy.Policy) finding {
	needed := slices.ContainsFunc(p.Credentials, func(c credbroker.Entry) bool { return c.Source != nil && c.Source.Keyring != nil })
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := keyrings.Config{Getenv: os.Getenv}.KeyringReady(ctx)
	switch {
	case err == nil:
		return good("keyring", "there is one on the session bus")
	case !needed:
		return good("keyring", "none, and no credential of this policy needs one")
	case errors.Is(err, context.DeadlineExceeded):
		return bad("keyring", errors.New("it does not answer"), "unlock it, or name another source")
	}
	return bad("keyring", err, "log in to a desktop session, or name another source")
}
