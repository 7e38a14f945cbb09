package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
)

// advice helps where a program that is on the host is not there inside: it names
// the folders to grant, of what links lead to and of a script's interpreter too.
func (r *runner) advice(no *netns.NotStarted) string {
	if no.Code != 127 {
		return ""
	}
	file := r.onHost(r.argv[0])
	if file == "" {
		return ""
	}
	for _, path := range []string{file, realPath(file)} {
		if slices.ContainsFunc(r.masks, func(m string) bool { return within(path, m) }) {
			return fmt.Sprintf("; on this host it is %s, which mask_paths hides", file)
		}
	}
	plan := r.box.Plan()
	folders := missing(plan, file)
	text := "; on this host it is " + file
	interpreter := r.interpreter(file)
	if interpreter != "" {
		if more := missing(plan, interpreter); len(more) > 0 {
			text += ", a script for " + interpreter
			folders = append(folders, more...)
		} else if realPath(interpreter) == "" {
			return fmt.Sprintf("; %s is a script for %s, which is not on this host either", file, interpreter)
		}
	}
	slices.Sort(folders)
	if folders = slices.Compact(folders); len(folders) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: grant with read_paths: %q", text, folders)
}

// onHost is the file that a name would be on the host, or "".
func (r *runner) onHost(name string) string {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) && r.policy.StartInScratch {
			return ""
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(r.cwd, name)
		}
		if executable(name) {
			return filepath.Clean(name)
		}
		return ""
	}
	path := os.Getenv("PATH")
	if t := r.policy.Terminal; t != nil && t.Env["PATH"] != "" {
		path = t.Env["PATH"]
	}
	for _, dir := range filepath.SplitList(path) {
		if at := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(at) {
			return at
		}
	}
	return ""
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}

// interpreter is the program that runs a script, or "". Of env it is the program
// that env looks for.
func (r *runner) interpreter(file string) string {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n') // the kernel reads no more
	rest, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		for _, w := range words[1:] {
			if w[0] != '-' && !strings.Contains(w, "=") {
				if at := r.onHost(w); at != "" {
					return at
				}
				break
			}
		}
	}
	return words[0]
}

// missing are the folders to grant for a program to be there inside.
func missing(p mount.Plan, file string) []string {
	real := realPath(file)
	if real == "" {
		return nil
	}
	var folders []string
	for _, path := range []string{file, real} {
		if dir := filepath.Dir(path); !shows(p, filepath.Join(realPath(dir), filepath.Base(path))) {
			tree := treeOf(dir)
			if !slices.ContainsFunc(folders, func(f string) bool { return realPath(f) == realPath(tree) }) {
				folders = append(folders, tree)
			}
		}
	}
	return folders
}

// shows says whether a path of the host, whose folders are no links, is there
// inside.
func shows(p mount.Plan, path string) bool {
	best, at := "", ""
	hidden := false
	for _, r := range p.Roots {
		if mount.Below(path, r.Path) && len(r.Path) >= len(best) {
			best, at, hidden = r.Path, filepath.Join(r.Source, strings.TrimPrefix(path, r.Path)), r.Empty
			for _, m := range r.Masks {
				hidden = hidden || mount.Below(path, filepath.Join(r.Path, m.Path))
			}
		}
	}
	for _, f := range p.Fresh {
		if mount.Below(path, f.Path) && len(f.Path) > len(best) {
			best, hidden = f.Path, true
		}
	}
	for _, b := range p.Base {
		if mount.Below(path, b.Path) && len(b.Path) > len(best) {
			best, at, hidden = b.Path, path, false
		}
	}
	if best == "" || hidden {
		return false
	}
	_, err := os.Lstat(at)
	return err == nil
}

// treeOf is the folder to grant for a program in dir: what was installed with it
// as well, where its libraries lie beside it, as those of pyenv and nvm do.
// Folders that hold more than programs, such as ~/.local, are not granted whole.
func treeOf(dir string) string {
	up := filepath.Dir(dir)
	if name := filepath.Base(dir); name != "bin" && name != "sbin" && name != "shims" || filepath.Base(up) == ".local" || up == "/" {
		return dir
	}
	for _, beside := range []string{"lib", "lib64", "libexec", "versions"} {
		if info, err := os.Stat(filepath.Join(up, beside)); err == nil && info.IsDir() {
			return up
		}
	}
	return dir
}
