package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

const leftPolicy = "sandbox: {write_paths: [.], cwd_allow_hidden: [.venv, .git, .vscode, .gitmodules], egress_rules: []}\n"

// What a run leaves that could run on the host is named, on stderr and in the
// record, whatever it did to hide it; nothing else is. Every fourth runs as root.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	const repo = `git init -qb main; git commit -q --allow-empty -m one; `
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for i, c := range []struct {
			name, setup, run string
			left             string // each line: the path, and words of why
			lacks            string
		}{
			{name: "nothing", setup: repo + "echo all: >Makefile; mkdir .vscode a; echo '{}' >.vscode/tasks.json; echo x >a/package.json",
				run: "cat Makefile; echo x >a/file; git commit -q --allow-empty -m two; touch -d 2001-01-01 b; mkdir -p deep/er"},
			{name: "new and changed files", setup: "mkdir -p .vscode a/b; echo all: >a/b/Makefile; echo '{}' >.vscode/tasks.json; echo 1 >package.json",
				run:  "echo x >.envrc; echo x: >>a/b/Makefile; echo x >.vscode/tasks.json; echo 2 >package.json; touch -r a/b a/b/Makefile; mkdir .idea .husky; echo x >.npmrc",
				left: ".envrc new;\na/b/Makefile changed;\n.vscode/tasks.json changed;\npackage.json changed;\n.idea new;\n.husky new;\n.npmrc new;"},
			{name: "the same bytes again", setup: "echo all: >Makefile", run: "mv Makefile m; echo no >Makefile; cat m >Makefile; rm m", lacks: "Makefile"},
			{name: "bytes of the same length, and the time set back", setup: "echo one >Makefile; touch -d 2001-01-01 Makefile", run: "echo two >Makefile; touch -d 2001-01-01 Makefile .", left: "Makefile changed;"},
			{name: "a file through its other name", setup: "mkdir x; echo one >x/Makefile; ln x/Makefile y", run: "echo two >y", left: "x/Makefile changed;"},
			{name: "what a link leads to", setup: "echo one >make.txt; ln -s make.txt Makefile", run: "echo two >make.txt", left: "make.txt what"},
			{name: "a mode", setup: "echo one >configure", run: "chmod +x configure", left: "configure changed;"},
			{name: "a repository", setup: repo, run: "git init -q sub", left: "sub/.git new git repository"},
			{name: "a repository in the index", setup: repo, run: "git init -q sub; cd sub; git commit -q --allow-empty -m x; cd ..; git add sub 2>/dev/null", left: "sub/.git that the index of"},
			{name: "a repository in a long index of version 4", setup: repo + "mkdir n; for i in $(seq 300); do echo >n/$i; done; git add n; git commit -qm n",
				run: "git init -q n/zz; cd n/zz; git commit -q --allow-empty -m x; cd ../..; git add n/zz 2>/dev/null; git update-index --index-version 4", left: "n/zz/.git that the index of"},
			{name: "an empty submodule that is filled", setup: repo + "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; mkdir sub", run: "git init -q sub", left: "sub/.git that the index of"},
			{name: "an index that cannot be read", setup: repo, run: "git init -q sub; git update-index --split-index 2>/dev/null; mkfifo x; rm -f .git/index; mkfifo .git/index", left: "sub/.git could not be read"},
			{name: "a file that leads to a repository", setup: repo, run: "mkdir sub; echo gitdir: ../evil >sub/.git", left: "sub/.git new git repository"},
			{name: "a link to a repository", setup: repo, run: "mkdir sub; ln -s ../evil sub/.git", left: "sub/.git new git repository"},
			{name: "a repository around what is held", setup: repo, run: "rm -rf .git/HEAD .git/refs 2>/dev/null; mkdir objects refs; echo ref: refs/heads/x >HEAD; echo >config", left: "left behind: .: under a name of its own"},
			{name: "a repository where there was none", run: "git init -q", left: ".git new git repository: git run here"},
			{name: "a bare repository", setup: repo, run: "mkdir -p a/b; git init -q --bare a/b/docs; rm -rf a/b/docs/hooks", left: "a/b/docs under a name of its own"},
			{name: "a folder that becomes one", setup: repo + "mkdir docs; echo >docs/config", run: "cd docs; mkdir objects refs; echo ref: refs/heads/x >HEAD", left: "docs under a name of its own"},
			{name: "a bare repository by commondir", setup: repo, run: "mkdir d; echo ref: refs/heads/x >d/HEAD; echo ../e >d/commondir", left: "d under a name of its own"},
			{name: "a repository in node_modules", setup: repo, run: "mkdir -p node_modules/a/b; echo >node_modules/a/Makefile; git init -q node_modules/a/b", left: "node_modules/a/b/.git new git", lacks: "Makefile"},
			{name: "a worktree", setup: repo, run: "git worktree add -q wt 2>/dev/null", left: "wt/.git new git\n.git/worktrees/wt new;"},
			{name: "a submodule's folder", setup: repo, run: "mkdir -p .git/modules/a/b; cd .git/modules/a/b; echo x >config; echo x >HEAD", left: ".git/modules/a new;"},
			{name: "a rebase that waits", setup: repo, run: "mkdir .git/rebase-merge; echo exec evil >.git/rebase-merge/git-rebase-todo", left: ".git/rebase-merge new;"},
			{name: "a submodule's file", setup: repo + "mkdir sub; echo gitdir: ../.git/modules/sub >sub/.git",
				run: "(echo x >sub/.git) 2>/dev/null; mv sub sub2 2>/dev/null; rm -f sub/.git 2>/dev/null; true", lacks: "left behind"},
			{name: "a config with another name", setup: repo + "ln .git/config cfg", run: "echo >>cfg", left: ".git/config changed;\n.git/config another name"},
			{name: "a hook with another name", setup: repo + "echo x >.git/hooks/pre-push; ln .git/hooks/pre-push hk", run: "echo y >hk", left: ".git/hooks/pre-push changed;\n.git/hooks/pre-push another name"},
			{name: "a hook below core.hooksPath", setup: repo + "mkdir -p tools/hooks; echo x >tools/hooks/pre-push; git config core.hooksPath tools/hooks", run: "echo y >tools/hooks/pre-push; echo z >tools/hooks/pre-commit",
				left: "tools/hooks/pre-push changed; core.hookspath\ntools/hooks/pre-commit new;"},
			{name: "core.hooksPath that is not there yet", setup: repo + "git config core.hooksPath hk", run: "mkdir hk; echo z >hk/pre-commit", left: "hk new; core.hookspath"},
			{name: "a config that is included", setup: repo + "echo >inc; git config include.path ../inc", run: "(echo x >inc) 2>/dev/null; mv inc i 2>/dev/null; echo >other", lacks: "left behind"},
			{name: "an included config that is not there yet", setup: repo + "git config include.path ../sub/inc", run: "mkdir sub; echo x >sub/inc", left: "sub/inc new; include.path"},
			{name: "the user's settings", setup: repo + "git config --global core.hooksPath githooks; mkdir githooks", run: "echo x >githooks/post-commit", left: "githooks/post-commit new;"},
			{name: "a command in the config", setup: repo + "mkdir t; echo x >t/c.sh; git config filter.x.clean './t/c.sh %f'", run: "echo y >t/c.sh", left: "t/c.sh changed; filter.clean"},
			{name: "odd names", setup: repo, run: "d=$(printf 'x\\negressd: all is well\\033[2J'); mkdir \"$d\"; echo >\"$d/Makefile\"", left: `x\negressd: all is well\u001b[2J/Makefile new;`},
			{name: "pipes, links and folders by these names", setup: repo, run: "mkfifo Makefile .envrc; ln -s / .idea; ln -s Makefile justfile; mkdir package.json; mkdir d; ln -s /etc d/e; mkfifo d/HEAD d/objects d/refs",
				left: "Makefile new;\n.envrc new;\n.idea new;\njustfile new;\npackage.json new;\nd under a name"},
			{name: "a pipe in place of a file", setup: repo + "echo x >Makefile; mkdir h; git config core.hooksPath h", run: "rm Makefile; mkfifo Makefile; rmdir h; mkfifo h", left: "Makefile changed;\nh changed;"},
			{name: "a folder swapped for a link", setup: repo + "mkdir a; echo x >a/Makefile; mkdir -p b; echo y >b/Makefile", run: "rm -r a; ln -s b a", lacks: "left behind"},
			{name: "a folder swapped for another", setup: repo + "mkdir a; echo x >a/Makefile", run: "mv a b; mkdir a; echo y >a/Makefile", left: "a/Makefile changed;\nb/Makefile new;"},
			{name: "a closed folder", setup: repo + "mkdir a", run: "mkdir -p n; git init -q n/x; chmod 0 n a", left: "n not looked at\na not looked at"},
			{name: "many", setup: repo, run: "for i in $(seq 200); do mkdir -p new/$i; echo >new/$i/Makefile; done; for i in $(seq 30); do mkdir d$i; echo >d$i/Makefile; done", left: "new holds 200\nd1/Makefile new;\nleft behind: 11 more", lacks: "new/1/Makefile"},
		} {
			t.Run(c.name, func(t *testing.T) {
				for _, name := range []string{annName, "root"} {
					if err := os.RemoveAll("/home/" + name); err != nil {
						t.Fatal(err)
					}
				}
				uid := annUID
				if i%4 == 3 {
					uid = 0
				}
				r, _ := gitPlace(t, uid)
				policy := r.write(t, "left.yaml", leftPolicy)
				r.shell(t, "set -e\n"+c.setup)
				_, errs, code := r.call(t, "run", "--policy", policy, "--audit", r.path("record"), "--", "sh", "-c", c.run)
				_ = os.Chmod(r.path("proj/n"), 0o755)
				if code != 0 {
					t.Errorf("status %d", code)
				}
				record, err := os.ReadFile(r.path("record"))
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.SplitSeq(c.left, "\n") {
					path, why, _ := strings.Cut(line, " ")
					if i := strings.Index(line, "well"); i >= 0 {
						path, why = strings.TrimSuffix(line, " new;"), "new;"
					}
					if line != "" && !saysLeft(errs, path, why) {
						t.Errorf("%q is not said", line)
					}
					if strings.Contains(why, ";") && !strings.Contains(path, "well") && !strings.Contains(string(record), `"kind":"left_behind","path":"`+filepath.Join(r.path("proj"), path)+`"`) {
						t.Errorf("%s is not in the record: %s", path, record)
					}
				}
				if c.lacks != "" && strings.Contains(errs, c.lacks) || c.left == "" && strings.Contains(errs, "left behind") || strings.Contains(errs, "\negressd: all is well") {
					t.Errorf("it says more")
				}
				if t.Failed() {
					t.Log(errs)
				}
			})
		}
	})
}

