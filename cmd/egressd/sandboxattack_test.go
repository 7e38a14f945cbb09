package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

type attack struct{ name, script, want string }

// What a sandbox did to get at the policy that rules it, and at the host, when
// it was tried; `e` runs egressd as the user, with HOME. What a script prints
// tells whether it got there.
var attacks = []attack{
	{"config folder behind a link", `
		mkdir -p dot/config && ln -s dot/config .config && cd dot && echo 'sandbox: {write_paths: ["."], egress_rules: []}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'mkdir -p config/egressd; echo "sandbox: {}" >config/egressd/egressd.yaml' 2>/dev/null
		ls -A config/egressd`, ""},
	{"egressd's folders behind a HOME that is a link", `
		mkdir -p .config && mv "$HOME" "$HOME.real" && ln -s "$HOME.real" "$HOME" && cd "$HOME.real"
		echo 'sandbox: {write_paths: ["."], cwd_allow_hidden: [.config, .local], egress_rules: []}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'echo x >.local/state/egressd/trust.json; mkdir -p .config/egressd; echo x >.config/egressd/egressd.yaml; ls -A .local/state/egressd' 2>/dev/null
		ls -A .config/egressd; ls .local/state/egressd`, "audit\n"},
	{"state folder in a grant does not stop the start", `
		echo 'sandbox: {write_paths: ["."], cwd_allow_hidden: [.local], egress_rules: []}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'ls -A .local/state/egressd; echo ran'`, "ran\n"},
	{"a .git that leads past the policy", `
		mkdir -p repo/.git repo/sub .config/egressd && cd repo/sub && echo 'sandbox: {write_paths: ["."], egress_rules: []}' >../egressd.yaml
		echo 'sandbox: {write_paths: [~]}' >~/.config/egressd/egressd.yaml
		e trust --yes >/dev/null && e run -q -- mkdir .git && e run -q -- echo unfiltered 2>/dev/null; echo $?`, "125\n"},
	{"a bwrap in the working folder", `
		printf '#!/bin/sh\necho planted >>/tmp/planted\nexec /usr/bin/bwrap "$@"\n' >bwrap && chmod +x bwrap
		echo 'sandbox: {egress_rules: []}' >/tmp/p.yaml
		for p in "$PWD" . "" /proc/self/cwd "$PWD/../${PWD##*/}"; do PATH="$p:$PATH" e run -q --policy /tmp/p.yaml -- true; done
		PATH="$PWD:$PATH" e doctor >/dev/null; cat /tmp/planted 2>/dev/null; echo done`, "done\n"},
	{"both streams in one file", `
		echo 'sandbox: {egress_rules: []}' >/tmp/p.yaml
		{ e run -q --policy /tmp/p.yaml -- sh -c 'echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three'; echo caller; } >/tmp/out 2>&1; cat /tmp/out`,
		"one\ntwo\nthree\ncaller\n"},
	{"escape sequences in our own messages", `
		printf 'sandbox: {write_paths: ["no\\e[2Kne", ".", two, /tmp/w], egress_rules: []}' >/tmp/p.yaml
		mkdir proj && d=$(printf '/tmp/w/\033]52;c;QUFB\a\235') && mkdir -p "$d" && ln -s "$d" proj/two && cd proj
		e run --policy /tmp/p.yaml -- true 2>&1 | tr -d '[:print:]\n' | od -An -c`, " 357 277 275\n"},
	{"settings of the kernel", `
		echo 'sandbox: {egress_rules: []}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'for f in kernel/core_pattern fs/mqueue/msg_max kernel/shmmax; do
			if (: >>/proc/sys/$f) 2>/dev/null; then echo opened $f; fi; done; grep -c "^[0-9]* [0-9]* [^ ]* [^ ]* /proc/sys ro" /proc/self/mountinfo'`, "1\n"},
}

// Those on a run of root's in a folder of somebody else.
var rootAttacks = []attack{
	{"egressd's folders are made for root", `
		echo 'sandbox: {write_paths: [/tmp, "~"], cwd_allow_hidden: [.config], egress_rules: []}' >/tmp/p.yaml
		mkdir -p "$HOME/.config" && e run -q --policy /tmp/p.yaml -- echo ran; stat -c %u "$HOME/.config/egressd" /tmp/egressd-0; rm -rf "$HOME"/.config`, "ran\n0\n0\n"},
}

// The attacks of an ordinary user's sandbox, and of root's.
func TestAttacks(t *testing.T) {
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		h := newSandboxHost(t)
		for i, a := range append(slices.Clone(attacks), rootAttacks...) {
			t.Run(a.name, func(t *testing.T) {
				uid, own := annUID, filepath.Join("/home", annName)
				if i >= len(attacks) {
					uid, own = 0, "/srv"
				}
				h.attack(t, a, uid, own)
			})
		}
	})
}

// attack runs the script in a fresh home, as the user with this HOME.
func (h *sandboxHost) attack(t *testing.T, a attack, uid int, own string) {
	t.Helper()
	home := filepath.Join("/home", annName)
	for _, path := range []string{home, home + ".real", "/tmp/p.yaml", "/tmp/planted", "/tmp/out", "/tmp/w"} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, annUID, annUID); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod("/home", 0o777); err != nil { // one of them moves the home itself
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "e() { "+h.bin+` "$@"; }; cd `+home+"\n"+a.script)
	cmd.Env = []string{"HOME=" + own, "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if stdout.String() != a.want {
		t.Errorf("it printed %q, not %q; on stderr: %s", stdout.String(), a.want, stderr.String())
	}
}
