//go:build linux

package firejail_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/egressd/egressd/netns/firejail"
	"github.com/egressd/egressd/netns/mount"
)

var update = flag.Bool("update", false, "write the golden files anew")

// host is the host of an ordinary user.
func host() firejail.Host {
	return firejail.Host{Home: "/home/ann", Resolv: "/run/systemd/resolve/stub-resolv.conf",
		Names: []string{"boot", "dev", "etc", "home", "media", "opt", "proc", "root", "run", "srv", "sys", "tmp", "usr", "var", "work"}}
}

// plan is the plan of a policy that uses most of what there is.
func plan() mount.Plan {
	return mount.Plan{
		Cwd: "/home/ann/proj", Home: "/home/ann", Temp: "/tmp",
		Base:  []mount.Base{{Path: "/usr"}, {Path: "/bin", Target: "usr/bin"}, {Path: "/opt"}},
		Fresh: []mount.Fresh{{Path: "/home/ann", Mode: 0o700}, {Path: "/tmp", Mode: 0o1777}, {Path: "/var/tmp", Mode: 0o1777}},
		Etc: []mount.Entry{{Path: "/etc/passwd", Data: []byte("x")}, {Path: "/etc/mtab", Target: "/proc/self/mounts"},
			{Path: "/etc/alternatives", Host: "/etc/alternatives", Dir: true}, {Path: "/etc/localtime", Target: "/usr/share/zoneinfo/UTC"}},
		Roots: []mount.Root{
			{Source: "/opt/cache", Path: "/opt/cache", Write: true, Dir: true},
			{Source: "/home/ann/proj", Path: "/home/ann/proj", Write: true, Dir: true,
				Pins: []string{"a"}, LatePins: []string{"a/b"}, Parts: []string{"a/b/egressd.yaml"}, Masks: []mount.Mask{{Path: ".env"}, {Path: ".git", Dir: true}}},
			{Source: "/work/data sets (1)", Path: "/work/data sets (1)", Dir: true},
			{Source: "/home/ann/proj/vendor", Path: "/home/ann/proj/vendor", Dir: true},
			{Source: "/home/ann/proj/shut", Path: "/home/ann/proj/shut", Dir: true, Empty: true},
			{Source: "/home/ann/proj/vendor/out", Path: "/home/ann/proj/vendor/out", Write: true, Dir: true},
		},
		Covers: []mount.Cover{{Path: "/usr/share/secret", Dir: true}},
	}
}

// A profile is what a reader would write by hand.
func TestProfile(t *testing.T) {
	user, root, network := host(), host(), host()
	root.Root, root.Home = true, "/root"
	network.Network = true
	plain := mount.Plan{Cwd: "/srv", Home: "/home/ann", Temp: "/tmp", Base: plan().Base, Fresh: plan().Fresh, Etc: plan().Etc,
		Roots: []mount.Root{{Source: "/srv", Path: "/srv", Dir: true}}}
	for _, c := range []struct {
		name string
		plan mount.Plan
		host firejail.Host
	}{{"user", plan(), user}, {"root", plan(), root}, {"network", plain, network}} {
		t.Run(c.name, func(t *testing.T) {
			text, notes, err := firejail.Profile(c.plan, c.host)
			if err != nil {
				t.Fatal(err)
			}
			got := string(text) + "# " + strings.Join(notes, "\n# ") + "\n"
			file := filepath.Join("testdata", c.name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is another one (-update writes it):\n%s", file, got)
			}
		})
	}
}

