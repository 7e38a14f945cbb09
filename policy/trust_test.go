package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/egressd/egressd/policy"
)

func store(t *testing.T) *policy.Store {
	return &policy.Store{Dir: t.TempDir(), UID: os.Getuid(), GID: os.Getgid()}
}

func state(t *testing.T, s *policy.Store, files map[string]string, want string) *policy.Policy {
	t.Helper()
	p, problems := loadTree(files)
	if p == nil {
		t.Fatal(problems)
	}
	got, err := s.State(p)
	if err != nil || got != want {
		t.Errorf("state %s %v, want %s", got, err, want)
	}
	return p
}

// What was accepted is this policy at this path with these files; a change of
// any of them, or a file more or less, needs to be accepted again.
func TestTrust(t *testing.T) {
	s := store(t)
	files := map[string]string{
		"/p/egressd.yaml":         "include: [b.yaml]\ntools: {agents: [a]}\n",
		"/p/b.yaml":               "sandbox: {egress_rules: [GET a.test]}\n",
		"/p/agents/a/config.yaml": "os_env: inherit\n",
	}
	p := state(t, s, files, policy.New)
	if err := s.Trust(p); err != nil {
		t.Fatal(err)
	}
	state(t, s, files, policy.Trusted)
	for _, path := range []string{"/p/egressd.yaml", "/p/b.yaml", "/p/agents/a/config.yaml"} {
		was := files[path]
		files[path] += "#\n"
		state(t, s, files, policy.Changed)
		files[path] = was
	}
	was := files["/p/agents/a/config.yaml"]
	delete(files, "/p/agents/a/config.yaml")
	state(t, s, files, policy.Changed)
	files["/p/agents/a/config.yaml"] = was
	state(t, s, files, policy.Trusted)

	other, _ := policy.Load("/q/egressd.yaml", []byte(files["/p/egressd.yaml"]), policy.Options{ReadFile: tree(files)})
	if got, _ := s.State(other); got != policy.New {
		t.Errorf("the same bytes at another path are %s", got)
	}
	relative, _ := policy.Load("egressd.yaml", nil, policy.Options{})
	if got, err := s.State(relative); got != policy.New || err == nil {
		t.Errorf("a relative path is %s, %v", got, err)
	}
}

// Two that accept at once lose nothing.
func TestTrustAtOnce(t *testing.T) {
	s := store(t)
	var wg sync.WaitGroup
	var all []*policy.Policy
	for _, name := range strings.Split("abcdefghij", "") {
		p, _ := policy.Load("/"+name+"/egressd.yaml", nil, policy.Options{})
		all = append(all, p)
		wg.Go(func() {
			if err := s.Trust(p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, p := range all {
		if got, err := s.State(p); got != policy.Trusted {
			t.Errorf("%s is %s, %v", p.Path, got, err)
		}
	}
}

// A list that others could have written, that is a link, or that is no list,
// trusts nothing.
func TestTrustIsGuarded(t *testing.T) {
	p, _ := policy.Load("/p/egressd.yaml", nil, policy.Options{})
	for name, spoil := range map[string]func(t *testing.T, s *policy.Store){
		"a folder that others can write": func(t *testing.T, s *policy.Store) { check(t, os.Chmod(s.Dir, 0o777)) },
		"a file that others can write": func(t *testing.T, s *policy.Store) {
			check(t, os.Chmod(filepath.Join(s.Dir, "trust.json"), 0o666))
		},
		"a link in place of the file": func(t *testing.T, s *policy.Store) {
			file := filepath.Join(s.Dir, "trust.json")
			check(t, os.Rename(file, file+".real"))
			check(t, os.Symlink("trust.json.real", file))
		},
		"a link in place of the folder": func(t *testing.T, s *policy.Store) {
			check(t, os.Rename(s.Dir, s.Dir+".real"))
			check(t, os.Symlink(s.Dir+".real", s.Dir))
		},
		"a list cut short": func(t *testing.T, s *policy.Store) {
			check(t, os.Truncate(filepath.Join(s.Dir, "trust.json"), 20))
		},
		"another version": func(t *testing.T, s *policy.Store) {
			check(t, os.WriteFile(filepath.Join(s.Dir, "trust.json"), []byte(`{"version":2}`), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := store(t)
			check(t, os.Chmod(s.Dir, 0o700))
			check(t, s.Trust(p))
			spoil(t, s)
			if got, err := s.State(p); got == policy.Trusted || err == nil {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	missing := &policy.Store{Dir: filepath.Join(t.TempDir(), "none"), UID: os.Getuid()}
	if got, err := missing.State(p); got != policy.New || err != nil {
		t.Errorf("without a state folder: %s, %v", got, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is shown before a policy is accepted: every grant, every program, and
// nothing that draws on the terminal.
func TestGrants(t *testing.T) {
	p, problems := loadTree(map[string]string{
		"/p/egressd.yaml": `sandbox:
  read_paths: ["x\e[2Jy"]
  write_paths: [.]
  env_passthrough: [LANG]
  egress_rules: [GET a.test/**]
  egress_allow_private_destinations: [10.0.0.0/8]
  credential_proxy:
    - {type: https_bearer, target: a.test, source: {command: "get token 'a b'"}}
    - {type: oauth2, target: b.test, source: {env: T}, client_secret: {command: other}, grant: refresh_token, token_url: "https://x.test", client_id: c}
approval: {mode: ask, hook: [notify, --now]}
terminals: {t: {os_env: {sandbox: none}}}
tools: {agents: [a], on_call: judge}
upstream: {resolve: {"a.test:443": "127.0.0.1:1"}}
`,
		"/p/agents/a/config.yaml": "sandbox: {type: linux_bwrap, write_files: [f]}\n",
	})
	if p == nil {
		t.Fatal(problems)
	}
	var b strings.Builder
	for _, g := range p.Grants() {
		b.WriteString(g.Where + "|" + g.What + "|" + g.Text + "\n")
	}
	for _, want := range []string{
		`|reads|x\u001b[2Jy`, "|writes|.", "|variable|LANG", "|rule|GET a.test/**", "|private|10.0.0.0/8",
		`|runs|get token "a b" on the host, for https_bearer:a.test`, "|runs|other on the host, for oauth2:b.test",
		"|runs|notify --now on the host, for approval.hook", "|runs|judge on the host, for tools.on_call",
		"terminal t|backend|none", "agent a|network|NOT filtered", "agent a|writes|f", "|pins|a.test:443 is dialled at 127.0.0.1:1",
		"|credential|oauth2:b.test: the variable T for b.test",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.ContainsRune(b.String(), 0x1b) {
		t.Error("an escape reaches the terminal")
	}
}

// A dot name that is left visible is written to where its folder is.
func TestGrantsHidden(t *testing.T) {
	for text, want := range map[string]string{
		"": "reads .git, a hidden name; reads .env, a hidden name",
		", write_paths: [src]": "writes src; writes .git, a hidden name, in what may be written, but for its config and hooks; " +
			"writes .env, a hidden name, in what may be written",
	} {
		p, problems := loadTree(map[string]string{"/p/egressd.yaml": "sandbox: {egress_rules: [], cwd_allow_hidden: [.venv, .git, .env]" + text + "}\n"})
		if p == nil {
			t.Fatal(problems)
		}
		var got []string
		for _, g := range p.Grants() {
			got = append(got, g.What+" "+g.Text)
		}
		if list := strings.Join(got, "; "); list != want {
			t.Errorf("%q: it shows %s", text, list)
		}
	}
}
