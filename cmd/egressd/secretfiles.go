package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/egressd/egressd/credbroker"
	secrets "github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/credbroker/token"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
)

// secretFiles are the files of the policy that hold a key or the record. Where
// a grant would show one, it reads as empty, and so does a link that leads to it.
func secretFiles(p *policy.Policy, home string) []string {
	var list []string
	for _, f := range namedSecrets(p, home) {
		for _, path := range placesOf(f) {
			if st, err := os.Lstat(path); err == nil && !st.IsDir() && !slices.Contains(list, path) {
				list = append(list, path)
			}
		}
	}
	return list
}

// namedSecrets are those files as they are named.
func namedSecrets(p *policy.Policy, home string) []string {
	list := p.SecretFiles()
	for _, e := range p.Credentials {
		list = append(list, ownSecrets(e, home)...)
	}
	return slices.DeleteFunc(list, func(f string) bool { return !filepath.IsAbs(f) })
}

// ownSecrets are files beside those that the policy names in which the sources
// of an entry find secrets.
func ownSecrets(e credbroker.Entry, home string) []string {
	var list []string
	if e.Type == credbroker.DatabricksCLI {
		if file, err := token.ProfilesPath(os.Getenv, home); err == nil { // else there is no start
			list = append(list, file)
		}
	}
	for _, s := range sourcesOf(e) {
		if s.Vault != nil {
			list = append(list, filepath.Join(home, ".vault-token"))
		}
	}
	return list
}

// turnable refuses a file with a secret that is reached by a folder which is a
// link where the sandbox can write: it could lead to another file of the host,
// which would then be sent out as the secret.
func turnable(p *policy.Policy, home string, grants []mount.Grant) error {
	for _, f := range namedSecrets(p, home) {
		_, err := secrets.Follow(f, func(at string, info fs.FileInfo, last bool) error {
			if last || info == nil || info.Mode()&os.ModeSymlink == 0 {
				return nil
			}
			for _, g := range grants {
				if g.Write && within(at, g.Path) {
					return &turnableError{f, at, g.Path}
				}
			}
			return nil
		})
		if t, ok := err.(*turnableError); ok { // what is not there is the source's to tell
			return fmt.Errorf("%s%w", ownerOf(p, home, f), t)
		}
	}
	return nil
}

// turnableError is a file, a link on the way to it, and the grant the link is in.
type turnableError struct{ file, link, grant string }

func (e *turnableError) Error() string {
	return fmt.Sprintf("%s is reached by the link %s in %s, where the sandbox can write and turn it elsewhere: name the folder that it leads to", e.file, e.link, e.grant)
}

// ownerOf names the entry that a file is of, for the beginning of an error.
func ownerOf(p *policy.Policy, home, file string) string {
	for _, e := range p.Credentials {
		if slices.Contains(ownSecrets(e, home), file) || slices.ContainsFunc(sourcesOf(e), func(s *credbroker.Source) bool { return s.File == file }) {
			return "credential " + e.ID + ": "
		}
	}
	return ""
}

// placesOf are the real places of an absolute path: of every link that its last
// name is, and of what is there or would be. A mount is not led by links, and
// one that hides a link holds it fast.
func placesOf(path string) []string {
	var list []string
	end, err := secrets.Follow(path, func(at string, _ fs.FileInfo, last bool) error {
		if last && !slices.Contains(list, at) {
			list = append(list, at)
		}
		return nil
	})
	if err != nil {
		end = leads(path)
	}
	if !slices.Contains(list, end) {
		list = append(list, end)
	}
	return list
}
