package seatbelt_test

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egressd/egressd/netns/seatbelt"
)

var update = flag.Bool("update", false, "write the golden profiles anew")

const (
	proj    = "/Users/ann/proj"
	scratch = "/private/var/folders/x1/T/egressd-1"
)

// base are the places of every session: a little of the system, and scratch.
func base(more ...seatbelt.Place) []seatbelt.Place {
	return append([]seatbelt.Place{
		{Path: "/usr", Access: seatbelt.Read}, {Path: "/System/Library", Access: seatbelt.Read},
		{Path: scratch, Access: seatbelt.Write},
	}, more...)
}

// profiles are one for each kind of policy.
func profiles() map[string]seatbelt.Profile {
	return map[string]seatbelt.Profile{
		"nothing": {},
		"readonly": {Places: base(seatbelt.Place{Path: proj, Access: seatbelt.Read}),
			Dots: []seatbelt.Dots{{Path: proj, Except: []string{".venv"}}}},
		"deep": {Places: base(seatbelt.Place{Path: proj, Access: seatbelt.Read}, seatbelt.Place{Path: proj + "/sub/.github", Access: seatbelt.Read}),
			Dots: []seatbelt.Dots{{Path: proj, Deep: true, Except: []string{".git", ".gitignore", ".venv"}}}},
		"writable": {Places: base(
			seatbelt.Place{Path: proj, Access: seatbelt.Write}, seatbelt.Place{Path: proj + "/.env"},
			seatbelt.Place{Path: proj + "/egressd.yaml", Access: seatbelt.Read},
			seatbelt.Place{Path: proj + "/.git/config", Access: seatbelt.Read}, seatbelt.Place{Path: proj + "/.git/hooks", Access: seatbelt.Read}),
			Pins: []string{proj, proj + "/.git"}, Absent: []string{proj + "/.git/config.worktree", proj + "/.egressd"}},
		"nested": {Places: base(
			seatbelt.Place{Path: "/Users/ann", Access: seatbelt.Read}, seatbelt.Place{Path: "/Users/ann/.ssh"},
			seatbelt.Place{Path: "/Users/ann/.app"}, seatbelt.Place{Path: "/Users/ann/.app/state", Access: seatbelt.Write},
			seatbelt.Place{Path: proj, Access: seatbelt.Write}, seatbelt.Place{Path: proj + "/vendor", Access: seatbelt.Read},
			seatbelt.Place{Path: proj + "/vendor/tmp", Access: seatbelt.Write}),
			Pins: []string{proj, proj + "/vendor", "/Users/ann/.app/state"}},
		"masks": {Places: base(
			seatbelt.Place{Path: proj, Access: seatbelt.Write}, seatbelt.Place{Path: proj + "/secret", Over: true},
			seatbelt.Place{Path: proj + "/secret/open", Access: seatbelt.Write}),
			Pins: []string{proj}},
		"proxied": {Places: base(), Sockets: []string{scratch}, Network: seatbelt.Proxied, Proxy: 50123,
			Publish: []int{8000}, Terminal: "/dev/ttys004"},
		"unfiltered": {Places: base(), Network: seatbelt.Unfiltered, Links: []string{"/home"}},
		"names": {Places: base(seatbelt.Place{Path: `/Users/ann/a "b" \c (d) é`, Access: seatbelt.Write}),
			Absent: []string{`/Users/ann/a "b" \c (d) é/egressd.yaml`}},
	}
}

// readAll reads every one of profiles back.
func readAll(t *testing.T) map[string]*profile {
	t.Helper()
	out := map[string]*profile{}
	for name, p := range profiles() {
		out[name] = read(t, p)
	}
	return out
}

