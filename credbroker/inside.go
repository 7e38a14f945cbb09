package credbroker

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/egressd/egressd/credbroker/token"
)

// Inside is what the sandbox sees of the entries: placeholders where clients
// look for a login, and nothing of a secret.
type Inside struct {
	// Env are variables, NAME=VALUE, none of them twice.
	Env []string
	// Files are files that clients read. Where they lie is the caller's to say.
	Files []File
	// Git are settings for git, to be handed over as GIT_CONFIG_* behind those
	// that are there.
	Git []GitSetting
}

// File is a file inside. Variable is set to its path.
type File struct {
	Name, Variable string
	Data           []byte
}

// GitSetting is a key and one of its values.
type GitSetting struct{ Key, Value string }

// InsideFiles are the names of the files that Inside will have, known before
// any source is read.
func InsideFiles(entries []Entry) []string {
	for _, e := range entries {
		if e.Type == DatabricksCLI {
			return []string{databricksName}
		}
	}
	return nil
}

const databricksName = "databrickscfg"

// insideOf works Inside out. placeholder gives an entry's placeholder, with part
// "access_key_id" or "session_token" the others of a key of AWS ("" where there
// is none); profiles are those of a databricks_cli entry.
func insideOf(entries []Entry, placeholder func(id, part string) string, profiles func(id string) []token.Profile) Inside {
	var in Inside
	taken := map[string]bool{}
	set := func(name, value string) {
		if value != "" && !taken[name] {
			taken[name] = true
			in.Env = append(in.Env, name+"="+value)
		}
	}
	// What is written wins over what a type sets by itself, and of two entries
	// of a type the first.
	for _, e := range entries {
		for _, name := range e.Env {
			set(name, placeholder(e.ID, ""))
		}
	}
	for _, e := range entries {
		switch e.Type {
		case GHBasic, GitHubApp:
			in.github(e, set, placeholder(e.ID, ""))
			in.git(e.Targets)
		case GitHTTPS:
			in.git(e.Targets)
		case AWSSigV4:
			set("AWS_ACCESS_KEY_ID", placeholder(e.ID, "access_key_id"))
			set("AWS_SECRET_ACCESS_KEY", placeholder(e.ID, ""))
			set("AWS_SESSION_TOKEN", placeholder(e.ID, "session_token"))
		case DatabricksCLI:
			if !taken["DATABRICKS_CONFIG_FILE"] {
				taken["DATABRICKS_CONFIG_FILE"] = true
				in.Files = append(in.Files, File{Name: databricksName, Variable: "DATABRICKS_CONFIG_FILE",
					Data: token.Render(profiles(e.ID), func(string) string { return placeholder(e.ID, "") })})
				set("DATABRICKS_CONFIG_PROFILE", e.Default)
			}
		}
	}
	return in
}

// github sets what gh reads, and has git ask for the same where a host wants a
// login: without it git would prompt, or fail.
func (in *Inside) github(e Entry, set func(name, value string), placeholder string) {
	for _, t := range e.Targets {
		variable := "GH_TOKEN"
		if onGitHub(t.Host) {
			set("GH_TOKEN", placeholder)
			set("GITHUB_TOKEN", placeholder)
		} else {
			variable = "GH_ENTERPRISE_TOKEN"
			set("GH_HOST", authority(t))
			set("GH_ENTERPRISE_TOKEN", placeholder)
		}
		if gitHost(t.Host) {
			in.add("credential.https://"+authority(t)+".helper", helper(e.Username, variable))
		}
	}
}

// helper answers git's question for a login with the placeholder of a variable.
// The function is a shell's, as git runs helpers that begin with "!".
func helper(user, variable string) string {
	if user == "" || strings.ContainsFunc(user, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._@+-", r))
	}) {
		user = "x-access-token"
	}
	return `!f() { test "$1" != get || printf 'username=` + user + `\npassword=%s\n' "$` + variable + `"; }; f`
}

// git leads the ssh spellings of the hosts to https: a secret is attached to
// requests, and ssh has none.
func (in *Inside) git(targets []Target) {
	for _, t := range targets {
		if !gitHost(t.Host) || strings.Contains(t.Host, "*") {
			continue
		}
		key := "url.https://" + authority(t) + "/.insteadOf"
		spellings := []string{"git@" + t.Host + ":", "ssh://git@" + t.Host + "/", "ssh://git@" + t.Host + ":22/", "ssh://" + t.Host + "/",
			"git+ssh://git@" + t.Host + "/", t.Host + ":"}
		if t.Host == "github.com" {
			spellings = append(spellings, "ssh://git@ssh.github.com:443/")
		}
		for _, s := range spellings {
			in.add(key, s)
		}
	}
}

func (in *Inside) add(key, value string) {
	if s := (GitSetting{key, value}); !slices.Contains(in.Git, s) {
		in.Git = append(in.Git, s)
	}
}

// onGitHub says that a host is github.com's own, whose token gh takes from
// GH_TOKEN.
func onGitHub(host string) bool {
	return host == "github.com" || strings.HasSuffix(host, ".github.com")
}

// gitHost says that git speaks to the host, which it does not to github.com's
// API.
func gitHost(host string) bool { return host != "api.github.com" && host != "uploads.github.com" }

// authority is a target's host as a URL of https has it.
func authority(t Target) string {
	switch {
	case t.Port != 443:
		return net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
	case strings.Contains(t.Host, ":"):
		return "[" + t.Host + "]"
	}
	return t.Host
}
