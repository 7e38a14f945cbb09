package policy_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/egressd/egressd/policy"
)

// tree reads the files of a map, as a file system would.
func tree(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}
}

func loadTree(files map[string]string) (*policy.Policy, policy.Problems) {
	return policy.Load("/p/egressd.yaml", []byte(files["/p/egressd.yaml"]), policy.Options{Platform: "linux", Home: "/home/u", ReadFile: tree(files)})
}

// Rules of an included file come behind the policy's own, with their places;
// paths are relative to the file that names them.
func TestInclude(t *testing.T) {
	p, problems := loadTree(map[string]string{
		"/p/egressd.yaml":    "sandbox: {egress_rules: [GET a.test]}\ninclude: [sub/base.yaml, pypi]\n",
		"/p/sub/base.yaml":   "include: [more.yaml]\nos_env:\n  sandbox:\n    egress_rules:\n      - \"!* a.test/x\"\ntests:\n  - GET https://a.test/x: deny\n",
		"/p/sub/more.yaml":   "sandbox:\n  type: linux_bwrap\n  egress_rules: [GET c.test]\n",
		"/p/unrelated.yaml":  "x",
		"/p/sub/egressd.yml": "x",
	})
	if p == nil {
		t.Fatal(problems)
	}
	var got []string
	for i, r := range p.Rules[:3] {
		got = append(got, p.RulePos[i].String()+" "+r.String())
	}
	want := "/p/egressd.yaml:1:26 GET a.test/**; /p/sub/base.yaml:5:9 !* a.test/x; /p/sub/more.yaml:3:18 GET c.test/**"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("rules\n got %s\nwant %s", s, want)
	}
	if len(p.Files) != 3 || p.Files[1].Path != "/p/sub/base.yaml" || p.Files[2].Role != "include" || len(p.Tests) != 1 || len(p.Missing) != 0 {
		t.Errorf("files %v, tests %v, missing %v", p.Files, p.Tests, p.Missing)
	}
}

// An included file is a policy as strict as any, and says only what counts.
func TestIncludeErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a bad rule", "sandbox:\n  egress_rules: [FETCH a.test]\n", "/p/b.yaml:2:18: error bad_rule: unknown_method"},
		{"a cycle", "include: [egressd.yaml]\n", "/p/b.yaml:1:11: error bad_value"},
		{"itself", "include: [b.yaml]\n", "/p/b.yaml:1:11: error bad_value"},
		{"a tag", "sandbox:\n  egress_rules: [! GET a.test]\n", "/p/b.yaml:2:18: error wrong_type"},
		{"what would count for nothing", "sandbox: {mask_paths: [x]}\n", "/p/b.yaml:1:11: error conflict"},
		{"a section", "audit: {keep: 3}\n", "/p/b.yaml:1:1: error conflict"},
		{"a tunnel beside a rule", "sandbox: {egress_rules: [CONNECT a.test:443]}\n", "/p/b.yaml:1:26: error conflict"},
		{"no YAML", "a: b: c\n", "/p/b.yaml:1:1: error yaml_syntax"},
		{"a list", "[]\n", "/p/b.yaml:1:1: error wrong_type"},
	} {
		p, problems := loadTree(map[string]string{
			"/p/egressd.yaml": "sandbox: {egress_rules: [GET a.test]}\ninclude: [b.yaml]\n", "/p/b.yaml": c.text,
		})
		if p != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.want) {
			t.Errorf("%s: %v", c.name, problems)
		}
	}
}

// A policy whose included file is not there loads, but says that it must not
// be enforced; and the path is pinned, lest the sandbox make the file.
func TestIncludeMissing(t *testing.T) {
	p, problems := loadTree(map[string]string{"/p/egressd.yaml": "include: [b.yaml]\n"})
	if p == nil || len(p.Missing) != 1 || p.Missing[0].Line != 1 {
		t.Fatalf("%v %v", p, problems)
	}
	if pins := strings.Join(p.Pins(), " "); pins != "/p/egressd.yaml /p/b.yaml" {
		t.Errorf("pins %s", pins)
	}
}

