package main

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
)

// grantsOf are the folders that the policy opens, with links followed. What
// does not exist is named on w and left out.
func grantsOf(p *policy.Policy, cwd, home string, w io.Writer) ([]mount.Grant, error) {
	grants := []mount.Grant{{Path: cwd}}
	lists := []struct {
		key   string
		paths []string
		write bool
	}{{"read_paths", p.Sandbox.ReadPaths, false}, {"write_paths", p.Sandbox.WritePaths, true}, {"write_files", p.Sandbox.WriteFiles, true}}
	// Folders in which a link may have been planted by an earlier sandbox.
	inside := []string{cwd}
	for _, l := range lists {
		for _, written := range l.paths {
			inside = append(inside, policy.Expand(written, cwd, home))
		}
	}
	for _, l := range lists {
		for i, written := range l.paths {
			path := policy.Expand(written, cwd, home)
			real, err := filepath.EvalSymlinks(path)
			if os.IsNotExist(err) {
				fmt.Fprintf(w, "egressd: %s[%d]: %s does not exist\n", l.key, i, plainText(written))
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("granting %s[%d]: %w", l.key, i, err)
			}
			err = staysInside(path, real, inside)
			if err == nil && l.key == "write_files" {
				err = checkWriteFile(real)
			}
			if err != nil {
				return nil, fmt.Errorf("granting %s[%d]: %w", l.key, i, err)
			}
			grants = append(grants, mount.Grant{Path: real, Write: l.write})
		}
	}
	// A folder that is granted twice is writable if one of the two says so.
	slices.SortStableFunc(grants, func(a, b mount.Grant) int {
		switch {
		case a.Path != b.Path:
			return 0
		case a.Write && !b.Write:
			return -1
		case b.Write && !a.Write:
			return 1
		}
		return 0
	})
	var out []mount.Grant
	for _, g := range grants {
		if i := slices.IndexFunc(out, func(o mount.Grant) bool { return o.Path == g.Path }); i >= 0 {
			out[i].Write = out[i].Write || g.Write
			continue
		}
		out = append(out, g)
	}
	return out, nil
}

// grantNames are the paths by which the policy names what it opens, where links
// lead there.
func grantNames(p *policy.Policy, cwd, home string) []string {
	var list []string
	for _, written := range slices.Concat(p.Sandbox.ReadPaths, p.Sandbox.WritePaths, p.Sandbox.WriteFiles) {
		if path := policy.Expand(written, cwd, home); realPath(path) != path {
			list = append(list, path)
		}
	}
	return list
}

// staysInside refuses a path that lies in a granted folder but whose links
// lead out of it: yesterday's sandbox may have made the link.
func staysInside(path, real string, folders []string) error {
	for _, folder := range folders {
		if path == folder || !within(path, folder) {
			continue
		}
		realFolder, err := filepath.EvalSymlinks(folder)
		if err != nil {
			continue // a grant that does not exist holds no link
		}
		if !within(real, realFolder) {
			return fmt.Errorf("%s is or passes a link that leaves %s, to %s: grant that path itself if it is meant", path, folder, real)
		}
	}
	return nil
}

// hidden are the folders that show empty in any grant: as they are named, and
// where their names lead through links, since grants are without. One that is
// missing below a writable grant is made, so others than egressd's own are among
// them only if they are there.
func hidden(d dirs, home string) []string {
	named := []string{d.config, d.state, d.control}
	for _, path := range append(neverShown(home), filepath.Join(home, ".gnupg"), os.Getenv("XDG_RUNTIME_DIR")) {
		if _, err := os.Lstat(path); err == nil && filepath.IsAbs(path) && realPath(path) != "" {
			named = append(named, filepath.Clean(path))
		}
	}
	var list []string
	for _, path := range named {
		for _, p := range placesOf(path) {
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// leads is where a path leads through links, also where its last names are not
// there yet: a folder that is made later under them would lie there.
func leads(path string) string {
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real := realPath(at); real != "" {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// readOnly are the files that rule the sandbox, now or next time.
func (s *source) readOnly(p *policy.Policy, cwd string) []string {
	list := p.Pins()
	for _, l := range []policy.Lookup{s.lookup(), {Cwd: cwd, Config: s.dirs.config, UID: s.dirs.uid}} {
		list = append(list, l.Places()...)
	}
	if s.path == "" {
		list = slices.DeleteFunc(list, func(f string) bool { return !filepath.IsAbs(f) })
	}
	var out []string
	for _, f := range list {
		if !filepath.IsAbs(f) {
			continue
		}
		for _, path := range placesOf(f) {
			if !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}

func realPath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return real
}

// trustTexts are the texts of trustFiles. Without an authority they hold what
// the host trusts.
func trustTexts(roots *ca.Roots, authority *ca.Issuer, entries []mount.Entry, stores []string) (map[string][]byte, error) {
	var cert *x509.Certificate
	var more [][]byte
	if authority != nil {
		cert, more = authority.Certificate(), [][]byte{authority.PEM()}
	}
	bundle := roots.Bundle(more...)
	texts := map[string][]byte{}
	for _, e := range entries {
		texts[e.Path] = bundle
	}
	if len(stores) == 0 {
		return texts, nil
	}
	store, err := ca.Truststore(roots, cert)
	if err != nil {
		return nil, err
	}
	for _, path := range stores {
		texts[path] = store
	}
	return texts, nil
}

// visibleIn says whether a folder of the host is there inside: the system's
// own, or one that a grant opens.
func visibleIn(grants []mount.Grant) func(string) bool {
	return func(dir string) bool {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return false
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() {
			return false
		}
		return mount.InBase(dir) && mount.InBase(real) ||
			slices.ContainsFunc(grants, func(g mount.Grant) bool { return within(real, g.Path) && !dotted(real, g.Path) })
	}
}

// dotted says that a path passes a dot name below the grant, which is hidden.
func dotted(path, grant string) bool {
	rel, err := filepath.Rel(grant, path)
	return err == nil && rel != "." && rel[0] == '.' && rel != ".venv" && !within(rel, ".venv")
}
