package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Bounds of one path. The kernel has the same two.
const (
	maxPath  = 4096 // bytes
	maxLinks = 40
	// maxSteps bounds the names that links may add up to.
	maxSteps = 4096
	// retries is how often a walk begins anew when folders are swapped under
	// it: who keeps swapping gets an error and no file.
	retries = 32
)

// place is where a path leads: a name in an open folder.
type place struct {
	path   string   // as the caller wrote it
	dir    *os.Root // "." is the name of the folder itself
	name   string
	real   string
	info   fs.FileInfo // nil where nothing is there
	access Access
}

// options say how a path is walked.
type options struct {
	make bool // missing folders on the way are made
	link bool // a link that is the last name is not followed
}

// at walks to path and calls do there, again when either of them lost a race.
func (f *FS) at(path string, o options, do func(place) error) error {
	if err := checkPath(path); err != nil {
		return err
	}
	err := errChanged
	for n := 0; n < retries && errors.Is(err, errChanged); n++ {
		err = f.once(path, o, do)
	}
	if err == errChanged {
		return fmt.Errorf("%s: %w", shown(path), err)
	}
	return err
}

func checkPath(path string) error {
	switch {
	case path == "":
		return errors.New("the path is empty")
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("%s holds a NUL", shown(path))
	case len(path) > maxPath:
		return fmt.Errorf("a path of %d bytes: %w", len(path), syscall.ENAMETOOLONG)
	}
	return nil
}

func (f *FS) once(path string, o options, do func(place) error) error {
	if f.unconfined {
		return f.onceFree(path, o, do)
	}
	w := &walk{fs: f, path: path, options: o}
	defer w.rise(0)
	w.start(path)
	p, err := w.run()
	switch {
	case err != nil:
		return err
	case p.access == outside: // a folder above what is granted: a way, no end
		return f.refuse(path, outside, w.want())
	}
	return do(p)
}

// walk is one way through the folders that are granted.
type walk struct {
	fs   *FS
	path string
	options
	todo  []string
	above string // where it stands while stack is empty: above every base, by name alone
	stack []node
	links int
	steps int
}

// node is a folder on the way.
type node struct {
	root   *os.Root
	real   string
	access Access
}

// start puts what is to be walked before todo: an absolute path from the top,
// a relative one, at the beginning of a walk, from cwd.
func (w *walk) start(path string) {
	if !strings.HasPrefix(path, "/") {
		w.prepend(path)
		if len(w.stack) > 0 {
			return
		}
		path = w.fs.cwd
	} else {
		path = w.fs.table.real(tidy(path))
	}
	w.rise(0)
	w.above = "/"
	w.prepend(path)
}

func (w *walk) prepend(path string) { w.todo = append(strings.Split(path, "/"), w.todo...) }

// tidy drops what says nothing from an absolute path, dots and doubled slashes,
// but for the end of it, which may say "a folder". It leaves "..", since what
// that means depends on links.
func tidy(path string) string {
	parts := strings.Split(path, "/")
	out := make([]string, 1, len(parts))
	for i, p := range parts {
		if p != "" && p != "." || i == len(parts)-1 && i > 0 {
			out = append(out, p)
		}
	}
	return strings.Join(out, "/")
}

// run takes the names one by one.
func (w *walk) run() (place, error) {
	for {
		if len(w.stack) == 0 {
			if err := w.enter(); err != nil {
				return place{}, err
			}
		}
		if len(w.todo) == 0 {
			return w.here()
		}
		name := w.todo[0]
		w.todo = w.todo[1:]
		if w.steps++; w.steps > maxSteps {
			return place{}, fmt.Errorf("%s: %w", shown(w.path), syscall.ELOOP)
		}
		switch {
		case name == "" || name == ".":
		case name == "..":
			w.up()
		case len(w.stack) == 0:
			w.above = join(w.above, name)
			if t := &w.fs.table; w.fs.bases[w.above] == nil && !t.ways[w.above] {
				return place{}, w.fs.refuse(w.path, outside, w.want())
			}
		default:
			if p, done, err := w.down(name); done || err != nil {
				return p, err
			}
		}
	}
}

func (w *walk) want() Access {
	if w.make {
		return Write
	}
	return Read
}

// enter steps into the base that the walk stands on, if it does.
func (w *walk) enter() error {
	b := w.fs.bases[w.above]
	if b == nil {
		return nil
	}
	access := w.fs.table.at(b.real)
	root, err := b.open(w.make && access == Write)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: the folder %s does not exist: %w", shown(w.path), w.fs.named(b.real), fs.ErrNotExist)
	case err != nil:
		return fmt.Errorf("%s: %w", shown(w.path), err)
	}
	w.stack = append(w.stack, node{root, b.real, access})
	return nil
}

// named is a folder for a message.
func (f *FS) named(real string) string {
	if real == f.cwd {
		return "cwd (" + shown(real) + ")"
	}
	return shown(real)
}

func (w *walk) up() {
	if len(w.stack) == 0 {
		w.above = filepath.Dir(w.above)
		return
	}
	if len(w.stack) == 1 && w.stack[0].real != "/" {
		w.above = filepath.Dir(w.stack[0].real)
	}
	w.rise(len(w.stack) - 1)
}