// Agents have files of their own, may take their parent's environment, and are
// chosen by name; what their file leaves out is the naming file's.
func TestAgents(t *testing.T) {
	files := map[string]string{
		"/p/egressd.yaml":              "sandbox: {egress_rules: [GET a.test]}\ntools: {agents: [one, two, gone]}\naudit: {keep: 7}\nterminals: {t: {command: make, os_env: {cwd: sub, sandbox: inherit}}}\n",
		"/p/agents/one/config.yaml":    "model: x\nos_env: inherit\nlimits: {max_connections: 5}\n",
		"/p/agents/two/config.yaml":    "os_env:\n  sandbox:\n    type: linux_bwrap\n    read_paths: [x]\n    egress_rules: [GET b.test]\nterminals: {u: {os_env: inherit, args: [a]}}\n",
		"/p/agents/unused/config.yaml": "[",
	}
	p, problems := loadTree(files)
	if p == nil {
		t.Fatal(problems)
	}
	if len(p.Notes) != 2 || len(p.Pins()) != 4 {
		t.Errorf("notes %v, pins %v", p.Notes, p.Pins())
	}
	for _, c := range []struct {
		agent, terminal, host string
		connections           int
	}{{"", "", "a.test", 4096}, {"", "t", "a.test", 4096}, {"one", "", "a.test", 5}, {"two", "", "b.test", 4096}, {"two", "u", "b.test", 4096}} {
		q, err := p.Select(c.agent, c.terminal)
		if err != nil {
			t.Fatal(err)
		}
		if q.Rules[0].Host != c.host || q.Limits.MaxConnections != c.connections || q.Audit.Keep != 7 || q.Hash != p.Hash || q.Path != p.Path {
			t.Errorf("%q %q: %+v", c.agent, c.terminal, q.Rules)
		}
		if c.terminal == "t" && (q.Cwd != "/p/sub" || q.Terminal.Command != "make") {
			t.Errorf("terminal %+v in %s", q.Terminal, q.Cwd)
		}
	}
	for _, c := range [][2]string{{"gone", ""}, {"none", ""}, {"../one", ""}, {"../../p/agents/one", ""}, {"", "none"}, {"two", "t"}} {
		if _, err := p.Select(c[0], c[1]); err == nil {
			t.Errorf("%v can be chosen", c)
		}
	}
	files["/p/agents/two/config.yaml"] = "os_env: {sandbox: {typo: 1}}\n"
	if q, problems := loadTree(files); q != nil || !strings.HasPrefix(problems[0].String(), "/p/agents/two/config.yaml:1:20: error unknown_key") {
		t.Errorf("an agent with an error: %v", problems)
	}
}

// The record must not lie where an agent can write, whoever names it.
func TestAgentsRecord(t *testing.T) {
	_, problems := loadTree(map[string]string{
		"/p/egressd.yaml":         "tools: {agents: [a]}\naudit: {file: /srv/rec}\n",
		"/p/agents/a/config.yaml": "sandbox: {write_paths: [/srv]}\n",
	})
	if len(problems) != 1 || problems[0].Line != 2 || problems[0].Kind != policy.KindConflict {
		t.Error(problems)
	}
}

// The hash changes with every byte that counts, and with nothing else.
func TestHash(t *testing.T) {
	files := map[string]string{"/p/egressd.yaml": "include: [b.yaml]\n", "/p/b.yaml": "sandbox: {egress_rules: [GET a.test]}\n"}
	one, _ := loadTree(files)
	again, _ := loadTree(files)
	added, _ := one.Add([]string{"GET b.test"}, nil)
	files["/p/b.yaml"] += "#"
	other, _ := loadTree(files)
	if one.Hash != again.Hash || one.Hash == added.Hash || one.Hash == other.Hash || len(one.Hash) != 64 {
		t.Errorf("hashes %s %s %s %s", one.Hash, again.Hash, added.Hash, other.Hash)
	}
}

// Rules of flags come last, turn filtering on, and are checked like any.
func TestAdd(t *testing.T) {
	load := func(text string) *policy.Policy {
		p, problems := policy.Load("egressd.yaml", []byte(text), policy.Options{Platform: "linux"})
		if p == nil {
			t.Fatal(problems)
		}
		return p
	}
	p := load("sandbox: {type: linux_bwrap}\n")
	q, problems := p.Add([]string{"GET a.test/**"}, []string{"* a.test/x", "!* a.test/y"})
	if q == nil || !q.HasRules || p.HasRules || len(p.Rules) != 0 || len(q.Rules) != 3 || !q.Rules[1].Deny || q.RulePos[2].String() != "--deny:2:1" {
		t.Fatalf("%+v %v", q, problems)
	}
	for _, c := range []struct {
		text, allow, deny, want string
	}{
		{"", "FETCH a.test", "", "--allow:1:1: error bad_rule: unknown_method"},
		{"", "!GET a.test", "", "--allow:1:1: error bad_value"},
		{"", "", "a.test", "--deny:1:1: error bad_rule"},
		{"", "GET egressd.internal", "", "--allow:1:1: error bad_value"},
		{"sandbox: none", "GET a.test", "", "--allow:1:1: error conflict"},
		{"sandbox: {allow_network: false}", "GET a.test", "", "--allow:1:1: error conflict"},
		{"sandbox: {egress_rules: [GET a.test]}", "CONNECT a.test:443", "", "--allow:1:1: error conflict"},
		{"sandbox: {egress_rules: [], credential_proxy: [{type: https_bearer, target: a.test, source: {env: T}}]}", "CONNECT a.test:443", "", "--allow:1:1: error conflict"},
	} {
		var allow, deny []string
		if c.allow != "" {
			allow = []string{c.allow}
		}
		if c.deny != "" {
			deny = []string{c.deny}
		}
		if q, problems := load(c.text).Add(allow, deny); q != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.want) {
			t.Errorf("%s %s: %v", c.allow, c.deny, problems)
		}
	}
}
