//go:build linux

package netns

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/egressd/egressd/netns/mount"
)

func testContext() context.Context { return context.Background() }

// selfTest is what a start must prove.
func selfTest(ctx context.Context, s *Session, cfg Config) error {
	checks := []Check{{Kind: CheckAbsent, Path: "/root"}, {Kind: CheckReadOnly, Path: "/usr"}}
	if cfg.Network != HostNetwork {
		checks = append(checks, Check{Kind: CheckDevices}, Check{Kind: CheckRoutes})
	}
	failures, err := s.Check(ctx, checks...)
	if err != nil {
		return err
	}
	if len(failures) > 0 {
		return fmt.Errorf("self-test: %s", strings.Join(failures, "; "))
	}
	for _, at := range [][2]string{{"tcp", "203.0.113.7:22"}, {"tcp", "[2001:db8::7]:22"}, {"udp", "203.0.113.7:443"}, {"udp", "[2001:db8::7]:443"}} {
		if cfg.Network == Captured {
			if err := s.Refuses(ctx, at[0], at[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// user is the uid of an ordinary user: one of the test's own as root, else the
// caller.
func user() int {
	if uid := os.Geteuid(); uid != 0 {
		return uid
	}
	return 12345
}

// users are the kinds of caller that a test can be.
func users() map[string]int {
	if os.Geteuid() != 0 {
		return map[string]int{"user": user()}
	}
	return map[string]int{"user": user(), "root": 0}
}

// expect runs and compares what the program said.
func (r run) expect(t *testing.T, want string) outcome {
	t.Helper()
	got := r.do(t)
	if got.Stdout != want {
		t.Errorf("stdout %q, want %q\nstatus %d, stderr %s", got.Stdout, want, got.Code, got.Stderr)
	}
	return got
}

// The whole chain: a program runs, every dial ends at a door, and its status
// is the run's.
func TestRun(t *testing.T) {
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			r := run{As: uid, Network: Captured, Check: true,
				Shell: "curl -sS http://a.test/; curl -sS --noproxy '*' http://203.0.113.9/ http://[2001:db8::9]/; exit 7"}
			got := r.expect(t, "explicit 127.0.0.1:3128\ncaptured 203.0.113.9:80\ncaptured [2001:db8::9]:80\n")
			if got.Code != 7 {
				t.Errorf("status %d, want 7", got.Code)
			}
		})
	}
}

// A name that rules know has an address of its own, and the ports they name
// are caught on it; all others share one address.
func TestNames(t *testing.T) {
	n := &names{Of: map[string][]int{"db.test": {5432}}, Bare: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.4:8080")}}
	r := run{As: user(), Network: Captured, Names: n, Shell: "for u in http://db.test:5432 http://db.test http://other.test http://192.0.2.4:8080 http://192.0.2.4:8081; do " +
		"curl -s --noproxy '*' $u/ || echo none; done; curl -s -6 --noproxy '*' http://db.test:5432/"}
	r.expect(t, "captured db.test:5432\ncaptured db.test:80\ncaptured *:80\ncaptured 192.0.2.4:8080\nnone\ncaptured db.test:5432\n")
}

// A reload opens the ports that it names for addresses that were given out.
func TestReload(t *testing.T) {
	r := run{As: user(), Network: Captured, Names: &names{Of: map[string][]int{"db.test": nil}},
		Reload: &names{Of: map[string][]int{"db.test": {5432}}},
		Shell: "a=$(getent ahostsv4 db.test | awk '{print $1; exit}'); curl -s --noproxy '*' http://$a:5432/ || echo none; " +
			"sleep 0.6; curl -s --noproxy '*' http://$a:5432/ || echo none"}
	r.expect(t, "none\ncaptured db.test:5432\n")
}

// A port that the sandbox holds itself cannot be captured: the name is not
// answered, and it is told.
func TestPortTaken(t *testing.T) {
	r := run{As: user(), Network: Captured, Names: &names{Of: map[string][]int{"db.test": {8000}}},
		Shell: "python3 -m http.server 8000 >/dev/null 2>&1 & sleep 0.7; getent ahostsv4 db.test >/dev/null || echo unknown; " +
			"curl -s -o /dev/null -w '%{http_code}\\n' --noproxy '*' http://127.0.0.1:8000/"}
	got := r.expect(t, "unknown\n200\n")
	if !strings.Contains(got.Stderr, "event: port_taken 0 db.test 198.18.") {
		t.Errorf("stderr %q tells of no port", got.Stderr)
	}
}

// Where the host forbids mounts the explicit door is all there is, unless that
// was asked not to be.
func TestFallback(t *testing.T) {
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			r := run{As: uid, Network: Captured, Forbid: true, Check: true, Hidden: []string{}, Shell: "curl -s http://a.test/; " +
				"curl -s --noproxy '*' http://203.0.113.9/ || echo none; getent hosts a.test || echo unknown; cat .env; touch x 2>/dev/null || echo refused; id -u"}
			r.prepare(t)
			r.put(t, "proj/.env", "secret")
			want := "explicit 127.0.0.1:3128\nnone\nunknown\nrefused\n" + strconv.Itoa(user()) + "\n"
			if uid == 0 {
				want = strings.Replace(want, strconv.Itoa(user()), "1000", 1)
			}
			got := r.expect(t, want)
			if !strings.Contains(got.Stderr, "note: capture is explicit only") {
				t.Errorf("stderr %q does not say that capture is explicit", got.Stderr)
			}
		})
	}
	r := run{As: user(), Network: Captured, Forbid: true, Capture: CaptureTransparent, Shell: "true"}
	if got := r.do(t); got.Code != 125 || !strings.Contains(got.Stderr, "forbids transparent capture") {
		t.Errorf("transparent alone: %+v", got)
	}
	r = run{As: user(), Network: Captured, Forbid: true, Shell: "true"}
	r.prepare(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(r.Cwd, ".link")); err != nil {
		t.Fatal(err)
	}
	if got := r.do(t); got.Code != 125 || !strings.Contains(got.Stderr, "cannot hide a link") {
		t.Errorf("a link to hide: %+v", got)
	}
}

