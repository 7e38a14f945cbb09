//go:build linux

package netns

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/egressd/egressd/netns/mount"
)

// What lies beside a grant is not there, and what is hidden in it shows empty,
// takes no write and stays where it is, links too.
func TestHidden(t *testing.T) {
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			r := run{As: uid, Shell: `
cat .env | wc -c; readlink .prod || echo hidden; ls -A .git | wc -l; cat .venv/x; ls -A own | wc -l
for f in .env .prod .git/x own/x; do sh -c "echo x > $f" 2>/dev/null && echo wrote $f; done
for f in .env .prod .git own; do mv $f moved 2>/dev/null && echo moved $f; rm -rf $f 2>/dev/null && echo removed $f; done
cat ../beside 2>/dev/null || echo absent; ls -A ~ | tr '\n' ' '; touch ~/x new && stat -c %a ~; ls -A / | tr '\n' ' '`}
			r.prepare(t)
			for path, text := range map[string]string{"proj/.env": "K", "proj/.git/config": "G", "proj/.venv/x": "V\n", "proj/own/state": "S", "beside": "B"} {
				r.put(t, path, text)
			}
			if err := os.Symlink("../vault", filepath.Join(r.Cwd, ".prod")); err != nil {
				t.Fatal(err)
			}
			r.Grants = []mount.Grant{{Path: r.Cwd, Write: true}}
			r.Hidden = []string{r.Cwd + "/own", r.Cwd + "/missing"}
			got := r.do(t)
			want := "0\nhidden\n0\nV\n0\nabsent\nproj 700\n"
			rest, ok := strings.CutPrefix(got.Stdout, want)
			if !ok {
				t.Fatalf("stdout %q, want it to begin with %q; stderr %s", got.Stdout, want, got.Stderr)
			}
			for _, n := range strings.Fields(rest) {
				if !strings.Contains(" bin dev etc home lib lib32 lib64 libx32 opt proc run sbin tmp usr var snap nix gnu ", " "+n+" ") {
					t.Errorf("/%s is there", n)
				}
			}
			if info, err := os.Stat(r.Cwd + "/missing"); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("a folder to hide was not made: %v %v", info, err)
			}
		})
	}
}

// A file that is kept, and every folder above it, stays where and as it is.
func TestPins(t *testing.T) {
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			r := run{As: uid, Shell: `
for f in a/b/c/p.yaml a/b/c a/b a; do mv $f $f.old 2>/dev/null && echo moved $f; done
sh -c 'echo x >> a/b/c/p.yaml' 2>/dev/null && echo wrote; rm -f a/b/c/p.yaml 2>/dev/null && echo removed
ln a/b/c/p.yaml a/b/c/q 2>/dev/null && echo linked; touch a/b/c/beside a/b/c2 && mv a/b/c2 a/b/c3 && echo free`}
			r.prepare(t)
			r.put(t, "proj/a/b/c/p.yaml", "P")
			r.Grants = []mount.Grant{{Path: r.Cwd, Write: true}}
			r.Keep = []string{r.Cwd + "/a/b/c/p.yaml"}
			r.expect(t, "free\n")
		})
	}
}

// A grant below a hidden folder shows, and nothing else of that folder.
func TestHole(t *testing.T) {
	r := run{As: user(), Shell: "cat ~/.ssh/config ~/doc; ls -A ~/.ssh; ls -A ~/.keys/pub; touch ~/.ssh/x 2>/dev/null || echo refused"}
	r.prepare(t)
	for _, path := range []string{".ssh/config", ".ssh/id", "doc", ".keys/pub/a", ".keys/b"} {
		r.put(t, path, path+"\n")
	}
	r.Grants = []mount.Grant{{Path: r.Home}, {Path: r.Home + "/.ssh/config"}, {Path: r.Home + "/.keys/pub", Write: true}}
	r.expect(t, ".ssh/config\ndoc\nconfig\na\nrefused\n")
}

// Root's working folder may lie where no other user comes, and what is made in
// it belongs to root on the host.
func TestRootBelowClosedFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is root's path")
	}
	r := run{Shell: "cat f; touch made; stat -c %u:%U f made; id -un; touch ro/x 2>/dev/null || echo refused", Network: Captured, Check: true}
	r.prepare(t)
	r.put(t, "proj/f", "F\n")
	r.put(t, "proj/ro/f", "")
	if err := os.Chmod(r.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	r.Grants = []mount.Grant{{Path: r.Cwd, Write: true}, {Path: r.Cwd + "/ro"}}
	r.expect(t, "F\n1000:sandbox\n1000:sandbox\nsandbox\nrefused\n")
	owned(t, r.Cwd+"/made", 0)
}

