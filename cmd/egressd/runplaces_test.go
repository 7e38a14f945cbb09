package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// Flags add to the policy, the folder of work is chosen, and what stands on
// stderr leads on.
func TestRunFlags(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		policy := r.policy(t, "GET api.test/one")
		for _, x := range []struct {
			flags []string
			want  string
		}{
			{nil, "200\n403\n403\n"},
			{[]string{"--allow", "GET api.test/two"}, "200\n200\n403\n"},
			{[]string{"--allow", "GET api.test/**", "--deny", "GET api.test/two"}, "200\n403\n200\n"},
			{[]string{"--deny", "!* api.test/**", "--allow", "GET api.test/**"}, "403\n403\n403\n"},
		} {
			args := append(append([]string{"run", "--policy", policy}, x.flags...),
				curl("https://api.test/one", "https://api.test/two", "https://api.test/three")...)
			if out, errs, code := r.call(t, args...); out != x.want || code != 0 || errs != "" {
				t.Errorf("%v: %d %q %s", x.flags, code, out, errs)
			}
		}
		other := r.path("other")
		if err := os.Mkdir(other, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := r.call(t, "run", "--policy", policy, "--cwd", "../other", "--", "pwd"); out != other+"\n" || code != 0 {
			t.Errorf("--cwd: %d %q %s", code, out, errs)
		}
		if out, errs, code := r.call(t, "run", "-v", "--policy", policy, "--", "true"); code != 0 || !strings.Contains(errs, "egressd audit list --session ") {
			t.Errorf("-v: %d %q %s", code, out, errs)
		}
		// No policy: every request is denied, and a newcomer is told how to begin.
		out, errs, code := r.call(t, append([]string{"run"}, curl("https://api.test/one")...)...)
		if out != "403\n" || code != 0 || !strings.Contains(errs, "no policy: every request is denied") || !strings.Contains(errs, "--allow RULE") {
			t.Errorf("no policy: %d %q %s", code, out, errs)
		}
		if out, _, code := r.call(t, "audit", "list", "--kind", "request"); code != 0 || !strings.Contains(out, "api.test") {
			t.Errorf("audit list: %d %s", code, out)
		}
	})
}

// Where policies and records lie: the user's own folders, also under sudo, and
// never another user's policy.
func TestRunFolders(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		request := append([]string{"run"}, curl("https://api.test/one")...)

		// Another user's file is not found, root's is.
		found := filepath.Join(r.path("proj"), "egressd.yaml")
		if err := os.Rename(r.policy(t, "GET api.test/**"), found); err != nil {
			t.Fatal(err)
		}
		cmd := r.command(t, request...)
		if err := os.Chown(found, 5555, 5555); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := finish(t, cmd); out != "403\n" || code != 0 || !strings.Contains(errs, "no policy") {
			t.Errorf("another's policy: %d %q %s", code, out, errs)
		}
		cmd = r.command(t, request...)
		if err := os.Chown(found, 0, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(found, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := finish(t, cmd); code != exitEgressd || !strings.Contains(errs, "is new: read it, then egressd trust") {
			t.Errorf("root's policy: %d %s", code, errs)
		}
		if err := os.Remove(found); err != nil {
			t.Fatal(err)
		}

		// The user's own policy needs no trust; XDG names its folder.
		for _, dir := range []string{"xdg/config/egressd", "xdg/state", "xdg/run"} {
			if err := os.MkdirAll(r.path(dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(r.policy(t, "GET api.test/**"), r.path("xdg/config/egressd/egressd.yaml")); err != nil {
			t.Fatal(err)
		}
		xdg := r.with("XDG_CONFIG_HOME", r.path("xdg/config")).with("XDG_STATE_HOME", r.path("xdg/state")).with("XDG_RUNTIME_DIR", r.path("xdg/run"))
		if out, errs, code := xdg.call(t, request...); out != "200\n" || code != 0 || errs != "" {
			t.Errorf("XDG: %d %q %s", code, out, errs)
		}
		if files, err := filepath.Glob(r.path("xdg/state/egressd/audit/*.jsonl")); err != nil || len(files) != 1 {
			t.Errorf("XDG_STATE_HOME holds %v (%v)", files, err)
		}
		for _, dir := range []string{"xdg/state/egressd", "xdg/state/egressd/audit", "xdg/run/egressd"} {
			if st, err := os.Stat(r.path(dir)); err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v %v", dir, st, err)
			}
		}

		// Under sudo they are the caller's, whatever the variables say, and what is
		// made belongs to the caller.
		if err := os.RemoveAll(r.path(".local")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(r.path(".config/egressd"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(r.path("xdg/config/egressd/egressd.yaml"), r.path(".config/egressd/egressd.yaml")); err != nil {
			t.Fatal(err)
		}
		cmd = r.with("SUDO_UID", "4242").with("HOME", "/root").with("XDG_STATE_HOME", "/srv/nosuch").with("USER", "root").command(t, request...)
		cmd.SysProcAttr = nil // root
		if out, errs, code := finish(t, cmd); out != "200\n" || code != 0 {
			t.Errorf("sudo: %d %q %s", code, out, errs)
		}
		files, err := filepath.Glob(r.path(".local/state/egressd/audit/*.jsonl"))
		if err != nil || len(files) != 1 {
			t.Fatalf("sudo: the caller's state folder holds %v (%v)", files, err)
		}
		for path := files[0]; path != r.dir; path = filepath.Dir(path) {
			st, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if sys, ok := statOf(st); !ok || sys.Uid != annUID {
				t.Errorf("sudo: %s does not belong to the caller", path)
			}
		}
	})
}