// saysLeft looks for a line with a path and words of why.
func saysLeft(errs, path, why string) bool {
	for line := range strings.Lines(errs) {
		ok := strings.Contains(line, path)
		for word := range strings.FieldsSeq(why) {
			ok = ok && strings.Contains(line, word)
		}
		if ok {
			return true
		}
	}
	return false
}

// What the program tries so that git on the host runs something of its own.
const plant = `set +e; exec 2>/dev/null
evil="[core]
	repositoryformatversion = 0
	fsmonitor = $HOME/proj/evil.sh
	hooksPath = $HOME/proj/evilhooks
[extensions]
	worktreeConfig = true"
mkdir -p evilrepo/hooks evilhooks; printf '#!/bin/sh\necho ran >>~/ran\n' >evil.sh; chmod +x evil.sh
for h in post-index-change pre-commit post-commit; do cp evil.sh evilhooks/$h; cp evil.sh evilrepo/hooks/$h; done
echo "$evil" >evilrepo/config
for g in .git deep/er/repo/.git .git/modules/sub .git/worktrees/wt bare; do
	echo "$evil" >>$g/config; echo "$evil" >$g/config.worktree; echo "$evil" >new && mv -f new $g/config; ln -f evilrepo/config $g/config
	echo $PWD/evilrepo >$g/commondir; rm -f $g/commondir; cp evil.sh $g/hooks/post-index-change; mv $g/hooks $g/h; ln -s $PWD/evilhooks $g/hooks
	rm -rf $g.old; mv $g $g.old && cp -r $g.old $g && echo "$evil" >$g/config
	echo $PWD/evilrepo >$g/objects/info/alternates; git -C $g config core.fsmonitor $PWD/evil.sh
done
for d in deep/er/repo deep/er deep sub wt bare; do mv $d $d.old && mkdir $d && git init -q $d && echo "$evil" >>$d/.git/config; done
for f in sub/.git wt/.git; do echo "gitdir: $PWD/evilrepo" >$f; rm -f $f; mv $f $f.x; ln -sf $PWD/evilrepo $f; done
echo "$evil" >>inc; mv inc inc2; echo x >>tracked; true`