func owned(t *testing.T, path string, uid uint32) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != uid || st.Gid != uid {
		t.Errorf("%s belongs to %d:%d, not %d", path, st.Uid, st.Gid, uid)
	}
}

// Root runs as the owner of the working folder, or as whoever called sudo.
func TestRootAsAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is root's path")
	}
	r := run{Shell: "id -u; id -G; id -un; touch made", Invoker: Invoker{SudoUID: 12345, SudoGID: 12345}}
	r.prepare(t)
	if err := os.Chown(r.Cwd, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	r.Grants = []mount.Grant{{Path: r.Cwd, Write: true}}
	if err := os.Chmod(r.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	r.expect(t, "12345\n12345\nuser12345\n")
	owned(t, r.Cwd+"/made", 12345)
	r.Invoker = Invoker{}
	r.expect(t, "12345\n12345\nuser12345\n")
}

// No process of a run of root has uid 0 on the host, nor a capability.
func TestRootIsNoRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is root's path")
	}
	r := run{Network: Captured, Shell: "echo up; sleep 9"}
	cmd := r.command(t)
	before := procs(t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for pid, line := range procs(t) {
		if _, old := before[pid]; old || strings.Contains(line, " sandbox ") {
			continue
		}
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			continue // ended meanwhile
		}
		seen++
		for l := range strings.Lines(string(status)) {
			f := strings.Fields(l)
			if (f[0] == "Uid:" || f[0] == "Gid:") && (f[1] == "0" || f[2] == "0" || f[4] == "0") {
				t.Errorf("%s: %s", line, l)
			}
			if f[0] == "Groups:" && len(f) > 1 {
				t.Errorf("%s: %s", line, l)
			}
		}
	}
	if seen < 3 {
		t.Errorf("%d processes were seen", seen)
	}
	_ = cmd.Process.Kill() // everything ends with it
	_ = cmd.Wait()
}

// Nothing that a program inside can look at shows the host, and nothing of
// egressd's own takes a write.
func TestNothingOfTheHost(t *testing.T) {
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOSTSECRET", "s")
			r := run{As: uid, Network: Captured, Shell: `
ls /proc/self/fd | tr '\n' ' '; cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -c ^HOSTSECRET=
tr '\0' '\n' < /proc/1/cmdline | grep -c home; [ -r /proc/$PPID/fd ] || echo closed
ls -A /run /run/egressd | tr '\n' ' '; touch /run/x /etc/x /x /dev/x /run/egressd/x 2>/dev/null && echo wrote; ls -A /sys 2>/dev/null | wc -l`}
			r.expect(t, "0 1 2 3 0\n0\nclosed\n/run: egressd  /run/egressd: launcher 0\n")
		})
	}
}

// A single file that is granted is written in place and stays where it is,
// and what lies beside it is as before.
func TestFileGrant(t *testing.T) {
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			r := run{As: uid, Shell: "echo new > notes.txt; mv notes.txt n2 2>/dev/null && echo moved; rm -f notes.txt 2>/dev/null && echo gone; " +
				"cat notes.txt; touch beside 2>/dev/null || echo refused; cat ro.txt; sh -c 'echo x > ro.txt' 2>/dev/null || echo refused"}
			r.prepare(t)
			r.put(t, "proj/notes.txt", "old\n")
			r.put(t, "proj/ro.txt", "ro\n")
			r.Grants = []mount.Grant{{Path: r.Cwd + "/notes.txt", Write: true}, {Path: r.Cwd + "/ro.txt"}}
			r.expect(t, "new\nrefused\nro\nrefused\n")
			if text, err := os.ReadFile(r.Cwd + "/notes.txt"); err != nil || string(text) != "new\n" {
				t.Errorf("on the host: %q %v", text, err)
			}
		})
	}
}

// The faults of the field that belong to the plain view: git starts beside a
// hidden .gitconfig, a hidden folder takes no write, and what is hidden but not
// there is not made.
func TestFaultsOfTheView(t *testing.T) {
	r := run{As: user(), Shell: "git init -q /tmp/x && echo works; wc -c < ~/.gitconfig; sh -c 'echo x > ~/.ssh/f' 2>/dev/null || echo refused; ls -A ~/.gnupg 2>/dev/null | wc -l"}
	r.prepare(t)
	r.put(t, ".gitconfig", "[user]\n\tname = secret\n")
	r.put(t, ".ssh/id", "K")
	r.Grants = []mount.Grant{{Path: r.Home}}
	r.Hidden = []string{r.Home + "/.gnupg"}
	r.expect(t, "works\n0\nrefused\n0\n")
	if _, err := os.Stat(r.Home + "/.gnupg"); err == nil {
		t.Error("a folder was made below a grant that nothing can write")
	}
}
