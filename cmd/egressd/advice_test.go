package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// A program that is on the host and not inside is 127, with the folders to
// grant; once they are granted it runs.
func TestRunAdvice(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		dash, err := os.ReadFile("/bin/sh")
		if err != nil {
			t.Fatal(err)
		}
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			put := func(name, text string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				r.write(t, name, text)
				if err := os.Chmod(r.path(name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			link := func(target, name string) {
				t.Helper()
				if err := os.Symlink(target, r.path(name)); err != nil {
					t.Fatal(err)
				}
			}
			put(".local/bin/tool", "#!/bin/sh\necho tool\n")
			put(".rye/versions/3/bin/python9", string(dash))
			put(".rye/versions/3/lib/x", "")
			put(".rye/shims/python9", "#!/bin/sh\nexec "+r.path(".rye/versions/3/bin/python9")+" \"$@\"\n")
			link(r.path(".rye/versions/3/bin/python9"), ".local/bin/py")
			put("proj/script", "#!"+r.path(".rye/versions/3/bin/python9")+"\necho script\n")
			put("proj/lost", "#!/opt/none/bin/python9\n")
			put("proj/.tools/hidden", "#!/bin/sh\necho hidden\n")
			put("proj/masked", "#!/bin/sh\n")
			put(".local/bin/envscript", "#!/usr/bin/env -S python9\n")
			link(".local/bin", "bin")
			at := r.with("PATH", r.path(".local/bin")+":"+r.path(".rye/shims")+":/usr/local/bin:/usr/bin:/bin")
			policy := func(sandbox string) []string {
				return []string{"run", "-q", "--policy", r.write(t, "advice.yaml", "sandbox: {egress_rules: [], "+sandbox+"}\n"), "--"}
			}
			rye, local := r.path(".rye"), r.path(".local/bin")
			for _, x := range []struct{ sandbox, command, want, grant, output string }{
				{"", "tool", `grant with read_paths: ["` + local + `"]`, "~/.local/bin", "tool\n"},
				{"", local + "/tool", `grant with read_paths: ["` + local + `"]`, "~/.local/bin", "tool\n"},
				{"", "../.local/bin/tool", `grant with read_paths: ["` + local + `"]`, "~/.local/bin", "tool\n"},
				{"", "../bin/tool", `grant with read_paths: ["` + r.path("bin") + `"]`, "~/bin", "tool\n"},
				{"", "python9 -c 'echo py'", `grant with read_paths: ["` + rye + `"]`, "~/.rye", "py\n"},
				{"", "py -c 'echo py'", `grant with read_paths: ["` + local + `" "` + rye + `/versions/3"]`, "~/.local/bin, ~/.rye/versions/3", "py\n"},
				{"read_paths: [~/.local]", "py -c 'echo py'", `grant with read_paths: ["` + rye + `/versions/3"]`, "~/.local/bin, ~/.rye/versions/3", "py\n"},
				{"", "./script", `a script for ` + rye + `/versions/3/bin/python9: grant with read_paths: ["` + rye + `/versions/3"]`, "~/.rye", "script\n"},
				{"", "envscript -c 'echo env'", `grant with read_paths: ["` + local + `" "` + rye + `"]`, "~/.rye, ~/.local/bin", ""},
				{"", "./lost", "is a script for /opt/none/bin/python9, which is not on this host either", "", ""},
				{"", ".tools/hidden", `grant with read_paths: ["` + r.path("proj/.tools") + `"]`, ".tools", "hidden\n"},
				{"mask_paths: [.tools]", ".tools/hidden", "which mask_paths hides", "", ""},
			} {
				command := strings.Split(strings.ReplaceAll(x.command, "'", ""), " -c ")
				if len(command) > 1 {
					command = []string{command[0], "-c", command[1]}
				}
				out, errs, code := at.call(t, append(policy(x.sandbox), command...)...)
				if code != 127 || !strings.Contains(errs, x.want) {
					t.Errorf("uid %d: %s %q: %d %q\n%s", uid, x.sandbox, command, code, out, errs)
				}
				if x.output == "" {
					continue
				}
				out, errs, code = at.call(t, append(policy("read_paths: ["+x.grant+"]"), command...)...)
				if code != 0 || out != x.output {
					t.Errorf("uid %d: %s with %s: %d %q\n%s", uid, command, x.grant, code, out, errs)
				}
			}
			// A search path that names a link to what is granted.
			if out, errs, code := r.with("PATH", r.path("bin")+":/usr/bin:/bin").call(t, append(policy("read_paths: [~/.local/bin]"), "tool")...); out != "tool\n" || code != 0 {
				t.Errorf("uid %d: by a link: %d %q %s", uid, code, out, errs)
			}
			if _, errs, code := at.call(t, append(policy(""), "no-such-program")...); code != 127 || strings.Contains(errs, "grant") {
				t.Errorf("uid %d: %d %s", uid, code, errs)
			}
			for _, name := range []string{".local/bin/py", "bin"} {
				if err := os.Remove(r.path(name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
