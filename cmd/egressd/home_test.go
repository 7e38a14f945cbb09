package main

import (
	"os"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// A home that is a folder of the host is HOME inside and kept, with what is
// granted below HOME in it; nothing else of the host's home is there.
func TestRunHome(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			for _, dir := range []string{"agent/bin", "cache", "proj/home", "real"} {
				if err := os.MkdirAll(r.path(dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range map[string]string{"agent/.profile": "P\n", "cache/c": "C\n", "secret": "S\n", "proj/a": "A\n", "agent/bin/tool": "#!/bin/sh\necho tool\n",
				".gitconfig": "[user]\n\tname = Ann Example\n\temail = a@b.test\n", "agent/.gitconfig": "[user]\n\tname = Agent\n\temail = agent@b.test\n"} {
				r.write(t, name, text)
			}
			if err := os.Chmod(r.path("agent/bin/tool"), 0o755); err != nil {
				t.Fatal(err)
			}
			policy := func(sandbox string) []string {
				return []string{"run", "--policy", r.write(t, "home.yaml", "sandbox: {egress_rules: [], "+sandbox+"}\n"), "--"}
			}
			at := r.with("PATH", r.path("bin")+":/usr/local/bin:/usr/bin:/bin")
			for _, x := range []struct{ sandbox, script, want string }{
				{"home: ~/agent", "echo $HOME; cat ~/.profile; ls ~; cat a; pwd; cat ~/secret 2>/dev/null; echo kept >~/kept", r.dir + "\nP\nbin\nproj\nA\n" + r.path("proj") + "\n"},
				{"home: ~/agent, read_paths: [~/cache]", "cat ~/kept ~/cache/c; touch ~/cache/x 2>/dev/null || echo ro; rm ~/kept", "kept\nC\nro\n"},
				{"home: ../agent", "tool; git config user.name; echo $GIT_AUTHOR_NAME; [ ~ != $TMPDIR ] && touch $TMPDIR/x", "tool\nAgent\n\n"},
				{"home: home, write_paths: [.]", "echo x >~/in; cat home/in; mv home h2 2>/dev/null || echo pinned; rm home/in", "x\npinned\n"},
				// A grant of all of HOME gives way to it, one that is deeper does not.
				{"home: ~/agent, read_paths: [~, ~/cache]", "cat ~/secret 2>/dev/null; cat ~/cache/c", "C\n"},
			} {
				out, errs, code := at.call(t, append(policy(x.sandbox), "sh", "-c", x.script)...)
				if out != x.want || code != 0 {
					t.Errorf("uid %d: %s: %s: %d %q\n%s", uid, x.sandbox, x.script, code, out, errs)
				}
			}
			for _, path := range []string{"kept", "bin", "agent/secret"} {
				if _, err := os.Lstat(r.path(path)); !os.IsNotExist(err) {
					t.Errorf("uid %d: %s is there on the host: %v", uid, path, err)
				}
			}
			// Where cwd is HOME itself, that is what shows.
			if out, errs, code := r.call(t, append([]string{"run", "--cwd", r.dir}, append(policy("home: ~/agent")[1:], "cat", "secret")...)...); out != "S\n" || code != 0 || !strings.Contains(errs, "sandbox.home is not used") {
				t.Errorf("uid %d: cwd is HOME: %d %q %s", uid, code, out, errs)
			}
			// What egressd's own folders or yesterday's program make of it.
			for path, target := range map[string]string{"proj/out": "../real", "agent/work": "/etc", "link": "real"} {
				if err := os.Symlink(target, r.path(path)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(r.path("work/deep"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, x := range []struct{ sandbox, words string }{
				{"home: ~/none", "~/none does not exist: make that folder first"},
				{"home: ~/secret", "is no folder"},
				{"home: \"~\"", "is or holds your own home"},
				{"home: /", "is or holds your own home"},
				{"home: out", "is or passes a link that leaves " + r.path("proj")},
				{"home: ~/.local/state/egressd", "as home: it lies in a folder of egressd's own"},
				{"home: /proc", "as home: it shows empty"},
				{"home: ~/agent, read_paths: [~/work/deep]", "there is something else of that name"},
			} {
				r.fails(t, append(policy(x.sandbox)[1:], "echo", "ran"), x.words)
			}
			if out, errs, code := r.call(t, append(policy("home: ~/link"), "sh", "-c", "touch ~/new; echo ran")...); out != "ran\n" || code != 0 {
				t.Errorf("uid %d: a link that is the user's own: %d %q %s", uid, code, out, errs)
			}
			if _, err := os.Lstat(r.path("real/new")); err != nil {
				t.Error(err)
			}
			// The record does not lie in it, nor a policy's file that is yet to be made.
			r.fails(t, append([]string{"--audit", r.path("agent/a.jsonl")}, append(policy("home: ~/agent")[1:], "true")...), "which the sandbox may write: name another folder")
			for _, path := range []string{"proj/out", "agent/work", "link"} {
				if err := os.Remove(r.path(path)); err != nil {
					t.Fatal(err)
				}
			}
			// A repository that is made in it is told of, as in any grant.
			_, errs, code := r.call(t, append(policy("home: ~/agent"), "sh", "-c", "cd ~ && git init -q repo")...)
			if code != 0 || !strings.Contains(errs, "left behind: "+r.path("agent/repo")) {
				t.Errorf("uid %d: left behind: %d %s", uid, code, errs)
			}
		}
	})
}
