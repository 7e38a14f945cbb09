package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/egressd/egressd/policy"
)

// errNoPolicy is the error of commands that are about a policy where there is
// none.
var errNoPolicy = errors.New("no policy: give one with --policy, or write egressd.yaml here")

// policyFlags are the flags of every command that reads a policy.
type policyFlags struct {
	file, terminal, agent, cwd string
	allow, deny                []string
}

func (f *policyFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.file, "policy", "", "policy `FILE` (default: egressd.yaml or .egressd/config.yaml here and upwards to the repository's root, then the config folder's egressd.yaml)")
	flags.StringVar(&f.terminal, "terminal", "", "use the terminal of this `NAME`")
	flags.StringVar(&f.agent, "agent", "", "use the policy of the agent of this `NAME`")
	flags.StringVar(&f.cwd, "cwd", "", "work in this `FOLDER`")
	flags.StringArrayVar(&f.allow, "allow", nil, "add this allow `RULE` to the policy's (repeatable)")
	flags.StringArrayVar(&f.deny, "deny", nil, "add this deny `RULE` to the policy's (repeatable)")
}

// source is where the policy comes from: a file that was named, one that was
// found, or none, which denies everything.
type source struct {
	flags policyFlags
	dirs  dirs
	cwd   string // of the lookup, links followed
	path  string // absolute; "" for no policy
	found bool   // by lookup in a folder of work: it needs trust
}

func newSource(flags policyFlags) (*source, error) {
	d, err := findDirs()
	if err != nil {
		return nil, err
	}
	s := &source{flags: flags, dirs: d}
	cwd := flags.cwd
	if cwd == "" {
		if cwd, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("finding the working folder: %w", err)
		}
	}
	if cwd, err = filepath.Abs(cwd); err != nil {
		return nil, fmt.Errorf("finding the working folder: %w", err)
	}
	if s.cwd, err = filepath.EvalSymlinks(cwd); err != nil {
		return nil, fmt.Errorf("finding the working folder: %w", err)
	}
	if st, err := os.Stat(s.cwd); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("finding the working folder: %s is not a folder", s.cwd)
	}
	if flags.file != "" {
		if s.path, err = filepath.Abs(flags.file); err != nil {
			return nil, fmt.Errorf("finding the policy: %w", err)
		}
		return s, nil
	}
	s.path, s.found = s.lookup().Find()
	return s, nil
}

func (s *source) lookup() policy.Lookup {
	return policy.Lookup{Cwd: s.cwd, Config: s.dirs.config, UID: s.dirs.uid}
}

// folder is the folder of work whose policy this is.
func (s *source) folder() string {
	dir := filepath.Dir(s.path)
	if filepath.Base(dir) == ".egressd" {
		return filepath.Dir(dir)
	}
	return dir
}

func (s *source) store() *policy.Store {
	return &policy.Store{Dir: s.dirs.state, UID: s.dirs.uid, GID: s.dirs.gid}
}

// read loads the policy and adds what flags say. The policy is nil where a
// problem is an error. No file is a policy without rules.
func (s *source) read() (*policy.Policy, policy.Problems, error) { return s.load(true) }

// load is read, with or without warnings, which cost time with many rules.
func (s *source) load(lint bool) (*policy.Policy, policy.Problems, error) {
	data, name := []byte(nil), "egressd.yaml"
	if s.path != "" {
		var err error
		if data, err = policy.ReadFile(s.path); err != nil {
			return nil, nil, fmt.Errorf("reading the policy: %w", err)
		}
		name = s.path
	}
	p, problems := policy.Load(name, data, policy.Options{Home: s.dirs.home, ReadFile: policy.ReadFile, NoLint: !lint})
	if p == nil {
		return nil, problems, nil
	}
	chosen, err := p.Select(s.flags.agent, s.flags.terminal)
	if err != nil {
		return nil, problems, err
	}
	chosen, more := chosen.Add(s.flags.allow, s.flags.deny)
	return chosen, append(problems, more...), nil
}

// whole is the error of a policy that cannot be enforced as it was read: it has
// errors, or a file that it includes, which may hold deny rules, is not there.
func whole(p *policy.Policy, problems policy.Problems) error {
	if err := problems.Err(); err != nil {
		return err
	}
	if len(p.Missing) > 0 {
		return &policy.LoadError{Problems: p.Missing}
	}
	return nil
}

// enforced is read for the commands that act on the policy: it must load
// whole, with all the files it names, and a found one must be trusted.
func (s *source) enforced() (*policy.Policy, error) {
	p, problems, err := s.load(false)
	if err != nil {
		return nil, err
	}
	if err := whole(p, problems); err != nil {
		return nil, fmt.Errorf("the policy does not load:\n%w", err)
	}
	if !s.found {
		return p, s.notLedPast()
	}
	state, err := s.store().State(p)
	if err != nil {
		return nil, err
	}
	if state != policy.Trusted {
		return nil, fmt.Errorf("policy %s is %s: read it, then egressd trust", s.path, state)
	}
	return p, nil
}

// notLedPast refuses to go on without a policy of a folder above that the user
// trusts: a .git in between, which ends the lookup, may be the work of a
// sandbox that the policy ruled.
func (s *source) notLedPast() error {
	if s.flags.file != "" {
		return nil
	}
	for _, file := range s.lookup().Above() {
		known, err := s.store().Knows(file)
		if err != nil {
			return err
		}
		if known {
			return fmt.Errorf("a .git at or above %s keeps the policy %s, which you trust, from being found: name a policy with --policy, or remove that .git", s.cwd, file)
		}
	}
	return nil
}

// workingFolder is where the program starts: --cwd, else the policy's cwd,
// else the caller's folder; links followed.
func (s *source) workingFolder(p *policy.Policy) (string, error) {
	if s.flags.cwd != "" || p.Cwd == "" {
		return s.cwd, nil
	}
	dir, err := filepath.EvalSymlinks(policy.Expand(p.Cwd, filepath.Dir(s.path), s.dirs.home))
	if err != nil {
		return "", fmt.Errorf("finding os_env.cwd: %w", err)
	}
	return dir, nil
}
