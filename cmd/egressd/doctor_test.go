package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/egressd/egressd/internal/proxytest"
)

// examined are doctor's findings by their check; tools by check and name.
func (r *runPlace) examined(t *testing.T, args ...string) (map[string]finding, int) {
	t.Helper()
	out, errs, code := r.call(t, append([]string{"doctor", "--json"}, args...)...)
	return byCheck(t, out, errs), code
}

func byCheck(t *testing.T, out, errs string) map[string]finding {
	t.Helper()
	var all []finding
	if err := json.Unmarshal([]byte(out), &all); err != nil || errs != "" {
		t.Fatalf("%q %s", out, errs)
	}
	by := map[string]finding{}
	for _, f := range all {
		name, _, _ := strings.Cut(f.Found, " ")
		if f.Check == "tool" {
			f.Check += " " + name
		}
		if f.OK != (f.Level != isFail) || f.Level == isFail && f.Advice == "" {
			t.Errorf("%+v", f)
		}
		by[f.Check] = f
	}
	return by
}

func says(t *testing.T, by map[string]finding, check, level string, words ...string) {
	t.Helper()
	f, ok := by[check]
	if !ok || f.Level != level {
		t.Errorf("%s: %+v, not %s", check, f, level)
	}
	for _, w := range words {
		if !strings.Contains(f.Found+" "+f.Advice, w) {
			t.Errorf("%s lacks %q: %+v", check, w, f)
		}
	}
}

// doctor says what it found, for a person and for a program, and exits 1 where
// a policy could not be enforced.
func TestDoctor(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		h := newSandboxHost(t)
		h.over(t, "/etc/group", "root:x:0:\nann:x:4242:\ndocker:x:998:\n")
		for _, uid := range []int{annUID, 0} {
			doctorOnAGoodHost(t, newRunPlace(t, uid))
			doctorWithoutBwrap(t, newRunPlace(t, uid))
		}
		r := newRunPlace(t, annUID)
		doctorLooksAtThePolicy(t, r)
		doctorLooksAtTheHost(t, r)
	})
}

func doctorOnAGoodHost(t *testing.T, r *runPlace) {
	out, errs, code := r.call(t, "doctor")
	for _, want := range []string{"\nok    isolation", "bwrap", "ok    namespaces", "ok    capture     transparent", "ok    seccomp", "ok    inside",
		"ok    AppArmor", "ok    groups", "ok    sockets", "warn  names", "ok    CA", "ok    secrets", "no core dump", "ok    keyring"} {
		if !strings.Contains(out, want) {
			t.Errorf("uid %d: doctor lacks %q", r.uid, want)
		}
	}
	// Each of these is there (.ci/deps), and trusts what a sandbox gives it.
	for _, tool := range []string{"curl", "wget", "git", "openssl", "python3", "requests", "pip", "node", "npm", "java", "gh", "aws"} {
		if !strings.Contains(out, "ok    tool        "+tool+" works through the proxy\n") {
			t.Errorf("uid %d: %s does not work", r.uid, tool)
		}
	}
	if code != 0 || errs != "" || strings.Contains(out, "FAIL") {
		t.Errorf("uid %d: %d\n%s%s", r.uid, code, out, errs)
	}
	if left, _ := filepath.Glob("/tmp/egressd-doctor-*"); len(left) > 0 {
		t.Errorf("uid %d: left behind: %v", r.uid, left)
	}
}

func doctorWithoutBwrap(t *testing.T, r *runPlace) {
	for _, x := range []struct{ path, found, advice string }{
		{noBwrap(t), "bwrap is not installed", "install the package bubblewrap"},
		{fakeBwrap(t, "0.4.1"), "bwrap 0.4.1 is too old, 0.8 is needed", "install a newer package bubblewrap"},
	} {
		poor := r.with("PATH", x.path)
		out, _, code := poor.call(t, "doctor")
		if code != 1 || !strings.Contains(out, "FAIL  isolation") || !strings.Contains(out, x.advice) {
			t.Errorf("uid %d, %s: %d\n%s", r.uid, x.found, code, out)
		}
		by, code := poor.examined(t)
		if code != 1 {
			t.Errorf("uid %d, %s: %d", r.uid, x.found, code)
		}
		says(t, by, "isolation", isFail, x.found, x.advice)
	}
}

