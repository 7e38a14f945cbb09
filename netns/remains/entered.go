package remains

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// index is what is known of the index of a repository.
type index struct {
	links []string
	known bool
}

// repository tells of a .git that is new in a folder. Worst is one that the
// repository around it holds as an entry: git status there goes into it and runs
// what its settings say.
func (l *look) repository(folder, path string) {
	if slices.Contains(l.config.Roots, folder) { // where a shell's prompt may ask git
		l.tell(path, Entered, "a new git repository: git run here takes its settings", "")
		return
	}
	around := repositoryAround(folder)
	if around == "" {
		l.tell(path, Settings, "a new git repository: git run in it takes its settings", "")
		return
	}
	i := l.indexes[around]
	if i == nil {
		i = indexOf(around)
		l.indexes[around] = i
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(folder, around), "/")
	switch {
	case !i.known:
		l.tell(path, Entered, "a new git repository, and whether "+around+" holds it as an entry could not be read: git status there may run what its settings say", "")
	case slices.Contains(i.links, rel):
		l.tell(path, Entered, "a new git repository that the index of "+around+" holds: git status there runs what its settings say", "")
	default:
		l.tell(path, Settings, "a new git repository: git run in it, or around it once it is added there, takes its settings", "")
	}
}

// repositoryAround is the folder above with a .git in it, or "".
func repositoryAround(folder string) string {
	for at := folder; at != "/"; {
		at = filepath.Dir(at)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
	return ""
}

// indexOf reads the index of the repository in a folder. A .git that is no
// folder is not followed.
func indexOf(folder string) *index {
	d, err := openRoot(filepath.Join(folder, ".git"))
	if err != nil {
		return &index{}
	}
	defer d.close()
	if _, there := d.at("index"); !there {
		return &index{known: true}
	}
	text, _, err := d.read("index", indexMost)
	if err != nil {
		return &index{}
	}
	sum := sha1.Size
	if config, _, err := d.read("config", gitText); err == nil && bytes.Contains(bytes.ToLower(config), []byte("sha256")) {
		sum = sha256.Size
	}
	links, err := gitlinks(text, sum)
	return &index{links, err == nil}
}

func plural(n int) string { return strconv.Itoa(n) + " names" }
