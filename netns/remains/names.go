package remains

import (
	"maps"
	"slices"
	"strings"
)

// What runs files of a name.
const (
	byShell  = "a shell"
	byEditor = "an editor"
	byGit    = "git"
	byBuild  = "a build or package tool"
	byTool   = "a tool"
)

// names are files and folders that run, or name what runs, when the host's user
// does something ordinary beside them. In a folder of the list every file counts.
var names = table(map[string][]string{
	byShell: {
		".envrc", ".autoenv", ".autoenv.zsh", ".rvmrc", ".mise.toml", "mise.toml", ".mise", ".tool-versions",
		".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
		".xprofile", ".xsession", ".xsessionrc", ".xinitrc", ".xserverrc", ".pam_environment", ".config", ".local", ".ssh",
		".tmux.conf", ".tmux", ".screenrc", ".forward", ".rhosts", ".mailcap", ".oh-my-zsh", ".bash_completion",
	},
	byEditor: {
		".vscode", ".vscode-server", ".idea", ".fleet", ".zed", ".cursor", ".devcontainer", ".devcontainer.json", ".sublime-project",
		".vim", ".vimrc", ".gvimrc", ".nvimrc", ".nvim.lua", ".exrc", ".lvimrc", ".local.vimrc", ".vimspector.json",
		".emacs", ".emacs.d", ".dir-locals.el", ".dir-locals-2.el", ".projectile", ".project", ".classpath", ".settings",
		".claude", ".mcp.json", ".gemini", ".codex", ".aider.conf.yml", ".continue", ".windsurf",
	},
	byGit: {
		".gitconfig", ".gitmodules", ".githooks", ".husky", ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml",
		"lefthook.yaml", ".lefthook.yml", ".lefthook", ".overcommit.yml", ".huskyrc", ".lintstagedrc", ".hg", ".jj",
	},
	byBuild: {
		"Makefile", "makefile", "GNUmakefile", "BSDmakefile", "justfile", "Justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml",
		"CMakeLists.txt", "CMakePresets.json", "configure", "meson.build", "wscript", "SConstruct", "build.ninja", "BUILD", "BUILD.bazel",
		"WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", ".bazelrc", "Earthfile", "Rakefile", "Gemfile", ".bundle",
		"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn", ".pnpmfile.cjs", "pnpm-workspace.yaml", "bunfig.toml", "deno.json",
		"deno.jsonc", ".cargo", "Cargo.toml", "build.rs", "rust-toolchain.toml", "setup.py", "setup.cfg", "pyproject.toml", "conftest.py",
		"tox.ini", "noxfile.py", "sitecustomize.py", "usercustomize.py", ".pypirc", ".pip", "manage.py", "composer.json",
		"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradlew", "gradle.properties", ".gradle",
		"pom.xml", ".mvn", "mvnw", "build.sbt", "build.xml", "mix.exs", "rebar.config", "dune", "stack.yaml", "Package.swift", "build.zig",
	},
	byTool: {
		".gdbinit", ".lldbinit", ".irbrc", ".pryrc", ".Rprofile", ".psqlrc", ".sqliterc", ".pythonrc", ".pythonstartup", ".perldb",
		".wgetrc", ".curlrc", ".ansible.cfg", "ansible.cfg", "Dockerfile", "Containerfile", "docker-compose.yml", "docker-compose.yaml",
		"compose.yml", "compose.yaml", "Vagrantfile", "Procfile", "flake.nix", "shell.nix", "default.nix", "Tiltfile", "Jenkinsfile",
		".terraformrc", ".gnupg", ".docker", ".kube", ".aws", ".watchmanconfig", ".ackrc",
	},
})

// stores are folders that hold what others wrote and tools install by the
// thousand: only git's matters count in them.
var stores = map[string]bool{"node_modules": true, "site-packages": true, "dist-packages": true, "vendor": true, ".venv": true, "venv": true, "__pycache__": true, "target": true}

func table(kinds map[string][]string) map[string]string {
	all := map[string]string{}
	for kind, list := range kinds {
		for _, name := range list {
			all[name] = kind
		}
	}
	return all
}

// isGit says that git takes a name for a repository's.
func isGit(name string) bool { return len(name) == 4 && strings.EqualFold(name, ".git") }

// inStore says that a path from the root of a walk leads into such a folder.
func inStore(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if stores[part] {
			return true
		}
	}
	return false
}

// Names are the names that count, for whoever walks the folders at the start.
func Names() []string { return slices.Sorted(maps.Keys(names)) }
