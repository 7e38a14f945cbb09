package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runPlace is the home of a user on the host of the sandbox cases.
type runPlace struct {
	*place
	uid int
}

// newRunPlace makes the user a home, /home/NAME, with a folder of work, proj.
func newRunPlace(t *testing.T, uid int) *runPlace {
	t.Helper()
	name := map[int]string{0: "root", annUID: annName}[uid]
	r := &runPlace{place: &place{dir: filepath.Join("/home", name), origin: newTestOrigin(t)}, uid: uid}
	if err := os.MkdirAll(r.path("proj"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(r.path("run"), 0o700); err != nil {
		t.Fatal(err)
	}
	// The origin's CA where every user may read it.
	data, err := os.ReadFile(r.origin.caFile)
	if err != nil {
		t.Fatal(err)
	}
	r.origin.caFile = r.write(t, "origin-ca.pem", string(data))
	r.env = []string{"HOME=" + r.dir, "USER=" + name, "LOGNAME=" + name, "SHELL=/bin/sh", "TERM=dumb",
		"PATH=/usr/local/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR=" + r.path("run")}
	return r
}

// own hands the home to its user.
func (r *runPlace) own(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(r.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, r.uid, r.uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// command calls egressd as the user, in proj.
func (r *runPlace) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	r.own(t)
	cmd := exec.CommandContext(t.Context(), "/srv/egressd", args...)
	cmd.Dir, cmd.Env = r.path("proj"), r.env
	if r.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.uid)}}
	}
	return cmd
}

func (r *runPlace) call(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return finish(t, r.command(t, args...))
}

// fails wants a run that ends with 125, nothing on stdout and these words.
func (r *runPlace) fails(t *testing.T, args []string, words ...string) {
	t.Helper()
	begin := time.Now()
	out, errs, code := r.call(t, append([]string{"run"}, args...)...)
	if code != exitEgressd || out != "" || time.Since(begin) > 10*time.Second {
		t.Errorf("%v: status %d after %v, stdout %q\n%s", args, code, time.Since(begin), out, errs)
	}
	for _, w := range words {
		if !strings.Contains(errs, w) {
			t.Errorf("%v: stderr lacks %q:\n%s", args, w, errs)
		}
	}
	if !strings.HasPrefix(errs, "egressd: ") || strings.Contains(errs, "panic") {
		t.Errorf("%v: stderr is %q", args, errs)
	}
}

// record is the newest record of the user.
func (r *runPlace) record(t *testing.T) []map[string]any {
	t.Helper()
	files, err := filepath.Glob(r.path(".local/state/egressd/audit/*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no record (%v)", err)
	}
	return readRecords(t, files[len(files)-1])
}

// curl prints a status for each of its arguments.
func curl(urls ...string) []string {
	script := `for u do curl -s -o /dev/null -w "%{http_code}\n" "$u" || echo "curl $?"; done`
	return append([]string{"--", "sh", "-c", script, "sh"}, urls...)
}

// fakeBwrap is a search path whose bwrap says that it is of this version.
func fakeBwrap(t *testing.T, version string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/srv", "bin-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/sh\necho bubblewrap "+version+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// noBwrap is a search path without it.
func noBwrap(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/srv", "nobin")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// with is the place with a variable changed.
func (r *runPlace) with(name, value string) *runPlace {
	p, q := *r.place, *r
	p.env = nil
	for _, kv := range r.env {
		if !strings.HasPrefix(kv, name+"=") {
			p.env = append(p.env, kv)
		}
	}
	p.env = append(p.env, name+"="+value)
	q.place = &p
	return &q
}
