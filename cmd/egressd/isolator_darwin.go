package main

import (
	"context"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/policy"
)

// platformIsolator is macOS's own; there is no program to find.
func platformIsolator(p *policy.Policy, _ string, _ []string) (isolator, error) {
	switch p.Sandbox.Type {
	case policy.BackendBwrap, policy.BackendFirejail:
		return isolator{}, &netns.Unavailable{Problem: p.Sandbox.Type + " is of Linux alone", Advice: "leave sandbox.type out, which means the platform's own"}
	}
	return isolator{kind: policy.BackendSeatbelt}, nil
}

// bareAttributes would end a program without a sandbox with egressd, which
// macOS has nothing for.
func bareAttributes() *syscall.SysProcAttr { return nil }

// isolatorVersion is the system's.
func isolatorVersion(context.Context, isolator) (string, error) {
	version, err := unix.Sysctl("kern.osproductversion")
	if err != nil {
		return "", fmt.Errorf("asking for the version of macOS: %w", err)
	}
	return version, nil
}
