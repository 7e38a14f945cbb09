package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links a path may lead over, as for the kernel.
const maxLinks = 40

var errUnsafe = errors.New("it lies where a sandbox can write")

// SafePath is path, a PATH, less every folder that is relative, not there, or
// lies in one of unsafe: absolute folders that a sandbox can write to, cwd
// among them. A folder lies where its name says and everywhere its links lead
// over. The root folder as unsafe leaves nothing; whoever grants it names the
// folders below it that can be written to.
func SafePath(path string, unsafe []string) string {
	zone := newZone(unsafe)
	var keep []string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || slices.Contains(keep, dir) {
			continue
		}
		if _, err := zone.resolve(dir); err == nil {
			keep = append(keep, dir)
		}
	}
	return strings.Join(keep, string(filepath.ListSeparator))
}

// Finder looks programs up: a bare name in SafePath of path, an absolute path
// where it lies. The answer has no links left, so that none can be turned
// later, and is the same for a name ever after. A program that lies in unsafe,
// or is led to by way of it, is an error, and so is a relative path with a
// slash. It may be called from any goroutine.
func Finder(path string, unsafe []string) func(name string) (string, error) {
	zone := newZone(unsafe)
	dirs := filepath.SplitList(SafePath(path, unsafe))
	var mu sync.Mutex
	found := map[string]string{}
	return func(name string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if at, ok := found[name]; ok {
			return at, nil
		}
		at, err := zone.find(name, dirs)
		if err != nil {
			return "", fmt.Errorf("looking up %s: %w", name, err)
		}
		found[name] = at
		return at, nil
	}
}

// CheckCommand looks, at load, at the words of a command that egressd would run
// on the host: its program by look, made by Finder, and that no word that is
// absolute, or begins with ~/, lies in unsafe (a shell's script, say).
func CheckCommand(argv []string, home string, look func(string) (string, error), unsafe []string) error {
	if len(argv) == 0 {
		return errors.New("looking up program: the command is empty")
	}
	zone := newZone(unsafe)
	for i, word := range argv {
		path, err := Config{Home: home}.expand(word)
		if err == nil && i == 0 {
			_, err = look(path)
		} else if err == nil && filepath.IsAbs(path) {
			if _, err = zone.resolve(filepath.Clean(path)); err != nil && !errors.Is(err, errUnsafe) {
				err = nil // it need not be there, nor be a file
			}
		}
		if err != nil {
			return fmt.Errorf("checking word %d of command: %w", i+1, err)
		}
	}
	return nil
}

// zone are clean folders that a sandbox can write to, with and without links.
type zone []string

func newZone(unsafe []string) zone {
	var z zone
	for _, dir := range unsafe {
		z = append(z, filepath.Clean(dir))
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			z = append(z, real)
		}
	}
	return z
}

func (z zone) holds(path string) bool {
	return slices.ContainsFunc(z, func(dir string) bool {
		return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
	})
}

func (z zone) find(name string, dirs []string) (string, error) {
	switch {
	case filepath.IsAbs(name):
		at, err := z.resolve(filepath.Clean(name))
		if err == nil && !program(at) {
			err = errors.New("it is no program")
		}
		return at, err
	case name == "" || strings.Contains(name, "/"):
		return "", errors.New("it is neither a name nor an absolute path")
	}
	refused := false
	for _, dir := range dirs {
		at, err := z.resolve(filepath.Join(dir, name))
		if err == nil && program(at) {
			return at, nil
		}
		refused = refused || errors.Is(err, errUnsafe)
	}
	if refused {
		return "", errUnsafe
	}
	return "", errors.New("no such program in the folders of PATH that no sandbox can write to")
}

// program reports whether a file can be run by this user.
func program(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}

// resolve follows every link of an absolute path, and refuses if the path, a
// link on the way or the end lies in the zone: whoever writes a link in the
// middle says where it leads.
func (z zone) resolve(path string) (string, error) {
	if z.holds(path) {
		return "", errUnsafe
	}
	at, links := "/", 0
	rest := strings.Split(path, "/")
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch word {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, word)
		if z.holds(next) {
			return "", errUnsafe
		}
		info, err := os.Lstat(next)
		if err != nil {
			return "", bare(err)
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", unix.ELOOP
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", bare(err)
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at, nil
}
