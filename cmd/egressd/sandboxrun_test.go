package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/internal/proxytest"
)

// caseRun is one case under way.
type caseRun struct {
	h      *sandboxHost
	c      sandboxCase
	home   string
	policy string
	ports  map[string]string
	before map[string]string // files that must be unchanged
	stdout bytes.Buffer
	stderr bytes.Buffer
	took   time.Duration
	code   int
	socket map[string]*int
	mu     sync.Mutex
	master *os.File
	slave  *os.File
}

func (h *sandboxHost) runCase(t *testing.T, c sandboxCase) {
	r := &caseRun{h: h, c: c, home: filepath.Join("/home", c.ID), ports: map[string]string{}, before: map[string]string{}, socket: map[string]*int{}}
	r.setup(t)
	temp := r.temps(t)
	for range max(1, c.Repeat) {
		r.stdout.Reset()
		r.stderr.Reset()
		r.start(t)
	}
	time.Sleep(time.Duration(c.Expect.WaitS * float64(time.Second)))
	r.check(t, temp)
	// This test is pid 1 of its namespace: nothing a failed case left stays.
	_ = syscall.Kill(-1, syscall.SIGKILL)
	if t.Failed() {
		t.Logf("why: %s\nstdout: %q\nstderr: %s", c.Why, cut(r.stdout.String()), cut(r.stderr.String()))
	}
}

func cut(s string) string {
	if len(s) > 3000 {
		return s[:3000] + "…"
	}
	return s
}

func (r *caseRun) uid() int {
	if r.c.As == "root" {
		return 0
	}
	return annUID
}

// host is a path of the case on the host.
func (r *caseRun) host(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		return r.home + rest
	}
	return path
}

func (r *caseRun) fill(s string) string {
	pairs := []string{"${home}", r.home, "${cwd}", r.home + "/proj", "${host_ip}", "127.0.0.1"}
	for name, port := range r.ports {
		pairs = append(pairs, "${port:"+name+"}", port)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

func (r *caseRun) setup(t *testing.T) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(r.home, "proj"), 0o755))
	for _, s := range r.c.Setup {
		path := r.host(s.Path)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case s.File != nil:
			must(os.WriteFile(path, []byte(*s.File), 0o644))
		case s.Dir:
			must(os.MkdirAll(path, 0o755))
		case s.Symlink != "":
			must(os.Symlink(r.fill(r.host(s.Symlink)), path))
		case s.Socket:
			r.listen(t, path)
		}
		if s.Mode != "" {
			mode, err := strconv.ParseUint(s.Mode, 8, 32)
			must(err)
			must(os.Chmod(path, os.FileMode(mode)))
		}
	}
	r.h.mu.Lock()
	r.h.asked = nil
	maps.Copy(r.h.body, r.c.Origins)
	r.h.mu.Unlock()
	for name, addr := range r.c.HostListen {
		l, err := net.Listen("tcp", addr+":0")
		must(err)
		srv := &http.Server{Handler: r.h}
		t.Cleanup(func() { srv.Close() })
		go func() { _ = srv.Serve(l) }()
		_, r.ports[name], _ = net.SplitHostPort(l.Addr().String())
	}
	if r.c.Policy != nil {
		r.policy = filepath.Join("/srv", r.c.ID, "egressd-case.yaml")
		if r.c.PolicyAt != "" {
			r.policy = r.host(r.c.PolicyAt)
		}
		must(os.MkdirAll(filepath.Dir(r.policy), 0o755))
		must(os.WriteFile(r.policy, r.yaml(t, r.c.Policy), 0o644))
	}
	for _, root := range []string{r.home, filepath.Join("/srv", r.c.ID)} {
		err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, r.uid(), r.uid())
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	for _, s := range r.c.Expect.Host {
		if data, err := os.ReadFile(r.host(s.Path)); err == nil {
			r.before[s.Path] = string(data)
		}
	}
}

// yaml is a policy with the way to the case's origins merged in. JSON is YAML.
func (r *caseRun) yaml(t *testing.T, p map[string]any) []byte {
	t.Helper()
	p = maps.Clone(p)
	if len(r.c.Origins) > 0 {
		resolve := map[string]string{}
		for name := range r.c.Origins {
			resolve[name+":443"] = r.h.https
			resolve[name+":80"] = r.h.http
		}
		p["upstream"] = map[string]any{"resolve": resolve, "ca_files": []string{r.h.caFile}}
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(r.fill(string(data)))
}

func (r *caseRun) listen(t *testing.T, path string) {
	t.Helper()
	if name, ok := strings.CutPrefix(path, "@"); ok {
		path = "@" + name
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	n := new(int)
	r.socket[path] = n
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			*n++
			r.mu.Unlock()
			c.Close()
		}
	}()
}

func (r *caseRun) temps(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}

func (r *caseRun) command(t *testing.T) *exec.Cmd {
	t.Helper()
	args := []string{"run"}
	if r.policy != "" {
		args = append(args, "--policy", r.policy)
	}
	for _, f := range r.c.Flags {
		args = append(args, r.fill(f))
	}
	args = append(args, "--")
	if r.c.Argv != nil {
		for _, a := range r.c.Argv {
			args = append(args, r.fill(a))
		}
	} else {
		args = append(args, "sh", "-c", r.fill(r.c.Run))
	}
	cmd := exec.CommandContext(t.Context(), r.h.bin, args...)
	cmd.Dir = filepath.Join(r.home, "proj")
	cmd.Env = []string{"HOME=" + r.home, "PATH=" + r.path(t), "TERM=xterm", "LANG=C.UTF-8", "SHELL=/bin/sh"}
	if r.uid() != 0 {
		cmd.Env = append(cmd.Env, "USER="+annName, "LOGNAME="+annName)
	} else {
		cmd.Env = append(cmd.Env, "USER=root", "LOGNAME=root")
	}
	for k, v := range r.c.HostEnv {
		cmd.Env = append(cmd.Env, k+"="+r.fill(v))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if r.uid() != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: annUID, Gid: annUID}
	}
	if r.c.OpenFD != "" {
		f, err := os.OpenFile(r.host(r.c.OpenFD), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		cmd.ExtraFiles = []*os.File{f}
	}
	return cmd
}

