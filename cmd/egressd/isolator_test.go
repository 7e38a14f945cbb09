package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/policy"
)

// toolbox is a search path with these programs.
func toolbox(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Which isolator a policy gets depends on what it asks for and on what the host
// has, and where nothing can do it nothing runs.
func TestChooseIsolator(t *testing.T) {
	both, jail, none := toolbox(t, "bwrap", "firejail"), toolbox(t, "firejail"), toolbox(t)
	const open, closed, empty = "sandbox: {write_paths: [.]}", "sandbox: {allow_network: false}", "{}"
	for _, c := range []struct {
		name, policy, path, unsafe string
		kind, warning              string // or
		err, hint                  string
	}{
		{"the platform's", open, both, "", policy.BackendBwrap, "", "", ""},
		{"bwrap by name", "sandbox: {type: linux_bwrap}", both, "", policy.BackendBwrap, "", "", ""},
		{"firejail by name", "sandbox: {type: firejail}", both, "", policy.BackendFirejail, "", "", ""},
		{"firejail as a word", "sandbox: firejail", both, "", policy.BackendFirejail, "", "", ""},
		{"none by name", "sandbox: {type: none}", both, "", policy.BackendNone, "NO sandbox (sandbox.type: none)", "", ""},
		{"firejail for want of bwrap", open, jail, "", policy.BackendFirejail, "bwrap is not installed", "", ""},
		{"firejail without a network", closed, jail, "", policy.BackendFirejail, "bwrap is not installed", "", ""},
		{"not for one that names bwrap", "sandbox: {type: linux_bwrap}", jail, "", "", "", "bwrap is not installed", "bubblewrap"},
		{"not for rules", "sandbox: {egress_rules: []}", jail, "", "", "", "bwrap is not installed", "bubblewrap"},
		{"not for an empty policy", empty, jail, "", "", "", "bwrap is not installed", "bubblewrap"},
		{"nothing at all", open, none, "", "", "", "neither bwrap nor firejail is installed", "bubblewrap"},
		{"no firejail", "sandbox: {type: firejail}", none, "", "", "", "firejail is not installed", "package firejail"},
		{"another platform's", "sandbox: {type: darwin_seatbelt}", both, "", "", "", "of macOS alone", "sandbox.type"},
		{"bare", open, both, "1", policy.BackendNone, "NO sandbox (EGRESSD_UNSAFE_NO_SANDBOX=1)", "", ""},
		{"bare without a program", open, none, "1", policy.BackendNone, "NO sandbox", "", ""},
		{"bare, another value", open, both, "yes", policy.BackendBwrap, "", "", ""},
		{"never bare with rules", "sandbox: {egress_rules: []}", both, "1", "", "", "egress_rules", ""},
		{"never bare by an empty policy", empty, both, "1", "", "", "egress_rules", ""},
		{"never bare with credentials", "sandbox: {egress_rules: [GET a.test/], credential_proxy: [{type: https_bearer, source: {env: T}, targets: [a.test]}]}",
			both, "1", "", "", "runs programs bare", ""},
		{"never bare without a network", closed, both, "1", "", "", "allow_network", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, problems := policy.Load("/p/egressd.yaml", []byte(c.policy), policy.Options{Platform: "linux"})
			if p == nil {
				t.Fatal(problems)
			}
			env := func(name string) string { return map[string]string{"PATH": c.path, unsafeVariable: c.unsafe}[name] }
			got, err := chooseIsolator(p, env, nil)
			if c.err == "" {
				if err != nil || got.kind != c.kind || !strings.Contains(got.warning, c.warning) || (got.warning == "") != (c.warning == "") {
					t.Fatalf("%+v, %v", got, err)
				}
				return
			}
			var no *netns.Unavailable
			if err == nil || !strings.Contains(err.Error(), c.err) || errors.As(err, &no) != (c.hint != "") || c.hint != "" && !strings.Contains(no.Hint(), c.hint) {
				t.Fatalf("%+v, %v", got, err)
			}
		})
	}
}

// A program that a sandbox could have put there keeps nobody apart.
func TestIsolatorIsNotTakenFromTheSandbox(t *testing.T) {
	dir := toolbox(t, "bwrap", "firejail")
	p, problems := policy.Load("/p/egressd.yaml", []byte("sandbox: {}"), policy.Options{Platform: "linux"})
	if p == nil {
		t.Fatal(problems)
	}
	env := func(name string) string { return map[string]string{"PATH": dir}[name] }
	if got, err := chooseIsolator(p, env, []string{dir}); err == nil {
		t.Errorf("%+v", got)
	}
}
