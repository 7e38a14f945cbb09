package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

const (
	gitPolicy = "sandbox: {write_paths: [., ../store, ../main/.git], cwd_allow_hidden: [.venv, .git, .gitmodules], egress_rules: []}\n"

	// A repository with a submodule, whose name has two parts.
	gitSetup = `set -e; cd; rm -rf proj sub; git init -qb main sub; cd sub; echo s >s; git add s; git commit -qm s; cd
		git init -qb main proj; cd proj; echo one >a; git add a; git commit -qm one
		git -c protocol.file.allow=always submodule --quiet add --name libs/sub ../sub sub; git commit -qm sub`

	gitWork = `set -e; git status --short; echo two >>a; git add a; git commit -qm two; git checkout -qb x; echo three >>a
		git stash -q; git stash pop -q; git commit -qam three; git checkout -q main; git merge -q x; git branch -q -d x 2>/dev/null || true
		git tag v1; git worktree add -q ../proj/wt; git gc -q; git fsck --no-dangling; cd sub; echo t >>s; git commit -qam t; git log --format=%s`
)

// What must not succeed where the git folder may be written.
var gitAttacks = []string{
	"echo x >>.git/config", "git config a.b c", "rm -f .git/config", "ln -sf /etc/passwd .git/config", "mv .git/config .git/c",
	"echo x >.git/hooks/pre-commit", "mv .git/hooks .git/h", "rmdir .git/hooks", "mv .git .git2",
	"echo ../evil >.git/commondir", "rm -f .git/commondir", "mv .git/commondir .git/c", "echo '* filter=x' >.git/info/attributes",
	"mv .git/info .git/i", "echo ../../evil >.git/objects/info/alternates", "mv .git/objects/info .git/objects/i", "mv .git/objects .git/o",
	"echo x >>.git/modules/libs/sub/config", "echo x >.git/modules/libs/sub/hooks/update", "mv .git/modules/libs/sub .git/modules/libs/t",
	"mv .git/modules/libs .git/modules/t", "mv .git/modules .git/m", "echo x >.git/modules/libs/sub/commondir",
}

// shell runs a script as the user on the host, in proj.
func (r *runPlace) shell(t *testing.T, script string) string {
	t.Helper()
	r.own(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env = r.path("proj"), r.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.uid)}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// gitPlace is a place whose user has a git identity and a policy that shows
// .git.
func gitPlace(t *testing.T, uid int) (*runPlace, string) {
	t.Helper()
	r := newRunPlace(t, uid)
	r.write(t, ".gitconfig", "[user]\n\tname = Ann\n\temail = ann@x.test\n")
	return r, r.write(t, "git.yaml", gitPolicy)
}

// git works in a folder that shows its .git, but settings and hooks stay, and
// so does the host's git.
func TestGit(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r, policy := gitPlace(t, uid)
			r.shell(t, gitSetup)
			inside := func(script string) (string, string) {
				out, errs, code := r.call(t, "run", "--policy", policy, "--", "sh", "-c", script)
				if code != 0 {
					t.Errorf("uid %d: %s: status %d\n%s%s", uid, script, code, out, errs)
				}
				return out, errs
			}
			out, errs := inside(gitWork)
			if out != "t\ns\n" || !strings.Contains(errs, "made in "+r.path("proj/.git")+", so that the sandbox cannot make its own: commondir") {
				t.Errorf("uid %d: git inside: %q %s", uid, out, errs)
			}
			var script strings.Builder
			for _, a := range gitAttacks {
				script.WriteString("(" + a + ") 2>/dev/null && echo \"" + a + "\"\n")
			}
			out, errs = inside(script.String() + "git status --short; echo x >.git/description; echo y >.git/info/exclude")
			if out != " M sub\n?? wt/\n" || strings.Contains(errs, "made in") {
				t.Errorf("uid %d: these came through: %q %s", uid, out, errs)
			}
			out = r.shell(t, "cat .git/info/exclude; git fsck --no-dangling; git commit -qam four; git status --short; git log --format=%s | sed -n 1,3p; git config a.b c; cd sub; git status --short; git fsck")
			if out != "y\n?? wt/\nfour\nthree\ntwo\n" {
				t.Errorf("uid %d: git on the host: %q", uid, out)
			}
			checkOwner(t, uid, r.path("proj/.git/commondir"), r.path("proj/.git/objects/info/alternates"))
		}
	})
}

