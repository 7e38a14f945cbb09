package main

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/egressd/egressd/policy"
)

// unsupported names the keys of the policy that this version does not enforce
// yet. A key that is read and does nothing would be a promise that is not kept,
// so a policy that holds one is not put in force. What is about the sandbox
// does not concern the proxy alone.
func unsupported(p *policy.Policy, sandbox bool) error {
	s := p.Sandbox
	var errs []error
	no := func(found bool, key string) {
		if found {
			errs = append(errs, fmt.Errorf("%s is not enforced by this version, so the policy is not used: take it out", key))
		}
	}
	no(p.Approval.Mode == "ask", "approval.mode: ask")
	no(p.Audit.SQLite != "", "audit.sqlite")
	no(p.Audit.OTLP != "", "audit.otlp")
	if !sandbox {
		if s.OnLeak == "kill" {
			errs = append(errs, errors.New("sandbox.on_leak: kill ends the sandbox of egressd run, and serve has none: take it out"))
		}
		return errors.Join(errs...)
	}
	errs = append(errs, refusedOn(runtime.GOOS, p)...)
	return errors.Join(errs...)
}
