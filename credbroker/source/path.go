package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links a path may lead over, as for the kernel.
const maxLinks = 40

// unsafeError is a place that a sandbox can write to: the folder it lies in, or
// is led through.
type unsafeError string

func (e unsafeError) Error() string { return "it lies in " + string(e) + ", where a sandbox can write" }

func isUnsafe(err error) bool {
	var u unsafeError
	return errors.As(err, &u)
}

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
// absolute, or begins with ~/, lies in unsafe (a shell's script, say): the
// program would do there what yesterday's sandbox left for it. What is not there
// is no fault yet, since not every command is run.
func CheckCommand(argv []string, home string, look func(string) (string, error), unsafe []string) error {
	if len(argv) == 0 {
		return errors.New("looking up program: the command is empty")
	}
	words, err := Config{Home: home}.words(argv)
	if err != nil {
		return err
	}
	if _, err := look(words[0]); isUnsafe(err) {
		return err
	}
	zone := newZone(unsafe)
	for _, word := range words[1:] {
		if !filepath.IsAbs(word) {
			continue
		}
		if _, err := zone.resolve(filepath.Clean(word)); isUnsafe(err) {
			return fmt.Errorf("checking %s: %w: what programs read must lie elsewhere, too", word, err)
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

// clear is an unsafeError where a clean path lies in the zone.
func (z zone) clear(path string) error {
	for _, dir := range z {
		if path == dir || dir == "/" || strings.HasPrefix(path, dir+"/") {
			return unsafeError(dir)
		}
	}
	return nil
}

func (z zone) find(name string, dirs []string) (string, error) {
	switch {
	case filepath.IsAbs(name):
		at, err := z.resolve(filepath.Clean(name))
		if err == nil && !program(at) {
			err = errors.New("it is no program")
		}
		if err == nil {
			err = z.interpreters(at)
		}
		return at, err
	case name == "" || strings.Contains(name, "/"):
		return "", errors.New("it is neither a name nor an absolute path")
	}
	var refused error
	for _, dir := range dirs {
		at, err := z.resolve(filepath.Join(dir, name))
		if err == nil && program(at) {
			return at, z.interpreters(at)
		}
		if refused == nil && isUnsafe(err) {
			refused = err
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", errors.New("no such program in the folders of PATH that no sandbox can write to")
}

// interpreters refuses a script whose first line names a program, or a word that
// is a path, which lies in the zone: a tool that was installed in a folder of
// work, by its own Python there, is at the mercy of who writes that. Scripts may
// be run by scripts, four deep as for the kernel.
func (z zone) interpreters(path string) error {
	for range 5 {
		line, err := firstLine(path)
		if err != nil {
			return bare(err)
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			return nil
		}
		for i, word := range words {
			if i > 0 && !filepath.IsAbs(word) {
				continue
			}
			// Programs run in the root folder, so what is relative begins there.
			at, err := z.resolve(filepath.Clean("/" + word))
			if isUnsafe(err) {
				return fmt.Errorf("checking the first line of %s: %w", path, err)
			}
			if i == 0 {
				if path = at; err != nil {
					return nil // it will not run
				}
			}
		}
	}
	return nil
}

// firstLine is what stands behind "#!" in a script, "" for what is none.
func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrPermission) {
		return "", nil // a program that may be run and not read, which the kernel reads
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	line, script := strings.CutPrefix(string(head[:n]), "#!")
	if !script {
		return "", nil
	}
	line, _, _ = strings.Cut(line, "\n")
	return line, nil
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
	if err := z.clear(path); err != nil {
		return "", err
	}
	return Follow(path, func(at string, _ fs.FileInfo, _ bool) error { return z.clear(at) })
}

// Follow walks an absolute path over its links to where it lies. visit hears of
// every name on the way by its real place: what is there (nil for nothing), and
// whether it is what the path names, so that no part of the path is left behind
// it. An error of visit ends the walk.
func Follow(path string, visit func(at string, info fs.FileInfo, last bool) error) (string, error) {
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
		info, err := os.Lstat(next)
		if err := visit(next, info, len(rest) == 0); err != nil {
			return "", err
		}
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
