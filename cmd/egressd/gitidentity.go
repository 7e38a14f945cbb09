package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// gitIdentity is the name and address of the caller's git settings as the
// variables that git reads, since their ~/.gitconfig is not there inside.
func gitIdentity(ctx context.Context, home string, programs *hostPrograms) []string {
	var files []string
	for _, f := range []string{filepath.Join(home, ".config", "git", "config"), filepath.Join(home, ".gitconfig")} {
		if _, err := os.Stat(f); err == nil {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil
	}
	found, plain := map[string]string{}, false
	if len(files) == 1 {
		if data, err := os.ReadFile(files[0]); err == nil {
			found, plain = plainIdentity(string(data))
		}
	}
	if !plain {
		found = askGit(ctx, programs)
	}
	var env []string
	for _, v := range []struct{ key, author, committer string }{
		{"user.name", "GIT_AUTHOR_NAME=", "GIT_COMMITTER_NAME="}, {"user.email", "GIT_AUTHOR_EMAIL=", "GIT_COMMITTER_EMAIL="},
	} {
		if value := found[v.key]; value != "" {
			env = append(env, v.author+value, v.committer+value)
		}
	}
	return env
}

// askGit asks git itself.
func askGit(ctx context.Context, programs *hostPrograms) map[string]string {
	git, err := programs.find("git")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, git, "config", "--global", "--includes", "--null", "--get-regexp", `^user\.(name|email)$`)
	cmd.Dir = "/"
	cmd.Env = append(slices.Clip(programs.env), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if err != nil {
		return nil // none of the two is set
	}
	found := map[string]string{}
	for _, entry := range strings.Split(string(out), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			found[key] = value // the last one counts, as for git
		}
	}
	return found
}

// plainIdentity reads the [user] section of a config file that is written
// plainly, as `git config` and most people write it: a process of git takes
// longer than all else that is read at a start. plain is false for a file that
// only git may read: one with includes, quotes, escapes, comments behind a value
// or anything else but NAME = VALUE in that section.
func plainIdentity(text string) (found map[string]string, plain bool) {
	found = map[string]string{}
	user := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[':
			name := strings.ToLower(line)
			if strings.HasPrefix(name, "[include") || !strings.HasSuffix(name, "]") {
				return nil, false
			}
			user = name == "[user]"
			continue
		case strings.HasSuffix(line, "\\"):
			return nil, false
		case !user:
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.ContainsAny(value, "\"\\#;") {
			return nil, false
		}
		found["user."+strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	return found, true
}
