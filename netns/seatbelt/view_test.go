package seatbelt_test

import (
	"testing"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/netns/seatbelt"
)

// A plan means the same as a profile and as mounts.
func TestView(t *testing.T) {
	there := map[string]bool{"/Users/ann/proj": true, "/Users/ann/proj/egressd.yaml": true, "/Users/ann/proj/.git": true, "/Users/ann/docs": true}
	view := seatbelt.View{
		Plan: mount.Plan{
			Base:   []mount.Base{{Path: "/usr"}, {Path: "/bin", Target: "usr/bin"}},
			Etc:    []mount.Entry{{Path: "/private/etc/hosts", Host: "/private/etc/hosts"}},
			Links:  []mount.Link{{Path: "/home", Target: "/Users"}},
			Covers: []mount.Cover{{Path: "/usr/secret"}},
			Roots: []mount.Root{
				{Source: "/Users/ann/docs", Path: "/Users/ann/docs", Dir: true},
				{Source: "/Users/ann/empty", Path: "/Users/ann/empty", Dir: true, Empty: true},
				{Source: "/Users/ann/home", Path: "/Users/ann", Dir: true, Write: true},
				{Source: "/Users/ann/proj", Path: "/Users/ann/proj", Dir: true, Write: true,
					Pins: []string{".git"}, Parts: []string{".git/config", "egressd.yaml"},
					Masks: []mount.Mask{{Path: ".env"}, {Path: "a/.cache", Dir: true, Holes: []mount.Hole{{Path: "x", Dir: true}}}}},
				{Source: "/Users/ann/proj/a/.cache/x", Path: "/Users/ann/proj/a/.cache/x", Dir: true},
			},
		},
		ReadOnly: []string{"/Users/ann/proj/egressd.yaml", "/Users/ann/proj/.git/hooks", "/Users/ann/proj/.egressd/config.yaml",
			"/Users/ann/docs/egressd.yaml", "/Users/ann/other/egressd.yaml"},
		AllowHidden: []string{".venv"},
		Scratch:     []string{"/tmp/s/home", "/tmp/s/tmp"},
		Shown:       []string{"/tmp/s/trust", "/opt/egressd"},
		Exists:      func(p string) bool { return there[p] },
		Name:        seatbelt.Canonical,
	}
	p := view.Profile()
	rules := read(t, p)
	const r, w, create, unlink = "file-read-data", "file-write-data", "file-write-create", "file-write-unlink"
	for _, c := range []struct {
		op, path string
		want     bool
	}{
		{r, "/usr/bin/true", true}, {r, "/usr/secret", false}, {r, "/private/etc/hosts", true}, {r, "/private/etc/master.passwd", false},
		{"file-read-metadata", "/home", true}, {"file-read-metadata", "/bin", true},
		{r, "/Users/ann/docs/a", true}, {r, "/Users/ann/docs/.env", false}, {r, "/Users/ann/docs/.venv/x", true}, {w, "/Users/ann/docs/a", false},
		{r, "/Users/ann/empty/x", false}, {w, "/Users/ann/home/.cache", true}, {r, "/Users/ann/x", false},
		{w, "/Users/ann/proj/x", true}, {create, "/Users/ann/proj/.new", true}, {r, "/Users/ann/proj/.env", false},
		{w, "/Users/ann/proj/.git/config", false}, {r, "/Users/ann/proj/.git/config", true}, {unlink, "/Users/ann/proj/.git", false},
		{create, "/Users/ann/proj/.git/hooks", false}, {create, "/Users/ann/proj/.git/HOOKS/post-merge", false},
		{w, "/Users/ann/proj/egressd.yaml", false}, {create, "/Users/ann/proj/.egressd", true},
		{r, "/Users/ann/proj/a/.cache/y", false}, {r, "/Users/ann/proj/a/.cache/x/y", true}, {w, "/Users/ann/proj/a/.cache/x/y", false},
		{unlink, "/Users/ann/proj", false}, {unlink, "/Users/ann/proj/a/.cache/x", false},
		{w, "/private/tmp/s/home/.cache", true}, {w, "/private/tmp/s/trust/ca.crt", false}, {r, "/private/tmp/s/trust/ca.crt", true},
		{unlink, "/private/tmp/s/tmp", false}, {"process-exec", "/opt/egressd", true}, {r, "/private/tmp/s/profile.sb", false},
	} {
		if got := rules.allows(question{op: c.op, path: c.path}); got != c.want {
			t.Errorf("%s %s: %v", c.op, c.path, got)
		}
	}
	if !rules.allows(question{op: "network-bind", local: "/private/tmp/s/tmp/x.sock"}) || rules.allows(question{op: "network-outbound", peer: "/Users/ann/proj/x.sock"}) {
		t.Error("unix sockets are for scratch alone")
	}
}
