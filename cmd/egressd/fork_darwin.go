package main

import (
	"context"
	"errors"
)

// makeFork copies nothing: unsupported has refused the policy before.
func (r *runner) makeFork(context.Context) (func(), error) {
	if r.policy.Fork {
		return nil, errors.New(noFork)
	}
	return func() {}, nil
}

// clearForks has nothing to clear away.
func (r *runner) clearForks(context.Context) func() { return func() {} }