func checkOwner(t *testing.T, uid int, paths ...string) {
	t.Helper()
	for _, path := range paths {
		st, err := os.Lstat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if sys, ok := statOf(st); !ok || int(sys.Uid) != uid {
			t.Errorf("%s does not belong to %d", path, uid)
		}
	}
}

// What is asked of the folder that .git leads to, or of one that is not as it
// should be.
func TestGitFolders(t *testing.T) {
	t.Parallel()
	const refused = `for f in .git/config .git/hooks/x .git/commondir; do (echo x >>$f) 2>/dev/null && echo wrote $f; done; true`
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, c := range []struct{ name, setup, run, stdout, stderr string }{
			{"a worktree", `git init -qb main ../main; cd ../main; git commit -q --allow-empty -m one; rmdir ../proj; git worktree add -q ../proj`,
				`git commit -q --allow-empty -m two; git log --format=%s; (echo x >>.git) 2>/dev/null || echo held; (echo x >>../main/.git/config) 2>/dev/null || echo held; (echo x >$(git rev-parse --git-dir)/commondir) 2>/dev/null || echo held`,
				"two\none\nheld\nheld\nheld\n", "main/.git, so that"},
			{"a worktree whose folder is not granted", `git init -qb main ../other; cd ../other; git commit -q --allow-empty -m one; rmdir ../proj; git worktree add -q ../proj`,
				`true`, "", `grant that folder for git, with write_paths: ["/home/ann/other/.git"]`},
			{"a folder of another name", `git init -q --bare -b main ../store`,
				`cd ../store; for f in config hooks/x commondir info/attributes; do (echo x >>$f) 2>/dev/null && echo wrote $f; done; git rev-parse --is-bare-repository`,
				"true\n", "store, so that"},
			{"a link", `git init -q ../s; ln -s ../s/.git .git`, `mv .git x 2>/dev/null || echo held; ls .git/ 2>/dev/null | wc -l`, "held\n0\n", "is a link and hidden"},
			{"links of a repository that is elsewhere", `git init -q; mv .git/objects ../o; ln -s ../../o .git/objects`, refused + "; touch .git/x 2>/dev/null || echo held", "held\n", "shown read-only"},
			{"hooks that are a link", `git init -q; mv .git/hooks h; ln -s ../h .git/hooks`, refused + "; touch h/pre-commit 2>/dev/null || echo held; rm -f .git/hooks 2>/dev/null || echo held", "held\nheld\n", "made in"},
			{"no config", `git init -q; rm .git/config`, refused, "", "it has no config"},
			{"a commondir that leads elsewhere", `git init -q; echo ../evil >.git/commondir`, refused, "", "its commondir leads elsewhere"},
			{"another worktree in the config", `git init -q; git config core.worktree ../../other`, refused, "", "sets core.worktree"},
			{"settings for each worktree", `git init -q; git config extensions.worktreeConfig true`, refused + `; (echo x >.git/config.worktree) 2>/dev/null || echo held; git status --short`, "held\n", "config.worktree"},
			{"a repository three folders down", `mkdir -p a/b/c; cd a/b/c; git init -q; git commit -q --allow-empty -m one`,
				`cd a/b/c; ` + refused + `; for f in info/attributes objects/info/alternates; do (echo x >.git/$f) 2>/dev/null && echo wrote $f; done; git commit -q --allow-empty -m two
				for f in .git/hooks .git/info .git/objects/info .git; do mv $f $f.old 2>/dev/null && echo moved $f; done
				cd ../../..; for f in a/b/c a/b a; do mv $f $f.old 2>/dev/null && echo moved $f; done; git -C a/b/c log --format=%s; touch a/b/c/free && echo free`,
				"two\none\nfree\n", "made in /home/ann/proj/a/b/c/.git"},
			{"a bare repository further down", `git init -q --bare a/repo; git init -q --bare a/b.git; rm -r a/b.git/hooks`,
				`cd a; for f in repo/config repo/hooks/x repo/commondir b.git/hooks/x b.git/config; do (echo x >>$f) 2>/dev/null && echo wrote $f; done; mv repo r 2>/dev/null || echo held; git -C repo rev-parse --is-bare-repository`,
				"held\ntrue\n", "a/b.git, /home/ann/proj/a/repo, so that"},
			{"a submodule's file further down, a link, and a folder that is none", `git init -q; mkdir -p a/sub b c/.git d/objects d/refs; echo gitdir: ../../.git/modules/sub >a/sub/.git; git init -q e; ln -s ../e/.git b/.git; touch d/HEAD.txt`,
				`(echo x >a/sub/.git) 2>/dev/null || echo held; mv a/sub a/s 2>/dev/null || echo held; rm -f b/.git 2>/dev/null || echo held; ls b/.git/ 2>/dev/null; (echo x >c/.git/config) 2>/dev/null || echo held; touch d/HEAD && echo free`,
				"held\nheld\nheld\nheld\nfree\n", "b/.git is a link and hidden"},
			{"settings that are included", `git init -q; mkdir -p conf/d; echo >conf/d/inc; git config include.path ../conf/d/inc; git config --global includeIf.gitdir:/.path ~/proj/conf/glob; echo >conf/glob`,
				`for f in conf/d/inc conf/glob; do (echo x >>$f) 2>/dev/null && echo wrote $f; done; mv conf c 2>/dev/null; mv conf/d c 2>/dev/null; mv conf/d/inc c 2>/dev/null; touch conf/d/other && echo free`, "free\n", "made in"},
			{"no templates", `git init -q --template=`, refused + `; git commit -q --allow-empty -m one && git log --format=%s`, "one\n", "hooks"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if err := os.RemoveAll("/home/" + annName); err != nil {
					t.Fatal(err)
				}
				r, policy := gitPlace(t, annUID)
				if err := os.MkdirAll(filepath.Join(r.dir, "store"), 0o755); err != nil {
					t.Fatal(err)
				}
				r.shell(t, "set -e\n"+c.setup)
				out, errs, code := r.call(t, "run", "--policy", policy, "--", "sh", "-c", c.run)
				if out != c.stdout || code != 0 || !strings.Contains(errs, c.stderr) {
					t.Errorf("status %d, stdout %q, stderr %s", code, out, errs)
				}
			})
		}
	})
}