// Without bwrap, or with one that is too old, nothing runs and the message says
// what to install.
func TestNoBwrap(t *testing.T) {
	r := run{As: user(), Path: "/nowhere", Shell: "true"}
	if got := r.do(t); got.Code != 125 || !strings.Contains(got.Stderr, "bwrap is not installed") {
		t.Errorf("none: %+v", got)
	}
	r = run{As: user(), Shell: "true"}
	r.prepare(t)
	r.put(t, "bin/bwrap", "#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.7.0 && exit 0\necho no >&2; exit 1\n")
	r.Path = r.Home + "/bin"
	if err := os.Chmod(r.Path+"/bwrap", 0o755); err != nil {
		t.Fatal(err)
	}
	if got := r.do(t); got.Code != 125 || !strings.Contains(got.Stderr, "bwrap 0.7.0 is too old, 0.8 is needed") {
		t.Errorf("an old one: %+v", got)
	}
	r.Grants = []mount.Grant{{Path: r.Home + "/bin", Write: true}}
	if got := r.do(t); got.Code != 125 || !strings.Contains(got.Stderr, "bwrap is not installed") {
		t.Errorf("one that the sandbox could have written: %+v", got)
	}
	// One that came with a cloned repository, or from yesterday's sandbox.
	r = run{As: user(), Shell: "true"}
	r.prepare(t)
	r.put(t, "proj/bin/bwrap", "#!/bin/sh\necho planted >&2; exit 1\n")
	r.Path = r.Cwd + "/bin"
	if err := os.Chmod(r.Path+"/bwrap", 0o755); err != nil {
		t.Fatal(err)
	}
	if got := r.do(t); got.Code != 125 || !strings.Contains(got.Stderr, "bwrap is not installed") {
		t.Errorf("one in the working folder: %+v", got)
	}
}
