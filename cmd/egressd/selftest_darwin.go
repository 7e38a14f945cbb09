package main

import "context"

// networkProbes are those that look at the network from inside.
func (r *runner) networkProbes() []func(context.Context) error {
	return []func(context.Context) error{r.probeDenied, r.probeRefused}
}
