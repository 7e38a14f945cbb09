package credbroker

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/token"
)

func targets(hosts ...string) []Target {
	var list []Target
	for _, h := range hosts {
		list = append(list, Target{Text: h, Host: h, Port: 443})
	}
	return list
}

var gitHubHosts = targets("github.com", "gist.github.com", "api.github.com", "uploads.github.com")

func seen(entries []Entry, profiles ...token.Profile) Inside {
	return insideOf(entries, func(id, part string) string {
		if id == "keyonly" && part == "session_token" {
			return ""
		}
		return strings.TrimSuffix("ph-"+id+"-"+part, "-")
	}, func(string) []token.Profile { return profiles })
}

// Which variables each type sets, and who wins where two want the same.
func TestInsideVariables(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"nothing without env", []Entry{{ID: "a", Type: HTTPSBearer}, {ID: "g", Type: GitHTTPS, Targets: targets("git.test")}}, ""},
		{"every name the same", []Entry{{ID: "a", Type: HTTPSBearer, Env: []string{"X", "Y"}}}, "X=ph-a Y=ph-a"},
		{"a canary", []Entry{{ID: "c", Canary: true, Env: []string{"X"}}}, "X=ph-c"},
		{"github.com", []Entry{{ID: "g", Type: GHBasic, Targets: gitHubHosts}}, "GH_TOKEN=ph-g GITHUB_TOKEN=ph-g"},
		{"an app", []Entry{{ID: "g", Type: GitHubApp, Targets: gitHubHosts}}, "GH_TOKEN=ph-g GITHUB_TOKEN=ph-g"},
		{"enterprise", []Entry{{ID: "g", Type: GHBasic, Targets: targets("ghe.test")}}, "GH_HOST=ghe.test GH_ENTERPRISE_TOKEN=ph-g"},
		{"enterprise on another port", []Entry{{ID: "g", Type: GHBasic, Targets: []Target{{Host: "ghe.test", Port: 8443}}}}, "GH_HOST=ghe.test:8443 GH_ENTERPRISE_TOKEN=ph-g"},
		{"both", []Entry{{ID: "g", Type: GHBasic, Targets: gitHubHosts}, {ID: "h", Type: GHBasic, Targets: targets("ghe.test")}},
			"GH_TOKEN=ph-g GITHUB_TOKEN=ph-g GH_HOST=ghe.test GH_ENTERPRISE_TOKEN=ph-h"},
		{"the first of two", []Entry{{ID: "g", Type: GHBasic, Targets: gitHubHosts}, {ID: "h", Type: GHBasic, Targets: gitHubHosts}}, "GH_TOKEN=ph-g GITHUB_TOKEN=ph-g"},
		{"what is written", []Entry{{ID: "g", Type: GHBasic, Targets: gitHubHosts}, {ID: "a", Type: HTTPSBearer, Env: []string{"GH_TOKEN"}}}, "GH_TOKEN=ph-a GITHUB_TOKEN=ph-g"},
		{"a key of AWS", []Entry{{ID: "k", Type: AWSSigV4}}, "AWS_ACCESS_KEY_ID=ph-k-access_key_id AWS_SECRET_ACCESS_KEY=ph-k AWS_SESSION_TOKEN=ph-k-session_token"},
		{"one without a session", []Entry{{ID: "keyonly", Type: AWSSigV4}}, "AWS_ACCESS_KEY_ID=ph-keyonly-access_key_id AWS_SECRET_ACCESS_KEY=ph-keyonly"},
		{"databricks", []Entry{{ID: "d", Type: DatabricksCLI, Default: "dev"}}, "DATABRICKS_CONFIG_PROFILE=dev"},
		{"databricks without a default", []Entry{{ID: "d", Type: DatabricksCLI}}, ""},
	} {
		if got := strings.Join(seen(c.entries).Env, " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The file of databricks has the profiles that are listed and no login, each
// told to log in by its token: a client that would try another way asks the
// host for what the sandbox has not.
func TestInsideDatabricks(t *testing.T) {
	list, err := token.Profiles([]byte("[dev]\nhost = https://dev.test\ntoken = dapi-dev-22bb\ncluster_id = 0123-456789-abcdefgh\n"+
		"[acc]\nhost = https://accounts.test\naccount_id = 12-ab\nclient_id = c\nclient_secret = s\n[prod]\nhost = https://prod.test\n"), []string{"dev", "acc"})
	if err != nil {
		t.Fatal(err)
	}
	in := seen([]Entry{{ID: "d", Type: DatabricksCLI}}, list...)
	want := "[dev]\nhost = https://dev.test\ncluster_id = 0123-456789-abcdefgh\nauth_type = pat\ntoken = ph-d\n\n" +
		"[acc]\nhost = https://accounts.test\naccount_id = 12-ab\nauth_type = pat\ntoken = ph-d\n"
	if len(in.Files) != 1 || string(in.Files[0].Data) != want || in.Files[0].Variable != "DATABRICKS_CONFIG_FILE" {
		t.Errorf("%q", in.Files)
	}
}

// git itself, told what is inside: ssh spellings lead to https, other hosts stay
// as they are, and a host that asks for a login gets the placeholder.
func TestInsideGit(t *testing.T) {
	in := seen([]Entry{
		{ID: "g", Type: GHBasic, Targets: gitHubHosts, Username: "x-access-token"},
		{ID: "h", Type: GitHTTPS, Targets: targets("git.test")},
		{ID: "p", Type: GitHTTPS, Targets: []Target{{Host: "port.test", Port: 8443}}},
		{ID: "e", Type: GHBasic, Targets: targets("ghe.test"), Username: "it's me"},
	})
	env := append(in.Env, "HOME="+t.TempDir(), "PATH=/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(in.Git)))
	for i, s := range in.Git {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.Key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.Value))
	}
	git := func(stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env, cmd.Stdin = t.TempDir(), env, strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %q: %v", args, err)
		}
		return string(out)
	}
	for from, to := range map[string]string{
		"git@github.com:o/r.git":                   "https://github.com/o/r.git",
		"github.com:o/r":                           "https://github.com/o/r",
		"ssh://git@github.com/o/r":                 "https://github.com/o/r",
		"ssh://git@github.com:22/o/r":              "https://github.com/o/r",
		"ssh://git@ssh.github.com:443/o/r":         "https://github.com/o/r",
		"git@gist.github.com:1a.git":               "https://gist.github.com/1a.git",
		"git@git.test:o/r":                         "https://git.test/o/r",
		"git@port.test:o/r":                        "https://port.test:8443/o/r",
		"git@other.test:o/r":                       "git@other.test:o/r",
		"https://git.test/o/r":                     "https://git.test/o/r",
		"git@github.com.evil.test:o/r":             "git@github.com.evil.test:o/r",
		"ssh://git@github.com.evil.test/git.test:": "ssh://git@github.com.evil.test/git.test:",
	} {
		if got := git("", "ls-remote", "--get-url", from); got != to+"\n" {
			t.Errorf("%s is %s", from, got)
		}
	}
	for host, want := range map[string]string{"github.com": "x-access-token ph-g", "gist.github.com": "x-access-token ph-g", "ghe.test": "x-access-token ph-e"} {
		out := git("protocol=https\nhost="+host+"\n\n", "credential", "fill")
		user, password := "", ""
		for line := range strings.Lines(out) {
			if v, ok := strings.CutPrefix(line, "username="); ok {
				user = strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "password="); ok {
				password = strings.TrimSpace(v)
			}
		}
		if user+" "+password != want {
			t.Errorf("%s: %q", host, out)
		}
		git("protocol=https\nhost="+host+"\nusername=u\npassword=p\n\n", "credential", "reject")
	}
	if slices.ContainsFunc(in.Git, func(s GitSetting) bool {
		return strings.Contains(s.Key+s.Value, "ph-") || strings.Contains(s.Key, "api.github.com")
	}) {
		t.Errorf("a setting holds a placeholder, or is for the API: %q", in.Git)
	}
}