// What firejail cannot say stops the start, and is never left out.
func TestRefused(t *testing.T) {
	root := func(path string) mount.Root { return mount.Root{Source: path, Path: path, Write: true, Dir: true} }
	for _, c := range []struct {
		name    string
		change  func(*mount.Plan, *firejail.Host)
		path    string
		problem string
	}{
		{"a link to hide", func(p *mount.Plan, _ *firejail.Host) {
			p.Roots[1].Masks = append(p.Roots[1].Masks, mount.Mask{Path: ".ssh", Link: true})
		}, "/home/ann/proj/.ssh", "link"},
		{"a grant below a mask", func(p *mount.Plan, _ *firejail.Host) {
			p.Roots[1].Masks[1].Holes = []mount.Hole{{Path: "objects", Dir: true}}
		}, "/home/ann/proj/.git/objects", "below a hidden folder"},
		{"the root folder", func(p *mount.Plan, _ *firejail.Host) { p.Roots = append(p.Roots, root("/")) }, "/", "as a whole"},
		{"a file of /etc", func(p *mount.Plan, _ *firejail.Host) { p.Roots = append(p.Roots, root("/etc/x")) }, "/etc/x", "firejail's"},
		{"a medium", func(p *mount.Plan, _ *firejail.Host) { p.Roots = append(p.Roots, root("/run/media/x")) }, "/run/media/x", "firejail's"},
		{"another name", func(p *mount.Plan, _ *firejail.Host) { p.Roots[0].Source = "/srv/x" }, "/opt/cache", "another name"},
		{"another's home", func(p *mount.Plan, h *firejail.Host) { h.Home = "/home/bob" }, "/home/ann", "/home/bob"},
		{"a link to HOME", func(p *mount.Plan, h *firejail.Host) { p.Links = []mount.Link{{Path: "/home", Target: "var/home"}} }, "/home/ann", "link"},
		{"no temporary folder", func(p *mount.Plan, h *firejail.Host) {
			p.Roots, p.Temp = append(p.Roots, root("/tmp")), "/var/tmp"
		}, "/tmp", "temporary"},
		{"a pattern", func(p *mount.Plan, _ *firejail.Host) { p.Roots = append(p.Roots, root("/srv/a*")) }, "/srv/a*", "pattern"},
		{"a macro", func(p *mount.Plan, _ *firejail.Host) { p.Roots = append(p.Roots, root("/srv/${HOME}")) }, "/srv/${HOME}", "pattern"},
		{"a second line", func(p *mount.Plan, _ *firejail.Host) {
			p.Roots[1].Masks = []mount.Mask{{Path: ".a\nread-write /usr"}}
		}, "/home/ann/proj/.a\nread-write /usr", "pattern"},
		{"a blank at the end", func(p *mount.Plan, _ *firejail.Host) { p.Roots[1].Parts = []string{"x "} }, "/home/ann/proj/x ", "pattern"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, h := plan(), host()
			c.change(&p, &h)
			text, _, err := firejail.Profile(p, h)
			var refused *firejail.RefusedError
			if !errors.As(err, &refused) || text != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			if refused.Path != c.path || !strings.Contains(refused.Problem, c.problem) || refused.Hint() == "" || refused.Reason() != "bad_value" {
				t.Errorf("%q: %s", refused.Path, refused.Problem)
			}
		})
	}
}

// Whatever a path holds, the profile has a line more for it and no other
// meaning: each line is one of the words that are written here.
func FuzzProfile(f *testing.F) {
	for _, s := range []string{"/srv/x", "/srv/a\nb", "/srv/ x", "/home/ann/proj/x", "/var/lib/x", "/run/x", "/tmp/x,y"} {
		f.Add(s, ".env")
	}
	words := []string{"read-only", "read-write", "blacklist", "whitelist", "private-etc"}
	f.Fuzz(func(t *testing.T, path, mask string) {
		p := plan()
		p.Roots = append(p.Roots, mount.Root{Source: path, Path: path, Dir: true, Masks: []mount.Mask{{Path: mask}}})
		text, _, err := firejail.Profile(p, host())
		if err != nil {
			return
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			word, rest, _ := strings.Cut(line, " ")
			if slices.Contains(words, word) && word != "private-etc" && (!strings.HasPrefix(rest, "/") || strings.ContainsAny(rest, "*?[]{}$~,;\x00\r\t")) {
				t.Errorf("the line %q", line)
			}
		}
	})
}
