package main

import (
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
)

// unsafeVariable, set to 1, runs programs bare where the policy asks for
// nothing that only a sandbox can give.
const unsafeVariable = "EGRESSD_UNSAFE_NO_SANDBOX"

// isolator is what keeps a program apart from the host.
type isolator struct {
	// kind is a backend of package policy: linux_bwrap, firejail,
	// darwin_seatbelt, or none. It stands in records and in the answers of exec.
	kind string
	// program is its file, found in PATH; empty for none and darwin_seatbelt.
	program string
	// warning is what must be said on stderr at every start and every call, with
	// -q too; empty: nothing.
	warning string
}

// bare says that there is no isolation at all.
func (i isolator) bare() bool { return i.kind == policy.BackendNone }

// chooseIsolator decides what keeps the programs of a policy apart: what its
// type names; where it names none the platform's, on Linux bwrap and, for a
// policy without rules whose host has no bwrap, firejail. Nothing is looked for
// in avoid, which are folders that a sandbox can write or that came with a
// repository. The error of a host that has none is an *netns.Unavailable.
func chooseIsolator(p *policy.Policy, env func(string) string, avoid []string) (isolator, error) {
	if env(unsafeVariable) == "1" {
		return withoutSandbox(p)
	}
	if p.Sandbox.Type == policy.BackendNone {
		return isolator{kind: policy.BackendNone, warning: "there is NO sandbox (sandbox.type: none): the program may do whatever you may"}, nil
	}
	return platformIsolator(p, env("PATH"), avoid)
}

// notBare is a policy that nothing but a sandbox can carry out, where
// unsafeVariable is set.
type notBare struct{ what string }

func (e *notBare) Error() string { return unsafeVariable + "=1 runs programs bare, and " + e.what }

// Hint is what to do about it.
func (e *notBare) Hint() string { return "unset it" }

// withoutSandbox refuses what only a sandbox can give.
func withoutSandbox(p *policy.Policy) (isolator, error) {
	for _, x := range []struct {
		found bool
		what  string
	}{
		{p.HasRules, "the policy filters the network (egress_rules; a policy without a sandbox has them, empty)"},
		{len(p.Credentials) > 0, "the policy has credentials (credential_proxy)"},
		{!p.Sandbox.AllowNetwork, "the policy takes the network away (allow_network: false)"},
	} {
		if x.found {
			return isolator{}, &notBare{x.what}
		}
	}
	return isolator{kind: policy.BackendNone, warning: "there is NO sandbox (" + unsafeVariable + "=1): the program may do whatever you may"}, nil
}

// avoided are the folders in which no isolation program is looked for: those
// that a sandbox can write, or could have yesterday, and the working folder,
// which came from somebody, unless it is one of the system's.
func avoided(cwd string, grants []mount.Grant) []string {
	out := []string{}
	if !mount.InBase(cwd) {
		out = append(out, cwd)
	}
	for _, g := range grants {
		if g.Write {
			out = append(out, g.Path)
		}
	}
	return out
}
