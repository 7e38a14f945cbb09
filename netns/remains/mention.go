package remains

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A Mention is a path that git's settings name.
type Mention struct {
	Path string // absolute; it need not exist
	Key  string // the setting: core.hookspath, include.path and so on
}

// Include says that git takes settings from there.
func (m Mention) Include() bool { return m.Key == "include.path" || m.Key == "includeif.path" }

const (
	mentions = 128 // of one repository
	included = 16  // files of settings that are read for one
)

// Mentioned are the files and folders that the settings of a git folder name:
// what they include, the folder of its hooks, and files beside the repository
// that a command in them begins with. More settings are those of the user and of
// the system, which count for every repository.
func Mentioned(git string, more []string, home string) []Mention {
	tree := git
	if filepath.Base(git) == ".git" {
		tree = filepath.Dir(git)
	}
	m := &mentioning{tree: tree, home: home, read: map[string]bool{}}
	for _, file := range more {
		m.file(file, filepath.Dir(file))
	}
	for _, name := range []string{"config", "config.worktree"} {
		m.file(filepath.Join(git, name), git)
	}
	return m.found
}

type mentioning struct {
	tree, home string
	read       map[string]bool
	found      []Mention
}

func (m *mentioning) file(path, folder string) {
	if m.read[path] || len(m.read) >= included {
		return
	}
	m.read[path] = true
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	d := dir{fd, folder}
	defer d.close()
	text, _, err := d.read(filepath.Base(path), gitText)
	if err != nil {
		return
	}
	for _, s := range settings(string(text)) {
		key := s.section + "." + s.key
		switch {
		case key == "include.path" || key == "includeif.path":
			if at := m.path(s.value, folder); m.add(at, key) {
				m.file(at, filepath.Dir(at))
			}
		case key == "core.hookspath" || key == "core.attributesfile":
			m.add(m.path(s.value, m.tree), key)
		case s.section != "remote" && s.section != "branch" && s.section != "url" && s.section != "user":
			for word := range strings.FieldsSeq(strings.TrimPrefix(s.value, "!")) {
				at := m.path(strings.Trim(word, `"'`), m.tree)
				if st, err := os.Lstat(at); err == nil && !st.IsDir() {
					m.add(at, key)
				}
			}
		}
	}
}

func (m *mentioning) path(value, folder string) string {
	switch {
	case value == "~" || strings.HasPrefix(value, "~/"):
		return filepath.Join(m.home, value[1:])
	case filepath.IsAbs(value):
		return filepath.Clean(value)
	}
	return filepath.Join(folder, value)
}

func (m *mentioning) add(path, key string) bool {
	if len(m.found) >= mentions {
		return false
	}
	if slices.Contains(m.found, Mention{path, key}) {
		return true
	}
	m.found = append(m.found, Mention{path, key})
	return true
}