// Git on the host runs nothing of what a program planted where repositories
// were, and what it runs where there was none is named first.
func TestHostGitRunsNothing(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r, _ := gitPlace(t, uid)
			policy := r.write(t, "left.yaml", leftPolicy)
			r.shell(t, `set -e; git init -qb main ../s; git -C ../s commit -q --allow-empty -m s; git init -qb main; echo >tracked; git add tracked; git commit -qm one
				git -c protocol.file.allow=always submodule --quiet add ../s sub; git commit -qm sub; git worktree add -q wt
				mkdir -p deep/er; git init -qb main deep/er/repo; git -C deep/er/repo commit -q --allow-empty -m d; git init -q --bare bare
				mkdir late; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),late; echo >inc; git config include.path ../inc; git config --global safe.directory '*'`)
			run := func(script string) string {
				_, errs, code := r.call(t, "run", "--policy", policy, "--", "sh", "-c", script)
				if code != 0 {
					t.Errorf("uid %d: status %d %s", uid, code, errs)
				}
				return errs
			}
			errs := run(plant)
			out := r.shell(t, "for d in . deep deep/er deep/er/repo sub wt bare; do git -C $d status --short; git -C $d log -1; done; git submodule status; git commit -qam host; true")
			if _, err := os.Stat(r.path("ran")); err == nil {
				t.Errorf("uid %d: git ran something:\n%s\n%s", uid, out, errs)
			}
			// That it would have been seen: what nobody can hold.
			errs = run("git init -q late; cd late; git config core.fsmonitor ~/proj/evil.sh; git commit -q --allow-empty -m x; true")
			r.shell(t, "git status --short")
			if _, err := os.Stat(r.path("ran")); err != nil {
				t.Errorf("uid %d: the trap does not work", uid)
			}
			first, _, _ := strings.Cut(errs[max(0, strings.Index(errs, "egressd: left behind")):], "\n")
			if !strings.Contains(first, "late/.git: a new git repository that the index of") {
				t.Errorf("uid %d: it is not named first: %s", uid, errs)
			}
		}
	})
}
