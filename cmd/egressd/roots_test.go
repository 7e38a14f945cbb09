package main

import (
	"errors"
	"testing"

	"github.com/egressd/egressd/ca"
)

// Where the roots of the host cannot be read nothing verifies: a nil pool would
// be the system's, whatever that is, to crypto/tls.
func TestRootsThatCannotBeRead(t *testing.T) {
	issuer, err := ca.New(ca.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pool := upstreamRoots(issuer, func() (*ca.Roots, error) { return nil, errors.New("no") }, nil)
	if pool == nil || !pool.Equal(issuer.UpstreamRoots()) {
		t.Errorf("the pool is %v, not an empty one", pool)
	}
}