// path is the host's search path, less the programs that a case hides.
func (r *caseRun) path(t *testing.T) string {
	const path = "/usr/local/bin:/usr/bin:/bin"
	if len(r.c.PathWithout) == 0 {
		return path
	}
	dir := filepath.Join("/srv", r.c.ID+"-bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range filepath.SplitList(path) {
		entries, _ := os.ReadDir(d)
		for _, e := range entries {
			if !slices.Contains(r.c.PathWithout, e.Name()) {
				_ = os.Symlink(filepath.Join(d, e.Name()), filepath.Join(dir, e.Name()))
			}
		}
	}
	return dir
}

func (r *caseRun) start(t *testing.T) {
	t.Helper()
	cmd := r.command(t)
	done := make(chan struct{})
	if r.c.TTY != nil {
		r.startTTY(t, cmd, done)
	} else {
		cmd.Stdout, cmd.Stderr = &r.stdout, &r.stderr
		switch {
		case r.c.Stdin != nil:
			cmd.Stdin = io.MultiReader(strings.NewReader(*r.c.Stdin))
		case r.c.StdinFile != "":
			f, err := os.Open(r.host(r.c.StdinFile))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			cmd.Stdin = f
		}
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting egressd: %v", err)
	}
	stop := make(chan struct{})
	var acts sync.WaitGroup
	acts.Go(func() { r.act(t, cmd.Process, stop) })
	guard := time.AfterFunc(40*time.Second, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	guard.Stop()
	r.took = time.Since(begin)
	close(stop)
	acts.Wait()
	if r.master != nil {
		r.endTTY(t, done)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		r.code = 0
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	default:
		t.Fatalf("waiting for egressd: %v", err)
	}
}

func (r *caseRun) startTTY(t *testing.T, cmd *exec.Cmd, done chan struct{}) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: r.c.TTY.Rows, Cols: r.c.TTY.Cols}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	r.master, r.slave = master, slave
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			r.mu.Lock()
			r.stdout.Write(buf[:n])
			r.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
}

// endTTY looks whether something waits in the outer terminal's input, then
// closes it, so that its output ends.
func (r *caseRun) endTTY(t *testing.T, done chan struct{}) {
	t.Helper()
	if n, err := unix.IoctlGetInt(int(r.slave.Fd()), proxytest.Unread); err != nil || n != 0 {
		if r.c.Expect.OuterTerminalUntouched {
			t.Errorf("%d bytes wait in the outer terminal (%v)", n, err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	r.slave.Close()
	<-done
	r.master.Close()
	r.master = nil
}

// act does what the case does while egressd runs.
func (r *caseRun) act(t *testing.T, p *os.Process, stop chan struct{}) {
	wait := func(ms int) bool {
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
			return true
		case <-stop:
			return false
		}
	}
	var all sync.WaitGroup
	if s := r.c.Signal; s != nil {
		all.Go(func() {
			if wait(s.AfterMS) {
				_ = p.Signal(unix.SignalNum("SIG" + s.Sig))
			}
		})
	}
	if ch := r.c.PolicyChange; ch != nil {
		data := r.yaml(t, ch.Policy)
		all.Go(func() {
			if wait(ch.AfterMS) {
				if err := os.WriteFile(r.policy, data, 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if len(r.c.Keys) > 0 {
		all.Go(func() {
			for _, k := range r.c.Keys {
				if !wait(k.AfterMS) {
					return
				}
				if k.Resize != nil {
					_ = pty.Setsize(r.master, &pty.Winsize{Rows: k.Resize.Rows, Cols: k.Resize.Cols})
				} else {
					_, _ = io.WriteString(r.master, k.Text)
				}
			}
		})
	}
	if r.c.Expect.HostUIDNotRoot {
		all.Go(func() {
			if wait(600) {
				r.notRoot(t)
			}
		})
	}
	if addr := r.c.Expect.HostCannotConnect; addr != "" {
		all.Go(func() {
			if wait(1200) {
				if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
					c.Close()
					t.Errorf("the host could connect to %s inside", addr)
				}
			}
		})
	}
	all.Wait()
}

// notRoot looks at the host's numbers of the sandboxed program.
func (r *caseRun) notRoot(t *testing.T) {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	found := false
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil || !bytes.HasPrefix(data, []byte("Name:\tsleep\n")) {
			continue
		}
		found = true
		for line := range strings.Lines(string(data)) {
			if ids, ok := strings.CutPrefix(line, "Uid:"); ok && slices.Contains(strings.Fields(ids), "0") {
				t.Errorf("the program runs as root of the host: %s", strings.TrimSpace(line))
			}
		}
	}
	if !found {
		t.Error("the sandboxed program was not found on the host")
	}
}

// left are the processes of the namespace beside this test.
func left() []string {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []string
	for _, d := range dirs {
		stat, err := os.ReadFile(d + "/stat")
		if err != nil || d == "/proc/1" {
			continue
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		// One that is being ended (PF_EXITING) runs no more, but on a busy machine it
		// may be seen a while longer.
		flags, _ := strconv.Atoi(f[6])
		if f[0] != "Z" && flags&4 == 0 {
			out = append(out, fmt.Sprintf("%s %.40s", d, stat))
		}
	}
	return out
}
