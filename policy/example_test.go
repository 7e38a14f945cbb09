package policy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/policy"
)

func ExampleLoad() {
	p, problems := policy.Load("/srv/egressd.yaml", []byte("sandbox:\n  egress_rules: [\"GET api.example.com/**\"]\n"), policy.Options{})
	fmt.Println(len(p.Rules), problems.Err())
	_, problems = policy.Load("/srv/egressd.yaml", []byte("sandbox:\n  egress_rule: []\n"), policy.Options{})
	for _, e := range problems.Errors() {
		fmt.Println(e)
	}
	// Output:
	// 1 <nil>
	// /srv/egressd.yaml:2:3: error unknown_key: "egress_rule" is no key of sandbox: is egress_rules meant?
}

// withPolicy gives f a folder of work with a policy in it.
func withPolicy(f func(dir, file string)) {
	dir, err := os.MkdirTemp("", "work")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "egressd.yaml")
	if err := os.WriteFile(file, []byte("sandbox: {egress_rules: [GET a.example]}\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	f(dir, file)
}

// read reads a policy whole.
func read(file string) (*policy.Policy, policy.Problems, error) {
	data, err := policy.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	p, problems := policy.Load(file, data, policy.Options{ReadFile: policy.ReadFile})
	return p, problems, nil
}

// The policy of a folder, as egressd run would find it.
func ExampleLookup() {
	withPolicy(func(dir, file string) {
		path, found := policy.Lookup{Cwd: dir, UID: os.Getuid()}.Find()
		fmt.Println(path == file, found)
	})
	// Output: true true
}

// A policy that was found in a folder of work is shown to the user before it
// counts, and again when it is another one.
func ExampleStore() {
	withPolicy(func(dir, file string) {
		state := filepath.Join(dir, "state") // elsewhere, where no sandbox writes
		if err := os.Mkdir(state, 0o700); err != nil {
			fmt.Println(err)
			return
		}
		store := &policy.Store{Dir: state, UID: os.Getuid(), GID: os.Getgid()}
		p, _, err := read(file)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(store.State(p))
		for _, grant := range p.Grants() {
			fmt.Println(grant.What, grant.Text)
		}
		fmt.Println(store.Trust(p))
		fmt.Println(store.State(p))
		p, _ = policy.Load(file, []byte("sandbox: {egress_rules: [POST a.example]}\n"), policy.Options{})
		fmt.Println(store.State(p))
	})
	// Output:
	// new <nil>
	// rule GET a.example/**
	// <nil>
	// trusted <nil>
	// changed <nil>
}

// A policy that is read anew when its file changes. What does not load changes
// nothing.
func ExampleWatcher() {
	withPolicy(func(_, file string) {
		current, _, err := read(file)
		if err != nil {
			fmt.Println(err)
			return
		}
		watcher := &policy.Watcher{
			Path: file, Current: current,
			Read: func() (*policy.Policy, policy.Problems, error) { return read(file) },
			Take: func(c policy.Change) error {
				if c.Policy == nil {
					return errors.Join(c.Err, c.Problems.Err())
				}
				fmt.Println("in force:", len(c.Policy.Rules), "rules") // proxy.Server.SetPolicy would come here
				return nil
			},
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- watcher.Run(ctx) }()
		fmt.Println(watcher.Reload(ctx)) // without waiting for a change
		stop()
		fmt.Println(<-ended)
	})
	// Output:
	// in force: 1 rules
	// <nil>
	// <nil>
}
