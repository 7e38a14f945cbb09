package policy

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Lookup is where a policy that nobody named is looked for.
type Lookup struct {
	// Cwd is the folder to begin in: absolute, its links followed.
	Cwd string
	// Config is egressd's folder in the user's config folder, "" for none.
	Config string
	// UID is the user whose files count; root's count too, anybody else's
	// never: another user of /tmp must not hand a policy to whoever works
	// there.
	UID int
}

// policyNames are what a policy is called in a folder of work, by precedence.
var policyNames = []string{"egressd.yaml", filepath.Join(".egressd", "config.yaml")}

// Find gives the first policy file of the lookup: egressd.yaml, then
// .egressd/config.yaml, in Cwd and upwards to the nearest folder with a .git
// (outside a repository only in Cwd), then egressd.yaml in Config. path is ""
// where there is none. found says that it lay in a folder of work rather than
// in the user's config folder: such a file needs trust.
func (l Lookup) Find() (path string, found bool) {
	for _, dir := range l.folders() {
		for _, name := range policyNames {
			if file := filepath.Join(dir, name); l.ours(file) {
				return file, true
			}
		}
	}
	if l.Config != "" {
		if file := filepath.Join(l.Config, "egressd.yaml"); l.ours(file) {
			return file, false
		}
	}
	return "", false
}

// PassedOver are the files that Find would have taken, had they not belonged to
// another user: those that come before the one it gives.
func (l Lookup) PassedOver() []string {
	var list []string
	for _, dir := range l.folders() {
		for _, name := range policyNames {
			file := filepath.Join(dir, name)
			if l.ours(file) {
				return list
			}
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				list = append(list, file)
			}
		}
	}
	if l.Config != "" {
		file := filepath.Join(l.Config, "egressd.yaml")
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && !l.ours(file) {
			list = append(list, file)
		}
	}
	return list
}

// Places are what a sandbox must not be able to make or change, since a later
// lookup would find it, whether it is there or not: egressd.yaml and the folder
// .egressd in each folder that is looked at. (The config folder is hidden
// whole.)
func (l Lookup) Places() []string {
	var list []string
	for _, dir := range l.folders() {
		list = append(list, filepath.Join(dir, "egressd.yaml"), filepath.Join(dir, ".egressd"))
	}
	return list
}

// folders are those that are looked at, from Cwd upwards.
func (l Lookup) folders() []string {
	var list []string
	for dir := l.Cwd; ; dir = filepath.Dir(dir) {
		list = append(list, dir)
		if hasGit(dir) {
			return list
		}
		if dir == filepath.Dir(dir) {
			return list[:1]
		}
	}
}

// Above gives the policy files further up, in the repositories around the one
// that Find looks in, nearest first. A sandbox that writes to Cwd can make a
// .git there, and so lead the next lookup past the policy that ruled it.
func (l Lookup) Above() []string {
	looked := l.folders()
	var list, inside []string // inside become part of the list at the next .git
	for dir := looked[len(looked)-1]; hasGit(dir) && dir != filepath.Dir(dir); {
		for dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			for _, name := range policyNames {
				if file := filepath.Join(dir, name); l.ours(file) {
					inside = append(inside, file)
				}
			}
			if hasGit(dir) {
				list, inside = append(list, inside...), nil
				break
			}
		}
	}
	return list
}

func hasGit(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// ours says that a file is there and is the user's or root's. Where it is a
// link, the link's owner counts as well.
func (l Lookup) ours(file string) bool {
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		info, err := stat(file)
		if err != nil || !ownedBy(info, l.UID) {
			return false
		}
	}
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}

// ownedBy says that a file is the user's or root's.
func ownedBy(info fs.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == uid)
}