// Under sudo what is made belongs to the user, and a policy that was found says
// so when it is of a folder above, or somebody else's.
func TestRunSays(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r, policy := gitPlace(t, annUID)
		r.shell(t, "git init -q --template=; mkdir sub deep")
		cmd := r.with("SUDO_UID", "4242").with("HOME", "/root").with("USER", "root").command(t, "run", "--policy", policy, "--", "true")
		cmd.SysProcAttr = nil // root
		if _, errs, code := finish(t, cmd); code != 0 {
			t.Errorf("sudo: %d %s", code, errs)
		}
		checkOwner(t, annUID, r.path("proj/.git/hooks"), r.path("proj/.git/commondir"), r.path("proj/.git/info"), r.path("proj/.git/info/attributes"))

		r.write(t, "proj/egressd.yaml", "sandbox: {write_paths: [.], egress_rules: []}\n")
		if _, errs, code := r.call(t, "trust", "--yes"); code != 0 {
			t.Fatal(errs)
		}
		above := "the policy is " + r.path("proj/egressd.yaml") + ", from a folder above; " + r.path("proj/sub") + " is the only folder shown"
		for _, x := range []struct {
			args []string
			want bool
		}{{nil, false}, {[]string{"--cwd", "sub"}, true}, {[]string{"-q", "--cwd", "sub"}, false}} {
			_, errs, code := r.call(t, append(append([]string{"run"}, x.args...), "--", "true")...)
			if code != 0 || strings.Contains(errs, above) != x.want {
				t.Errorf("%v: %d %s", x.args, code, errs)
			}
		}
		cmd = r.command(t, "run", "--", "true")
		if err := os.Chown(r.path("proj/egressd.yaml"), 5555, 5555); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := finish(t, cmd); code != 0 || !strings.Contains(errs, "the policy "+r.path("proj/egressd.yaml")+" is passed over: it belongs to another user") || !strings.Contains(errs, "no policy") {
			t.Errorf("another's policy: %d %s", code, errs)
		}
	})
}

// Nothing but egressd's own folders is made on the host.
func TestRunMakesNothingElse(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r, _ := gitPlace(t, annUID)
		policy := r.write(t, "home.yaml", "sandbox: {write_paths: [~], egress_rules: []}\n")
		p := r.with("XDG_RUNTIME_DIR", r.path("none"))
		if out, errs, code := p.call(t, "run", "--policy", policy, "--", "sh", "-c", "ls -A ~/.gnupg 2>/dev/null; echo ran"); out != "ran\n" || code != 0 {
			t.Errorf("%d %q %s", code, out, errs)
		}
		for _, name := range []string{".gnupg", "none"} {
			if _, err := os.Lstat(r.path(name)); err == nil {
				t.Errorf("%s was made", name)
			}
		}
	})
}