func text(t *testing.T, p seatbelt.Profile) string {
	t.Helper()
	out, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, p seatbelt.Profile) *profile {
	t.Helper()
	out, err := readProfile(text(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The text of each kind of profile, whole, as sandbox-exec would read it.
func TestGolden(t *testing.T) {
	for name, p := range profiles() {
		t.Run(name, func(t *testing.T) {
			file, got := filepath.Join("testdata", name+".sb"), text(t, p)
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
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// What may be done with which file: the most specific place wins, and what is
// hidden or read-only cannot be had by a rename, a link or another spelling.
func TestFiles(t *testing.T) {
	const r, w, x, m = "file-read-data", "file-write-data", "process-exec", "file-read-metadata"
	const create, unlink = "file-write-create", "file-write-unlink"
	all := readAll(t)
	for _, c := range []struct {
		profile, op, path string
		want              bool
	}{
		{"nothing", r, "/usr/bin/true", false},
		{"nothing", r, "/Users/ann/x", false},
		{"nothing", m, "/", true},
		{"nothing", r, "/dev/null", true},
		{"nothing", w, "/dev/null", true},
		{"nothing", r, "/dev/disk0", false},
		{"nothing", r, "/dev/ttys001", false},

		{"readonly", r, proj + "/main.go", true},
		{"readonly", x, proj + "/run", true},
		{"readonly", w, proj + "/main.go", false},
		{"readonly", create, proj + "/new", false},
		{"readonly", r, proj + "/.env", false},
		{"readonly", r, proj + "/.git/config", false},
		{"readonly", m, proj + "/.git", false},
		{"readonly", r, proj + "/.venv/bin/python", true},
		{"readonly", x, proj + "/.venv/bin/python", true},
		{"readonly", r, proj + "/.ven", false},
		{"readonly", r, proj + "/.venvs", false},
		{"readonly", r, proj + "/.v", false},
		{"readonly", r, proj + "/sub/.env", true},
		{"readonly", r, proj + "2/x", false},
		{"readonly", m, "/Users/ann", true},
		{"readonly", r, "/Users/ann", false},
		{"readonly", r, "/usr/bin/true", true},
		{"readonly", "file-map-executable", "/usr/lib/dyld", true},
		{"readonly", create, "/usr/x", false},
		{"readonly", create, scratch + "/x", true},
		{"readonly", unlink, scratch + "/x", true},

		{"deep", r, proj + "/.env", false},
		{"deep", r, proj + "/sub/.env", false},
		{"deep", r, proj + "/sub/deeper/.env/x", false},
		{"deep", r, proj + "/sub/.github/x", true},
		{"deep", r, proj + "/.gitignore", true},
		{"deep", r, proj + "/sub/.git/HEAD", true},
		{"deep", r, proj + "/.gitlab", false},
		{"deep", r, proj + "/.gi", false},
		{"deep", r, proj + "/.git/.cache/x", false}, // a dot name in a folder that stays

		{"writable", w, proj + "/main.go", true},
		{"writable", create, proj + "/.new", true},
		{"writable", r, proj + "/.env", false},
		{"writable", create, proj + "/.env", false},
		{"writable", unlink, proj + "/.env", false},
		{"writable", r, proj + "/egressd.yaml", true},
		{"writable", w, proj + "/egressd.yaml", false},
		{"writable", unlink, proj + "/egressd.yaml", false},
		{"writable", w, proj + "/.git/index", true},
		{"writable", w, proj + "/.git/config", false},
		{"writable", create, proj + "/.git/hooks/pre-commit", false},
		{"writable", "file-write-mode", proj + "/.git/hooks", false},
		{"writable", x, proj + "/.git/hooks/pre-commit", true},
		{"writable", unlink, proj + "/.git", false},
		{"writable", unlink, proj, false},
		{"writable", unlink, proj + "/sub", true},
		{"writable", create, proj + "/.git/config.worktree", false},
		{"writable", create, proj + "/.git/CONFIG.WorkTree", false},
		{"writable", create, proj + "/.git/config.wor\u212atree", false}, // a Kelvin sign
		{"writable", create, proj + "/.EGRE\u017fSD", false},             // a long s
		{"writable", create, proj + "/.egressd/config.yaml", false},
		{"writable", create, proj + "/.egressd2", true},
		{"writable", "file-link", proj + "/main.go", false},
		{"writable", "file-clone", proj + "/main.go", false},
		{"writable", "file-write-setugid", proj + "/main.go", false},
		{"writable", "file-ioctl", proj + "/main.go", false},

		{"nested", r, "/Users/ann/notes", true},
		{"nested", w, "/Users/ann/notes", false},
		{"nested", r, "/Users/ann/.ssh/id", false},
		{"nested", m, "/Users/ann/.app", true},
		{"nested", r, "/Users/ann/.app", false},
		{"nested", r, "/Users/ann/.app/key", false},
		{"nested", w, "/Users/ann/.app/state/x", true},
		{"nested", unlink, "/Users/ann/.app/state", false},
		{"nested", w, proj + "/x", true},
		{"nested", w, proj + "/vendor/x", false},
		{"nested", r, proj + "/vendor/x", true},
		{"nested", w, proj + "/vendor/tmp/x", true},

		{"masks", r, proj + "/secret/x", false},
		{"masks", w, proj + "/secret/open/x", false},
		{"masks", m, proj + "/secret", false},
		{"masks", unlink, proj + "/secret", false},
		{"masks", w, proj + "/x", true},

		{"proxied", "file-ioctl", "/dev/ttys004", true},
		{"proxied", w, "/dev/ttys004", true},
		{"proxied", "file-ioctl", "/dev/ttys005", false},
		{"proxied", r, "/dev/ttys0045", false},
		{"proxied", m, "/tmp", true},
		{"proxied", r, "/private/tmp/x", false},

		{"unfiltered", m, "/home", true},
		{"unfiltered", r, "/private/etc/resolv.conf", true},
		{"proxied", r, "/private/etc/resolv.conf", false},

		{"names", w, `/Users/ann/a "b" \c (d) é/x`, true},
		{"names", create, `/Users/ann/a "b" \c (d) é/egressd.yaml`, false},
		{"names", create, `/Users/ann/a "b" \c (d) e` + "\u0301/EGRESSD.yaml", false},
		{"names", w, `/Users/ann/a`, false},
	} {
		if got := all[c.profile].allows(question{op: c.op, path: c.path}); got != c.want {
			t.Errorf("%s: %s %s: %v", c.profile, c.op, c.path, got)
		}
	}
	if !all["nothing"].allows(question{op: "file-ioctl", path: "/dev/ttys009", pty: true}) {
		t.Error("a terminal that the program made is not its own")
	}
}

// What is beside files: who may be talked to, signalled and asked.
func TestBeside(t *testing.T) {
	all := readAll(t)
	for _, c := range []struct {
		profiles string
		q        question
		want     bool
	}{
		{"*", question{op: "process-fork"}, true},
		{"*", question{op: "signal", self: true}, true},
		{"*", question{op: "signal"}, false},
		{"*", question{op: "process-info-pidinfo"}, false},
		{"*", question{op: "mach-priv-task-port"}, false},
		{"*", question{op: "sysctl-read", name: "hw.ncpu"}, true},
		{"*", question{op: "sysctl-read", name: "kern.procargs2"}, false},
		{"*", question{op: "sysctl-read", name: "kern.proc.all"}, false},
		{"*", question{op: "sysctl-write", name: "kern.hostname"}, false},
		{"*", question{op: "mach-lookup", name: "com.apple.system.opendirectoryd.libinfo"}, true},
		{"*", question{op: "mach-lookup", name: "com.apple.SecurityServer"}, false},
		{"*", question{op: "mach-lookup", name: "com.apple.securityd.xpc"}, false},
		{"*", question{op: "mach-lookup", name: "com.apple.coreservices.launchservicesd"}, false},
		{"*", question{op: "mach-lookup", name: "com.apple.coreservices.appleevents"}, false},
		{"*", question{op: "mach-lookup", name: "com.apple.cfprefsd.agent"}, false},
		{"*", question{op: "mach-lookup", name: "com.apple.pasteboard.1"}, false},
		{"*", question{op: "mach-register", name: "x"}, false},
		{"*", question{op: "appleevent-send"}, false},
		{"*", question{op: "job-creation"}, false},
		{"*", question{op: "lsopen"}, false},
		{"*", question{op: "iokit-open"}, false},
		{"*", question{op: "user-preference-read"}, false},
		{"*", question{op: "ipc-posix-shm-write-data", name: "apple.shm.notification_center"}, false},
		{"*", question{op: "network-outbound", peer: "/private/var/run/docker.sock"}, false},
		{"*", question{op: "network-outbound", peer: "/private/var/run/syslog"}, false},

		{"nothing", question{op: "network-outbound", peer: "localhost:50123"}, false},
		{"nothing", question{op: "network-bind", local: "localhost:8000"}, false},
		{"nothing", question{op: "mach-lookup", name: "com.apple.trustd.agent"}, false},
		{"nothing", question{op: "network-outbound", peer: "/private/var/run/mDNSResponder"}, false},
		{"proxied", question{op: "network-outbound", peer: "localhost:50123"}, true},
		{"proxied", question{op: "network-outbound", peer: "localhost:50124"}, false},
		{"proxied", question{op: "network-outbound", peer: "localhost:5012"}, false},
		{"proxied", question{op: "network-outbound", peer: "203.0.113.7:50123"}, false},
		{"proxied", question{op: "network-outbound", peer: "/private/var/run/mDNSResponder"}, false},
		{"proxied", question{op: "mach-lookup", name: "com.apple.mDNSResponder"}, false},
		{"proxied", question{op: "mach-lookup", name: "com.apple.trustd.agent"}, false},
		{"proxied", question{op: "network-bind", local: "localhost:8000"}, true},
		{"proxied", question{op: "network-inbound", local: "localhost:8000"}, true},
		{"proxied", question{op: "network-outbound", peer: "localhost:8000"}, true},
		{"proxied", question{op: "network-bind", local: "*:8000"}, false},
		{"proxied", question{op: "network-bind", local: "localhost:8001"}, false},
		{"proxied", question{op: "network-bind", local: scratch + "/s"}, true},
		{"proxied", question{op: "network-outbound", peer: scratch + "/tmp/s"}, true},
		{"proxied", question{op: "network-outbound", peer: scratch + "2/s"}, false},
		{"unfiltered", question{op: "network-outbound", peer: "203.0.113.7:443"}, true},
		{"unfiltered", question{op: "network-bind", local: "*:8000"}, true},
		{"unfiltered", question{op: "network-outbound", peer: "/private/var/run/mDNSResponder"}, true},
		{"unfiltered", question{op: "network-outbound", peer: "/Users/ann/agent.sock"}, false},
		{"unfiltered", question{op: "mach-lookup", name: "com.apple.trustd.agent"}, true},
	} {
		for name, p := range all {
			if c.profiles != "*" && c.profiles != name {
				continue
			}
			if got := p.allows(c.q); got != c.want {
				t.Errorf("%s: %+v: %v", name, c.q, got)
			}
		}
	}
}

// Whatever the places are, the deepest one at or above a path decides, and of two
// for one path the stricter.
func TestMostSpecificWins(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	names := []string{"a", "b", "a.b", "ab"}
	path := func() string {
		out := ""
		for range 1 + random.Intn(5) {
			out += "/" + names[random.Intn(len(names))]
		}
		return out
	}
	for range 500 {
		var p seatbelt.Profile
		for range 1 + random.Intn(6) {
			p.Places = append(p.Places, seatbelt.Place{Path: path(), Access: seatbelt.Access(random.Intn(3)), Over: random.Intn(8) == 0})
		}
		rules := read(t, p)
		for range 8 {
			asked := path()
			best, access, over := -1, seatbelt.Hidden, false
			for _, x := range p.Places {
				if asked != x.Path && !strings.HasPrefix(asked, x.Path+"/") {
					continue
				}
				depth := strings.Count(x.Path, "/")
				if x.Over && !over || x.Over == over && (depth > best || depth == best && x.Access < access) {
					best, access, over = depth, x.Access, x.Over
				}
			}
			for op, want := range map[string]bool{"file-read-data": access != seatbelt.Hidden, "file-write-create": access == seatbelt.Write} {
				if got := rules.allows(question{op: op, path: asked}); got != want {
					t.Fatalf("%+v: %s %s: %v", p.Places, op, asked, got)
				}
			}
		}
	}
}

// What no rule can be made of is refused.
func TestRefused(t *testing.T) {
	for _, p := range []seatbelt.Profile{
		{Places: []seatbelt.Place{{Path: "proj"}}},
		{Places: []seatbelt.Place{{Path: "/a/../b"}}},
		{Places: []seatbelt.Place{{Path: "/a\x00b"}}},
		{Places: []seatbelt.Place{{Path: "/a\xffb"}}},
		{Pins: []string{""}}, {Absent: []string{"x"}}, {Links: []string{"x"}}, {Sockets: []string{"."}},
		{Dots: []seatbelt.Dots{{Path: "x"}}}, {Dots: []seatbelt.Dots{{Path: "/x", Except: []string{".é"}}}},
		{Dots: []seatbelt.Dots{{Path: "/x", Except: []string{".a]"}}}},
		{Terminal: "/dev/x/y"}, {Network: seatbelt.Proxied}, {Network: seatbelt.Proxied, Proxy: 70000}, {Publish: []int{0}},
	} {
		if out, err := p.Text(); err == nil {
			t.Errorf("%+v gave\n%s", p, out)
		}
	}
}

// Every macOS has these links.
func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"/tmp": "/private/tmp", "/tmp/x": "/private/tmp/x", "/tmpx": "/tmpx", "/var/folders/a": "/private/var/folders/a",
		"/etc/hosts": "/private/etc/hosts", "/private/tmp": "/private/tmp", "/Users/ann": "/Users/ann", "/": "/",
		"/System/Volumes/Data/Users/ann": "/Users/ann", "/System/Volumes/Data/private/tmp": "/private/tmp",
		"/System/Volumes/Data": "/System/Volumes/Data", "/System/Volumes/Data/other": "/System/Volumes/Data/other", "/tmp/": "/private/tmp",
	} {
		if got := seatbelt.Canonical(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// No path ends a string, adds a rule or escapes its own.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{"a", `a") (allow file-write* (subpath "/`, `\`, `#"`, "é", ";\n(allow default)", "a.b+c", "[x]^$", "K s", "..."} {
		f.Add(s, "b")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		hidden, gone := filepath.Clean("/w/"+strings.ReplaceAll(a, "/", "_")), filepath.Clean("/w/"+strings.ReplaceAll(b, "/", "_"))
		p := seatbelt.Profile{Places: []seatbelt.Place{{Path: "/w", Access: seatbelt.Write}, {Path: hidden}},
			Absent: []string{gone}, Pins: []string{hidden}, Dots: []seatbelt.Dots{{Path: hidden, Deep: true}}}
		if hidden == "/w" || gone == "/w" || hidden == "/" || gone == "/" {
			return
		}
		out, err := p.Text()
		if err != nil {
			return
		}
		rules, err := readProfile(out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		plain := p
		plain.Places = []seatbelt.Place{{Path: "/w", Access: seatbelt.Write}, {Path: "/w/h"}}
		plain.Absent, plain.Pins, plain.Dots = []string{"/w/g"}, []string{"/w/h"}, []seatbelt.Dots{{Path: "/w/h", Deep: true}}
		if n := len(read(t, plain).rules); len(rules.rules) != n {
			t.Errorf("%d rules, not %d:\n%s", len(rules.rules), n, out)
		}
		for _, path := range []string{hidden, hidden + "/x", gone, gone + "/x", strings.ToUpper(gone[3:])} {
			if !strings.HasPrefix(path, "/w/") {
				path = "/w/" + path
			}
			if strings.HasPrefix(path, "/w/") && strings.EqualFold(path, gone) || path == hidden || path == hidden+"/x" {
				if rules.allows(question{op: "file-write-create", path: path}) {
					t.Errorf("%q may be made:\n%s", path, out)
				}
			}
		}
		other := fmt.Sprintf("/w/%d-other-name-that-is-none-of-them", len(a)+len(b))
		if strings.Contains(out, "[^/]+") || other == hidden || other == gone {
			return
		}
		if !rules.allows(question{op: "file-write-create", path: other}) {
			t.Errorf("%q may not be made:\n%s", other, out)
		}
	})
}
