package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// doctor says what it found, for a person and for a program, and exits 1 where
// a policy could not be enforced.
func TestDoctor(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			out, errs, code := r.call(t, "doctor")
			for _, want := range []string{"isolation", "bwrap", "namespaces", "capture", "transparent", "inside", "CA", "secrets", "no core dump"} {
				if !strings.Contains(out, want) {
					t.Errorf("uid %d: doctor lacks %q", uid, want)
				}
			}
			if code != 0 || errs != "" || strings.Contains(out, "FAIL") {
				t.Errorf("uid %d: %d\n%s%s", uid, code, out, errs)
			}
			for _, x := range []struct{ path, found, advice string }{
				{noBwrap(t), "bwrap is not installed", "install the package bubblewrap"},
				{fakeBwrap(t, "0.4.1"), "bwrap 0.4.1 is too old, 0.8 is needed", "install a newer package bubblewrap"},
			} {
				bad := r.with("PATH", x.path)
				out, _, code = bad.call(t, "doctor")
				if code != 1 || !strings.Contains(out, "FAIL  isolation") || !strings.Contains(out, x.advice) {
					t.Errorf("uid %d, %s: %d\n%s", uid, x.found, code, out)
				}
				out, errs, code = bad.call(t, "doctor", "--json")
				var all []finding
				if err := json.Unmarshal([]byte(out), &all); err != nil || code != 1 || errs != "" {
					t.Fatalf("uid %d, %s: %d %q %s", uid, x.found, code, out, errs)
				}
				first := all[0]
				if first.Check != "isolation" || first.OK || !strings.Contains(first.Found, x.found) || !strings.Contains(first.Advice, x.advice) {
					t.Errorf("uid %d: %+v", uid, first)
				}
			}
		}
	})
}
