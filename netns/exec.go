package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// execError says why a program cannot be started, with the shell's status for
// it: 127 when there is none, else 126.
type execError struct {
	Name    string
	Problem string
	Code    int
}

func (e *execError) Error() string { return e.Name + ": " + e.Problem }

func parseExecError(text []byte) error {
	var e execError
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("starting the program: %s", text)
	}
	return &e
}

// livePath leaves the entries of PATH that exist here: what was granted decides
// that, not the host's PATH. Relative ones would mean the working folder.
func livePath(env []string) []string {
	out := slices.Clone(env)
	for i, e := range out {
		path, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		entries := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
			info, err := os.Stat(dir)
			return !filepath.IsAbs(dir) || err != nil || !info.IsDir()
		})
		out[i] = "PATH=" + strings.Join(entries, ":")
	}
	return out
}

// find looks a program up as a shell does: a name with a slash is a path, any
// other is looked for in PATH. A file that is there but cannot be executed is
// only reported when no later folder has one that can.
func find(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if err := executable(name); err != nil {
			return "", refusal(name, err)
		}
		return name, nil
	}
	path := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	var found error = fs.ErrNotExist
	for _, dir := range filepath.SplitList(path) {
		if name == "" || !filepath.IsAbs(dir) {
			continue // an empty or relative entry would mean the working folder
		}
		at := filepath.Join(dir, name)
		err := executable(at)
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			found = err
		}
	}
	return "", refusal(name, found)
}

func executable(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	return unix.Access(path, unix.X_OK)
}

// refusal gives an error of exec its words and status.
func refusal(name string, err error) error {
	e := &execError{Name: name, Problem: err.Error(), Code: 126}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Problem, e.Code = "not found in the sandbox", 127
	case errors.Is(err, unix.ENOEXEC):
		e.Problem = "not a program: the file has no #! line and is no binary of this machine"
	case errors.Is(err, unix.EISDIR):
		e.Problem = "a folder is no program"
	}
	return e
}

// A Command is one of many that a standing session runs, one whose Config has
// no Argv.
type Command struct {
	Argv []string
	Env  []string // more of the environment; replaces what the session's says of the same variables
	Cwd  string   // absolute, a path inside; empty is the session's
	// The standard streams, pipes commonly; nil is /dev/null inside. Exec closes
	// them.
	Stdin, Stdout, Stderr *os.File
}

// override is an environment with some variables set anew.
func override(env, more []string) []string {
	given := slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		return slices.ContainsFunc(more, func(o string) bool { return strings.HasPrefix(e, o[:strings.IndexByte(o, '=')+1]) })
	})
	return append(given, more...)
}