// rise leaves all folders but the first n. The first of all is a base's.
func (w *walk) rise(n int) {
	for i := max(n, 1); i < len(w.stack); i++ {
		_ = w.stack[i].root.Close()
	}
	w.stack = w.stack[:min(n, len(w.stack))]
}

// here is the folder that the walk stands in.
func (w *walk) here() (place, error) {
	if len(w.stack) == 0 {
		return place{}, w.fs.refuse(w.path, outside, w.want())
	}
	top := w.stack[len(w.stack)-1]
	if !w.fs.table.seen(top.access, top.real) {
		return place{}, w.fs.refuse(w.path, top.access, w.want())
	}
	info, err := top.root.Stat(".")
	if err != nil {
		return place{}, w.fail(err)
	}
	return place{w.path, top.root, ".", top.real, info, top.access}, nil
}

// down takes a name in the folder that the walk stands in.
func (w *walk) down(name string) (p place, done bool, err error) {
	top := w.stack[len(w.stack)-1]
	p = place{path: w.path, dir: top.root, name: name, real: join(top.real, name)}
	p.access = w.fs.table.below(top.access, p.real)
	if !w.fs.table.seen(p.access, p.real) {
		return p, true, w.fs.refuse(w.path, p.access, w.want())
	}
	last := len(w.todo) == 0
	p.info, err = top.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.info = nil
		if last {
			return p, true, nil
		}
		return p, false, w.mkdir(p)
	case err != nil:
		return p, true, w.fail(err)
	case p.info.Mode()&fs.ModeSymlink != 0 && !(last && w.link):
		return p, false, w.follow(p)
	case last:
		return p, true, nil
	case !p.info.IsDir():
		return p, true, fmt.Errorf("%s: %w", shown(w.path), syscall.ENOTDIR)
	}
	sub, err := p.sub()
	if err != nil {
		return p, true, err
	}
	w.stack = append(w.stack, node{sub, p.real, p.access})
	return p, false, nil
}

// mkdir makes a missing folder on the way, where that is wanted and granted,
// and takes its name again.
func (w *walk) mkdir(p place) error {
	if !w.make || slices.Contains(w.todo, "..") { // nothing is made for a path that turns back
		return fmt.Errorf("%s: %w", shown(w.path), fs.ErrNotExist)
	}
	if p.access != Write {
		return w.fs.refuse(w.path, p.access, Write)
	}
	if err := p.dir.Mkdir(p.name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return w.fail(err)
	}
	inherit(p.dir, p.name)
	w.todo = append([]string{p.name}, w.todo...)
	return nil
}

// follow replaces a link by its text.
func (w *walk) follow(p place) error {
	if p.access < Read {
		return w.fs.refuse(w.path, p.access, w.want()) // only a folder leads to what is granted below a hidden one
	}
	if w.links++; w.links > maxLinks {
		return fmt.Errorf("%s: %w", shown(w.path), syscall.ELOOP)
	}
	text, err := p.dir.Readlink(p.name)
	if err != nil || text == "" {
		return errChanged
	}
	w.start(text)
	return nil
}

// fail is an error of the system, under the path that was asked for and not
// under the names on the way.
func (w *walk) fail(err error) error { return named(w.path, err) }

func named(path string, err error) error {
	var (
		p *fs.PathError
		l *os.LinkError
		s *os.SyscallError
	)
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	case errors.As(err, &s):
		err = s.Err
	}
	return fmt.Errorf("%s: %w", shown(path), err)
}

// sub opens the folder that p names and sees that it is the one it looked at:
// os.Root alone would follow a link that was put there meanwhile, to a hidden
// neighbour. The dot makes it open a folder and nothing else, so that a FIFO
// fails instead of blocking.
func (p place) sub() (*os.Root, error) {
	sub, err := p.dir.OpenRoot(p.name + "/.")
	if err != nil {
		return nil, p.lost(err)
	}
	if info, err := sub.Stat("."); err != nil || !os.SameFile(info, p.info) {
		return nil, errors.Join(errChanged, sub.Close())
	}
	return sub, nil
}

// lost tells a race from an error that stays.
func (p place) lost(err error) error {
	now, e := p.dir.Lstat(p.name)
	if e != nil || !os.SameFile(now, p.info) || now.Mode().Type() != p.info.Mode().Type() {
		return errChanged
	}
	return named(p.path, err)
}

// open opens the regular file that p names, without blocking, and sees that it
// is the one it looked at.
func (p place) open(flag int) (*os.File, fs.FileInfo, error) {
	if !p.info.Mode().IsRegular() {
		return nil, nil, notRegular(p.path, p.info.Mode())
	}
	file, err := p.dir.OpenFile(p.name, flag|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, p.lost(err)
	}
	info, err := file.Stat()
	if err != nil || !os.SameFile(info, p.info) || !info.Mode().IsRegular() {
		return nil, nil, errors.Join(errChanged, file.Close())
	}
	return file, info, nil
}
