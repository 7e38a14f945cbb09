package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/internal/proxytest"
)

// What a file tool reads and writes is what a program in the sandbox reads and
// writes, for a user, for root, and for root in another's name: but for what is
// hidden, which reads as empty inside, and which a tool refuses by name.
func TestMCPFilesAreTheSandbox(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, as := range []struct {
			name string
			uid  int
			sudo bool
		}{{"user", annUID, false}, {"root", 0, false}, {"sudo", 0, true}} {
			t.Run(as.name, func(t *testing.T) {
				r := newRunPlace(t, as.uid)
				if as.sudo {
					r = newRunPlace(t, annUID)
					r.env = append(r.env, fmt.Sprintf("SUDO_UID=%d", annUID), fmt.Sprintf("SUDO_GID=%d", annUID))
				}
				for _, name := range []string{
					"proj/plain", "proj/sub/deep/file", "proj/.env", "proj/.venv/cfg", "proj/masked/in", "proj/sub/masked2",
					"open/plain", "open/w/file", "open/w/key", "open/w/.hid/x", "open/w/.hid/shown/x", "open/inplace", "elsewhere", ".gnupg/key", "other/file",
					"proj/foreign", "proj/ro/x",
				} {
					if err := os.MkdirAll(r.path(name[:strings.LastIndexByte("/"+name, '/')]), 0o755); err != nil {
						t.Fatal(err)
					}
					r.write(t, name, "text of "+name+"\n")
				}
				for name, to := range map[string]string{"proj/link": "plain", "proj/out": r.path("elsewhere"), "proj/abs": r.path("open/plain"), "proj/tohid": ".env", "proj/.linked": "plain", "open/w/up": "../plain"} {
					_ = os.Remove(r.path(name))
					if err := os.Symlink(to, r.path(name)); err != nil {
						t.Fatal(err)
					}
				}
				policy := strings.Replace(fullPolicy, "mask_paths: [masked,", "mask_paths: [masked, sub/masked2,", 1)
				policy = strings.Replace(policy, "~/open/w]", "~/open/w, ~/open/w/.hid/shown]", 1)
				a := newAgentAs(t, r, policy, as.sudo, func() {
					// Nobody's in particular, and of a mode that counts.
					if err := os.Chmod(r.path("proj/foreign"), 0o600); err != nil {
						t.Fatal(err)
					}
					if err := os.Lchown(r.path("proj/foreign"), 9999, 9999); err != nil {
						t.Fatal(err)
					}
					if err := os.Chmod(r.path("proj/ro"), 0o555); err != nil {
						t.Fatal(err)
					}
				})
				hidden := "is hidden"
				for path, why := range map[string]string{
					"plain": "", "sub/deep/file": "", "link": "", "abs": "", ".venv/cfg": "", "./sub/../plain": "", r.path("proj/plain"): "",
					"../open/plain": "", r.path("open/w/file"): "", r.path("open/inplace"): "", r.path("open/w/up"): "", r.path("open/w/.hid/shown/x"): "",
					"ro/x": "", "/usr/bin/env": "", "/bin/sh": "",
					".env": hidden, "masked/in": hidden, "sub/masked2": hidden, "tohid": hidden, ".linked": hidden, r.path("open/w/key"): hidden, r.path("open/w/.hid/x"): hidden,
					"out": "leaves", r.path("elsewhere"): "leaves", r.path(".gnupg/key"): "leaves", "../other/file": "leaves", "/etc/passwd": "leaves", "/proc/1/environ": "leaves", "none": "no such file",
					"foreign": "",
				} {
					in, _ := a.run(t, []string{"sh", "-c", `cat "$0" >/dev/null 2>&1 && head -c 300 "$0" | base64 -w0 || echo no`, path})
					text, refused, err := a.say(t.Context(), "file_read", map[string]any{"path": path})
					if err != nil {
						t.Fatal(err)
					}
					if strings.HasPrefix(path, "/usr") || strings.HasPrefix(path, "/bin") {
						if strings.Contains(text, "is hidden") || strings.Contains(text, "leaves") || in == "no\n" {
							t.Errorf("%s: %q, inside %q", path, text, in)
						}
						continue
					}
					tool := base64.StdEncoding.EncodeToString([]byte(text))
					if refused {
						tool = "no\n"
					}
					switch {
					case why == hidden && (in != "" && in != "no\n"): // empty, or not there
						t.Errorf("%s: inside it reads %q", path, in)
					case why == hidden && (!refused || !strings.Contains(text, why)):
						t.Errorf("%s: a tool reads %q", path, text)
					case why != hidden && why != "leaves" && tool != in:
						t.Errorf("%s: a tool reads %q (%s), a program %q", path, tool, text, in)
					case why == "leaves" && (!refused || !strings.Contains(text, why)):
						t.Errorf("%s: a tool reads %q", path, text)
					case strings.Contains(text, "text of") && in != tool:
						t.Errorf("%s shows what is hidden: %q", path, text)
					}
				}
				for _, path := range []string{"plain", "new", "sub/new", "newdir/new", "ro/new", ".env", ".new", "masked/in", "masked/new", "sub/masked2", "abs", "../open/new", "../open/plain",
					r.path("open/w/file"), r.path("open/w/new"), r.path("open/w/key"), r.path("open/w/.hid/x"), r.path("open/w/.hid/new"), r.path("open/w/.hid/shown/x"), r.path("open/w/.hid/shown/new"),
					r.path("open/inplace"), r.path("elsewhere"), "/usr/bin/new", "/usr/bin/env", r.path("new")} {
					in, _ := a.run(t, []string{"sh", "-c", `mkdir -p "$(dirname "$0")" 2>/dev/null; test -e "$0" && old=1; (: >> "$0") 2>/dev/null && echo yes || echo no; test $old || rm -f "$0" 2>/dev/null; rmdir newdir 2>/dev/null`, path})
					text, refused, err := a.say(t.Context(), "file_write", map[string]any{"path": path, "content": "x\n"})
					if err != nil {
						t.Fatal(err)
					}
					tool := "yes\n"
					if refused {
						tool = "no\n"
					}
					if path == r.path("new") || path == r.path("elsewhere") { // HOME inside is the sandbox's own
						in = "no\n"
					}
					if in != tool {
						t.Errorf("%s: a tool may write it: %s (%s), a program: %s", path, tool, text, in)
					}
				}
				a.atEnd(t)
				var info unix.Stat_t
				if err := unix.Stat(r.path("proj/newdir/new"), &info); err != nil || int(info.Uid) != r.uid {
					t.Errorf("a file that was written belongs to %d, not %d (%v)", info.Uid, r.uid, err)
				}
			})
		}
	})
}
