package main

import (
	"context"
	"syscall"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/policy"
)

// platformIsolator finds the program for a policy that wants to be kept apart.
func platformIsolator(p *policy.Policy, path string, avoid []string) (isolator, error) {
	switch p.Sandbox.Type {
	case policy.BackendFirejail:
		at, err := netns.FindFirejail(path, avoid)
		return isolator{kind: policy.BackendFirejail, program: at}, err
	case policy.BackendSeatbelt:
		return isolator{}, &netns.Unavailable{Problem: "darwin_seatbelt is of macOS alone", Advice: "leave sandbox.type out, which means the platform's own"}
	}
	at, err := netns.FindBwrap(path, avoid)
	if err == nil {
		return isolator{kind: policy.BackendBwrap, program: at}, nil
	}
	if p.Sandbox.TypeGiven || p.HasRules || len(p.Credentials) > 0 {
		return isolator{}, err
	}
	if at, err = netns.FindFirejail(path, avoid); err != nil {
		return isolator{}, &netns.Unavailable{Problem: "neither bwrap nor firejail is installed",
			Advice: "install the package bubblewrap, version 0.8 or newer"}
	}
	return isolator{kind: policy.BackendFirejail, program: at, warning: "bwrap is not installed: firejail keeps the program apart"}, nil
}

// bareAttributes end a program without a sandbox with egressd.
func bareAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// isolatorVersion asks the program for its version.
func isolatorVersion(ctx context.Context, i isolator) (string, error) {
	if i.kind == policy.BackendFirejail {
		return netns.FirejailVersion(ctx, i.program)
	}
	return netns.BwrapVersion(ctx, i.program)
}
