//go:build linux

package mount_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egressd/egressd/netns/mount"
)

var update = flag.Bool("update", false, "write the golden files anew")

// tree makes a home: names that end in / are folders, "a -> b" is a link.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	grow(t, home, names...)
	return home
}

func grow(t *testing.T, home string, names ...string) {
	t.Helper()
	for _, n := range names {
		name, target, link := strings.Cut(n, " -> ")
		path := filepath.Join(home, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func request(home string) mount.Request {
	return mount.Request{
		Cwd: home + "/proj", Home: home, Launcher: "/usr/bin/egressd", Hostname: "box",
		User: mount.User{UID: 1000, GID: 1000, Name: "ann", Group: "ann"},
	}
}

// settled makes a plan of one host look like that of any: its system folders
// and what it shares of /etc are replaced.
func settled(p mount.Plan) mount.Plan {
	p.Base = []mount.Base{{Path: "/usr"}, {Path: "/bin", Target: "usr/bin"}, {Path: "/opt"}}
	p.Etc = []mount.Entry{
		{Path: "/etc/passwd", Mode: 0o444, Data: []byte("x")}, {Path: "/etc/mtab", Target: "/proc/self/mounts"},
		{Path: "/etc/alternatives", Host: "/etc/alternatives", Dir: true}, {Path: "/etc/ssl/certs", Dir: true},
	}
	return p
}

// lines puts every argument that begins with -- on a line of its own.
func lines(args []string, home string) string {
	text := strings.ReplaceAll(strings.Join(args, " "), " --", "\n--") + "\n"
	return strings.ReplaceAll(text, home, "/home/ann")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s", path, got)
	}
}

// The same policy in bwrap's words, after the helper's mounts and without them.
func TestArguments(t *testing.T) {
	home := tree(t, "proj/.env", "proj/.venv/x", "proj/conf/deep/egressd.yaml", "proj/out/.cache/", "data/in", "data/out/frozen/", ".config/app/x")
	r := request(home)
	r.Grants = []mount.Grant{
		{Path: home + "/data"}, {Path: home + "/data/out", Write: true}, {Path: home + "/proj", Write: true},
		{Path: home + "/data/out/frozen"}, {Path: home + "/.config/app"},
	}
	r.ReadOnly = []string{home + "/proj/conf/deep/egressd.yaml"}
	r.Files = []mount.Entry{{Path: "/run/egressd/ca.pem", Mode: 0o444, Data: []byte("pem")}}
	p, notes, err := mount.Make(r)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	p = settled(p)
	golden(t, "arguments.golden", lines(p.Arguments(), home))
	n := 9
	args, err := p.Fallback(true, func([]byte) (int, error) { n++; return n, nil })
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "fallback.golden", lines(args, home))
}

// What each root hides, pins and keeps.
func TestSpots(t *testing.T) {
	home := tree(t, "proj/.env", "proj/.venv/x", "proj/.prod -> ../vault", "proj/a/b/policy.yaml", "proj/.git/config",
		".ssh/config", ".ssh/id", ".config/egressd/x", "doc")
	many := []string{"proj/many/x/in/"}
	for i := range 16 {
		many = append(many, fmt.Sprintf("proj/many/y/k%d", i))
	}
	for _, tc := range []struct {
		name   string
		change func(*mount.Request)
		want   string
	}{
		{"cwd alone", func(*mount.Request) {}, "proj ro masks[.env .git/ .prod@]"},
		{"more names stay", func(r *mount.Request) { r.AllowHidden = []string{".git"} }, "proj ro masks[.env .prod@ .venv/]"},
		{"a dot path that is granted opens", func(r *mount.Request) {
			r.Grants = []mount.Grant{{Path: home + "/proj/.env"}}
		}, "proj ro masks[.git/ .prod@]; proj/.env ro"},
		{"a grant below a hidden folder is a hole in it", func(r *mount.Request) {
			r.Grants = []mount.Grant{{Path: home}, {Path: home + "/.ssh/config"}}
		}, ". ro masks[.config/ .ssh/(config)]; proj ro masks[.env .git/ .prod@]; .ssh/config ro"},
		{"a policy is pinned up to the root", func(r *mount.Request) {
			r.Grants = []mount.Grant{{Path: home + "/proj", Write: true}}
			r.ReadOnly = []string{home + "/proj/a/b/policy.yaml"}
		}, "proj rw pins[a a/b] parts[a/b/policy.yaml] masks[.env .git/ .prod@]"},
		{"a grant in a writable one is pinned", func(r *mount.Request) {
			r.Grants = []mount.Grant{{Path: home + "/proj", Write: true}, {Path: home + "/proj/a/b"}}
		}, "proj rw pins[a] masks[.env .git/ .prod@]; proj/a/b ro"},
		{"a policy that is granted for writing is not", func(r *mount.Request) {
			r.Grants = []mount.Grant{{Path: home + "/proj/a/b/policy.yaml", Write: true}}
			r.ReadOnly = []string{home + "/proj/a/b/policy.yaml"}
		}, "proj ro masks[.env .git/ .prod@]; proj/a/b/policy.yaml ro"},
		{"egressd's own folders show empty, and one that is missing is made", func(r *mount.Request) {
			r.AllowHidden = []string{".config", ".local", ".ssh", ".env", ".git", ".prod", ".venv"}
			r.Grants = []mount.Grant{{Path: home, Write: true}}
			r.Hidden = []string{home + "/.config/egressd", home + "/.local/state/egressd"}
		}, ". rw pins[.config .local .local/state] masks[.config/egressd/ .local/state/egressd/]; proj ro"},
		{"a mask at any depth, pinned up to the root", func(r *mount.Request) {
			r.Grants = []mount.Grant{{Path: home + "/proj", Write: true}}
			r.Masks = []string{home + "/proj/a/b/policy.yaml", home + "/proj/a/none", home + "/proj/.env", home + "/proj/.git/config", home + "/doc"}
		}, "proj rw pins[a a/b] masks[.env .git/ .prod@ a/b/policy.yaml]"},
		{"a mask of a folder takes those below it in", func(r *mount.Request) {
			r.Masks = []string{home + "/proj/a/b/policy.yaml", home + "/proj/a"}
		}, "proj ro masks[.env .git/ .prod@ a/]"},
		{"a mask beats a grant of the same path, of one below it and of one for writing", func(r *mount.Request) {
			r.Grants = []mount.Grant{{Path: home + "/proj/a", Write: true}, {Path: home + "/proj/a/b", Write: true}, {Path: home + "/doc"}}
			r.Masks = []string{home + "/proj/a", home + "/doc"}
		}, "doc ro empty; proj ro masks[.env .git/ .prod@ a/]"},
		{"the working folder is empty where it is masked", func(r *mount.Request) {
			r.Grants = []mount.Grant{{Path: home}, {Path: home + "/proj", Write: true}}
			r.Masks = []string{home + "/proj"}
		}, ". ro masks[.config/ .local/ .ssh/ proj/]"},
		{"the working folder is a hole in a mask above it", func(r *mount.Request) {
			r.Cwd = home + "/proj/a/b"
			r.Grants = []mount.Grant{{Path: home}, {Path: home + "/proj/a/b", Write: true}}
			r.Masks = []string{home + "/proj"}
		}, ". ro masks[.config/ .local/ .ssh/ proj/(a/b)]; proj/a/b ro empty"},
		{"a deeper dot name is hidden but where it is granted", func(r *mount.Request) {
			r.Grants = []mount.Grant{{Path: home}, {Path: home + "/.ssh/config"}}
			r.AllowHidden = []string{".ssh", ".config"}
			r.Dots = []string{home + "/.ssh/config", home + "/.ssh/id", home + "/proj/a/b/policy.yaml"}
		}, ". ro masks[.local/ .ssh/id]; proj ro masks[.env .git/ .prod@ .venv/ a/b/policy.yaml]; .ssh/config ro"},
		{"many masks come late, but for what bwrap binds into", func(r *mount.Request) {
			grow(t, home, many...)
			r.Grants = []mount.Grant{{Path: home + "/proj", Write: true}, {Path: home + "/proj/many/x/in"}}
			r.ReadOnly = []string{home + "/proj/a/b/policy.yaml"}
			r.Masks = []string{home + "/proj/.env", home + "/proj/.git", home + "/proj/.prod"}
			for i := range 16 {
				r.Masks = append(r.Masks, fmt.Sprintf("%s/proj/many/y/k%d", home, i))
			}
		}, "proj rw pins[a many a/b many/x] late[many/y] parts[a/b/policy.yaml] masks[+19]; proj/many/x/in ro"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request(home)
			tc.change(&r)
			p, _, err := mount.Make(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(p, home); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func describe(p mount.Plan, home string) string {
	var roots []string
	for _, r := range p.Roots {
		name, _ := filepath.Rel(home, r.Path)
		text := name + " ro"
		if r.Write {
			text = name + " rw"
		}
		if len(r.Pins) > 0 {
			text += fmt.Sprintf(" pins%v", r.Pins)
		}
		if len(r.LatePins) > 0 {
			text += fmt.Sprintf(" late%v", r.LatePins)
		}
		if r.Empty {
			text += " empty"
		}
		if len(r.Parts) > 0 {
			text += fmt.Sprintf(" parts%v", r.Parts)
		}
		var masks []string
		late := 0
		for _, k := range r.Masks {
			if k.Late {
				late++
				continue
			}
			m := k.Path
			if k.Dir {
				m += "/"
			}
			if k.Link {
				m += "@"
			}
			for _, h := range k.Holes {
				m += "(" + h.Path + ")"
			}
			masks = append(masks, m)
		}
		if late > 0 {
			masks = append(masks, fmt.Sprintf("+%d", late))
		}
		if len(masks) > 0 {
			text += fmt.Sprintf(" masks%v", masks)
		}
		roots = append(roots, text)
	}
	return strings.Join(roots, "; ")
}

// What cannot be shown is refused, or left out with a line that says so.
func TestRefused(t *testing.T) {
	home := tree(t, "proj/l -> ../x", "x/", ".config/egressd/")
	for _, tc := range []struct {
		name   string
		change func(*mount.Request)
		err    string
		note   string
	}{
		{"a link as a grant", func(r *mount.Request) { r.Grants = []mount.Grant{{Path: home + "/proj/l"}} }, "it is a link", ""},
		{"the host's devices", func(r *mount.Request) { r.Grants = []mount.Grant{{Path: "/dev", Write: true}} }, "", "/dev is granted but not shown"},
		{"the host's run", func(r *mount.Request) { r.Grants = []mount.Grant{{Path: "/run/user"}} }, "", "/run/user is granted but not shown"},
		{"what is not there", func(r *mount.Request) { r.Grants = []mount.Grant{{Path: home + "/dist", Write: true}} }, "", "dist does not exist"},
		{"a working folder that is not there", func(r *mount.Request) { r.Cwd = home + "/none" }, "no such file", ""},
		{"a working folder of egressd's own", func(r *mount.Request) {
			r.Cwd = home + "/.config/egressd"
			r.Hidden = []string{r.Cwd}
		}, "egressd's own", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request(home)
			tc.change(&r)
			_, notes, err := mount.Make(r)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if !strings.Contains(strings.Join(notes, "\n"), tc.note) {
				t.Errorf("notes %q lack %q", notes, tc.note)
			}
		})
	}
}

// TMPDIR is never a folder of the host's: where /tmp is granted it is another.
func TestTemp(t *testing.T) {
	home := tree(t, "proj/")
	r := request(home)
	if p, _, err := mount.Make(r); err != nil || p.Temp != "/tmp" {
		t.Error(p.Temp, err)
	}
	r.Grants = []mount.Grant{{Path: "/tmp", Write: true}}
	if p, _, err := mount.Make(r); err != nil || p.Temp != "/var/tmp" {
		t.Error(p.Temp, err)
	}
}

// A home that is kept shows at HOME with its dot names; what is granted below
// HOME has a place in it, which is made, and it cannot be moved.
func TestHome(t *testing.T) {
	home := tree(t, "proj/kept/.profile", "proj/kept/sub -> ../..", "cache/c", ".config/egressd/", "file", "sub/x/")
	r := request(home)
	r.HomeSource = home + "/proj/kept"
	r.Hidden = []string{home + "/.config/egressd", home + "/proj/kept/.config/egressd"}
	r.Grants = []mount.Grant{{Path: home + "/proj", Write: true}, {Path: home + "/cache"}, {Path: home + "/file", Write: true}}
	p, notes, err := mount.Make(r)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	want := ". rw pins[.config] masks[.config/egressd/]; cache ro; file rw; proj rw pins[kept kept/.config] masks[kept/.config/egressd/]"
	if got := describe(p, home); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for path, dir := range map[string]bool{"cache": true, "file": false, "proj": true} {
		if info, err := os.Lstat(home + "/proj/kept/" + path); err != nil || info.IsDir() != dir {
			t.Errorf("the place of %s: %v", path, err)
		}
	}
	for _, x := range []struct {
		change func(*mount.Request)
		err    string
	}{
		{func(r *mount.Request) { r.HomeSource = home + "/.config/egressd" }, "as home: it lies in a folder of egressd's own"},
		{func(r *mount.Request) { r.ReadOnly = []string{home + "/proj/kept"} }, "as home: it must stay as it is"},
		{func(r *mount.Request) { r.HomeSource = home + "/file" }, "as home: it is no folder"},
		{func(r *mount.Request) { r.Grants = []mount.Grant{{Path: home + "/sub/x"}} }, "something else of that name"},
	} {
		bad := r
		x.change(&bad)
		if _, _, err := mount.Make(bad); err == nil || !strings.Contains(err.Error(), x.err) {
			t.Errorf("%v, want %q", err, x.err)
		}
	}
	r.Cwd = home
	r.Grants = nil
	if p, notes, err := mount.Make(r); err != nil || len(notes) != 1 || p.Roots[0].Source != home {
		t.Errorf("cwd is HOME: %+v %v %v", p.Roots, notes, err)
	}
}

// What is granted at or below a forked folder is shown from its copy.
func TestForked(t *testing.T) {
	home := tree(t, "proj/a", "proj/out/x", "other/", "copy/a", "copy/out/x", "copy/policy.yaml")
	r := request(home)
	r.Forked, r.ForkAt, r.Scratch = home+"/proj", home+"/copy", true
	r.Grants = []mount.Grant{{Path: home + "/proj", Write: true}, {Path: home + "/proj/out"}, {Path: home + "/other", Write: true}, {Path: home + "/proj/gone"}}
	r.ReadOnly = []string{home + "/proj/policy.yaml", home + "/copy/policy.yaml"}
	p, notes, err := mount.Make(r)
	if err != nil || len(notes) != 1 || p.Cwd != p.Temp {
		t.Fatal(err, notes, p.Cwd)
	}
	if got, want := describe(p, home), "other rw; proj rw parts[policy.yaml]; proj/out ro"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, root := range p.Roots {
		if want := strings.Replace(root.Path, home+"/proj", home+"/copy", 1); root.Source != want {
			t.Errorf("%s is shown from %s", root.Path, root.Source)
		}
	}
}

// Names of the system and of what is shown of its /etc are covered; what no
// view has is not, and neither is what a root shows.
func TestCovers(t *testing.T) {
	home := tree(t, "proj/x")
	r := request(home)
	r.Masks = []string{"/usr/share", "/usr/share/none", "/usr/bin/env", "/etc/passwd", "/etc/shadow", "/run", home + "/proj/x", "/nowhere"}
	p, _, err := mount.Make(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Covers); got != "[{/etc/passwd false} {/usr/share true} {/usr/bin/env false}]" {
		t.Error(got)
	}
	args := strings.Join(p.Arguments(), " ")
	for _, want := range []string{"--ro-bind /tmp/empty.d /usr/share", "--ro-bind /tmp/empty /usr/bin/env"} {
		if !strings.Contains(args, want) {
			t.Errorf("bwrap is not told %s", want)
		}
	}
}

// A way of links to a grant is made inside, but for what the view has.
func TestGrantNames(t *testing.T) {
	home := tree(t, "proj/", "real/deep/", "one -> two", "two -> real", "loop -> loop")
	r := request(home)
	r.Grants = []mount.Grant{{Path: home + "/real/deep"}}
	r.Names = []string{home + "/one/deep", home + "/loop", "/usr/bin/none", home + "/proj/none"}
	p, _, err := mount.Make(r)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint([]mount.Link{{Path: home + "/one", Target: "two"}, {Path: home + "/two", Target: "real"}, {Path: home + "/loop", Target: "loop"}})
	if got := fmt.Sprint(p.Links); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
