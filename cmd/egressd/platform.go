package main

import (
	"errors"
	"fmt"

	"github.com/egressd/egressd/policy"
)

// noFork is why no copy is made on macOS.
const noFork = "os_env.fork needs Linux: macOS cannot show a copy of the working folder in its place"

// refusedOn is what a policy asks for that a platform, as runtime.GOOS spells
// it, has nothing for.
func refusedOn(platform string, p *policy.Policy) []error {
	if platform != "darwin" {
		return nil
	}
	var errs []error
	no := func(found bool, text string) {
		if found {
			errs = append(errs, errors.New(text))
		}
	}
	no(p.Fork, noFork)
	no(p.Sandbox.Limits.Memory > 0, "sandbox.limits.memory needs Linux: macOS bounds no program's memory")
	no(p.Sandbox.Limits.Processes > 0, "sandbox.limits.processes needs Linux: macOS counts the processes of a user, not of a sandbox")
	for _, c := range p.Credentials {
		switch c.Type {
		case "gh_basic", "github_app", "databricks_cli":
			errs = append(errs, fmt.Errorf("credential %s: %s is for programs written in Go. On macOS these ask the system whom to trust and ignore SSL_CERT_FILE, so they could not speak to egressd. For git alone use git_https", c.ID, c.Type))
		}
	}
	return errs
}