// What stands in the policy decides what is tried, and whether it can be.
func doctorLooksAtThePolicy(t *testing.T, r *runPlace) {
	quick := r.with("PATH", "/nosuch:"+onlyBwrap(t)) // no tools
	by, code := quick.examined(t, "--policy", r.policyText(t, "sandbox: {egress_rules: [GET a.test/x], read_paths: [nosuch]}\n"))
	says(t, by, "policy", isOK, "1 rule, 0 credentials")
	says(t, by, "grants", isWarn, "read_paths[0]: nosuch does not exist")
	if code != 0 {
		t.Errorf("%d: %v", code, by)
	}
	by, code = quick.examined(t, "--policy", r.policyText(t, "sandbox: {egress_rules: [GEET a.test/x]}\n"))
	says(t, by, "policy", isFail, "does not load", "bad_rule", "egressd check")
	if code != 1 {
		t.Errorf("%d: %v", code, by)
	}
	by, code = quick.examined(t, "--policy", r.policyText(t, "sandbox: {egress_rules: []}\naudit: {otlp: 'http://x.test'}\n"))
	says(t, by, "policy", isFail, "audit.otlp", "not enforced")
	if code != 1 {
		t.Errorf("%d: %v", code, by)
	}
	by, _ = quick.examined(t, "--policy", r.policyText(t, "sandbox: {}\n"))
	says(t, by, "policy", isOK, "NOT filtered")
	by, code = quick.examined(t, "--policy", r.policyText(t, "sandbox: {type: none}\n"))
	says(t, by, "isolation", isWarn, "NO sandbox", "leave sandbox.type out")
	says(t, by, "groups", isWarn, "without a sandbox")
	if code != 0 || by["namespaces"].Check != "" {
		t.Errorf("%d: %v", code, by)
	}
	by, code = quick.examined(t, "--policy", r.policyText(t, "sandbox: {type: firejail}\n"))
	says(t, by, "isolation", isFail, "firejail is not installed", "package firejail")
	if code != 1 {
		t.Errorf("%d: %v", code, by)
	}
	by, code = quick.with(unsafeVariable, "1").examined(t)
	says(t, by, "isolation", isFail, "egress_rules", unsafeVariable)
	if code != 1 {
		t.Errorf("%d: %v", code, by)
	}
	// A found policy is tried too, but run would not take it.
	r.write(t, "proj/egressd.yaml", "sandbox: {egress_rules: []}\n")
	by, code = quick.examined(t)
	says(t, by, "policy", isWarn, "proj/egressd.yaml", "new", "egressd trust")
	says(t, by, "capture", isOK, "transparent")
	if code != 0 {
		t.Errorf("%d: %v", code, by)
	}
	if err := os.Remove(r.path("proj/egressd.yaml")); err != nil {
		t.Fatal(err)
	}
}

// Groups, sockets and fake addresses are looked for where the policy leads.
func doctorLooksAtTheHost(t *testing.T, r *runPlace) {
	quick := r.with("PATH", "/nosuch:"+onlyBwrap(t))
	file := r.policyText(t, "sandbox: {egress_rules: [], read_paths: [~/data]}\nupstream: {dns: '"+fakeResolver(t)+"'}\n")
	if err := os.MkdirAll(r.path("data/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	secret := r.write(t, "data/secret", "x")
	by, code := quick.examined(t, "--policy", file)
	says(t, by, "names", isWarn, "fake addresses", "198.18.0.7", "upstream.dns")
	says(t, by, "sockets", isOK)
	says(t, by, "groups", isOK, "none of them")
	if code != 0 {
		t.Errorf("%d: %v", code, by)
	}
	l, err := net.Listen("unix", r.path("data/run/daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := quick.command(t, "doctor", "--json", "--policy", file)
	// own has just given everything to ann.
	if err := os.Chown(secret, annUID, 998); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(secret, 0o660); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: annUID, Gid: annUID, Groups: []uint32{998}}}
	out, errs, code := finish(t, cmd)
	by = byCheck(t, out, errs)
	says(t, by, "sockets", isWarn, r.path("data/run"))
	says(t, by, "groups", isWarn, "docker", secret)
	if code != 0 {
		t.Errorf("%d: %v", code, by)
	}
}

// onlyBwrap is a folder with nothing else, as a link.
func onlyBwrap(t *testing.T) string {
	t.Helper()
	dir := noBwrap(t)
	if err := os.Symlink("/usr/bin/bwrap", filepath.Join(dir, "bwrap")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fakeResolver answers every question for an address with 198.18.0.7.
func fakeResolver(t *testing.T) string {
	t.Helper()
	return answerDNS(t, "127.0.0.1:0", func(m *dnsmessage.Message) {
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
				Body: &dnsmessage.AResource{A: [4]byte{198, 18, 0, 7}}}}
		}
	})
}

// The profile that doctor prints is the one that is shipped, for the place where
// this egressd lies, and only where AppArmor stands in the way.
func TestDoctorAppArmor(t *testing.T) {
	shipped, err := os.ReadFile("../../deploy/apparmor/egressd")
	if err != nil {
		t.Fatal(err)
	}
	if want := apparmorProfile("/usr/local/bin/egressd"); !strings.HasSuffix(string(shipped), "\n"+want) {
		t.Errorf("deploy/apparmor/egressd does not end with\n%s", want)
	}
	if got := apparmorProfile("/opt/my tools/egressd"); !strings.Contains(got, `profile egressd "/opt/my tools/egressd" flags`) {
		t.Errorf("%s", got)
	}
	on := map[string]string{apparmorOn: "Y", apparmorSetting: "1"}
	fine, poor := []finding{good("namespaces", "")}, []finding{odd("capture", "explicit only", "")}
	for _, c := range []struct {
		name   string
		so     []finding
		kernel map[string]string
		level  string
		says   string
	}{
		{"none", poor, nil, isOK, "not on this host"},
		{"lets all", poor, map[string]string{apparmorOn: "Y"}, isOK, "without a profile"},
		{"lets us", fine, on, isOK, ""},
		{"hinders", poor, on, isWarn, "under no profile"},
	} {
		f := examineAppArmor(c.so, func(path string) string { return c.kernel[path] })
		if f.Level != c.level || !strings.Contains(f.Found, c.says) || (c.level == isWarn) != strings.Contains(f.Advice, "userns,") {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}
