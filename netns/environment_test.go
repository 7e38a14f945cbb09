//go:build linux

package netns

import (
	"slices"
	"testing"

	"github.com/egressd/egressd/netns/mount"
)

// Later layers win, and no variable stands twice: what is known late over what
// was given, who the sandbox is over all.
func TestEnvironmentLayers(t *testing.T) {
	s := &Session{explicit: true, plan: mount.Plan{Home: "/home/ann", Temp: "/tmp/x"}}
	s.id.inside.Name = "ann"
	s.cfg = Config{Env: []string{"A=1", "K=given", "HOME=/evil"}, EnvExplicit: []string{"J=3"},
		EnvLate: func() []string { return []string{"K=late", "TMPDIR=/evil"} }}
	want := []string{"A=1", "K=late", "J=3", "HOME=/home/ann", "TMPDIR=/tmp/x", "USER=ann", "LOGNAME=ann"}
	if got := s.environment(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
