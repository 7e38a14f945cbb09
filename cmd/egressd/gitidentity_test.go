package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// What is read without git is what git says; everything else is left to git.
func TestGitIdentity(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is needed: install the package git")
	}
	for _, c := range []struct {
		name, text string
		plain      bool
	}{
		{"as git writes it", "[user]\n\tname = Ann Example\n\temail = ann@example.test\n[core]\n\teditor = vi\n", true},
		{"other sections first", "[alias]\n  x = !sh -c \"a\"\n[User]\nName=Ann  \n# a comment\nEMAIL = a@b\n", true},
		{"set twice", "[user]\nname = A\n[user]\nname = B\n", true},
		{"a subsection is another section", "[user \"x\"]\nname = A\n", true},
		{"nothing", "[core]\nbare = false\n", true},
		{"quoted", "[user]\nname = \"Ann\"\n", false},
		{"a comment behind", "[user]\nname = Ann ; the boss\n", false},
		{"escaped", "[user]\nname = A\\tB\n", false},
		{"continued", "[user]\nname = Ann \\\n Example\n", false},
		{"an include", "[include]\npath = other\n[user]\nname = A\n", false},
		{"a conditional include", "[includeIf \"gitdir:x\"]\npath = other\n", false},
		{"a header with a value behind", "[user] name = A\n", false},
		{"a name alone", "[user]\nname\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			found, plain := plainIdentity(c.text)
			if plain != c.plain {
				t.Fatalf("plain is %v", plain)
			}
			said := askGit(t.Context(), newHostPrograms("", nil, home))
			for _, key := range []string{"user.name", "user.email"} {
				if plain && found[key] != said[key] {
					t.Errorf("%s is %q, git says %q", key, found[key], said[key])
				}
			}
			env := gitIdentity(t.Context(), home, newHostPrograms("", nil, home))
			if name := said["user.name"]; (name != "") != slices.Contains(env, "GIT_AUTHOR_NAME="+name) {
				t.Errorf("the variables are %q, git says %q", env, name)
			}
		})
	}
}
