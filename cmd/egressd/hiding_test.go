package main

import (
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// await waits for a file, six seconds at most.
const await = `await() { t=0; until [ -e "$1" ] || [ $t -gt 300 ]; do sleep 0.02; t=$((t+1)); done; }; `

// bound binds unix sockets, and is there until the script ends.
const bound = await + `
	bound() { python3 -c 'import socket,sys,os,time
for p in sys.argv[1:]:
    d, n = os.path.split(p)
    os.chdir(d) if p.startswith("./") else None
    s = socket.socket(socket.AF_UNIX); s.bind(n if p.startswith("./") else p); s.listen(); globals()[p] = s
open("/tmp/out", "w"); time.sleep(20)' "$@" >/dev/null 2>&1 & await /tmp/out; }
	reach='python3 -c "import socket,sys
for p in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX); s.settimeout(3)
    try: s.connect(p); print(\"in\")
    except OSError: print(\"out\")"'
`

// own hands what root has made to the user as whom root's sandbox runs.
const own = "own() { chown -R 4242:4242 /home/ann; }; "

// What must not be seen, tried by whoever would like to.
var hidingAttacks = []attack{
	{"hundreds of names at every depth", own + `
		for i in 1 2 3 4 5 6 7 8 9; do for k in 1 2 3 4 5; do mkdir -p a/b$i/c$k; echo s >a/b$i/c$k/.env; echo s >a/b$i/c$k/key; done; done
		{ echo 'sandbox: {write_paths: ["."], egress_rules: [], cwd_hidden_scan_recursive: true, mask_paths: ['; for i in 1 2 3 4 5 6 7 8 9; do for k in 1 2 3 4 5; do echo "a/b$i/c$k/key,"; done; done; echo ']}'; } >/tmp/p.yaml
		own; e run -q --policy /tmp/p.yaml -- sh -c 'find . -type f | wc -l; find . -type f -exec cat {} + | wc -c; mv a/b1/c1/key x; mv a/b1/c1/.env x; mv a/b1/c1 x; mv a/b1 x; mv a x; rm -rf a; (echo x >a/b1/c1/key); touch a/b1/c1/free && echo free' 2>/dev/null
		cat a/b1/c1/key a/b9/c5/.env`, "90\n0\nfree\ns\ns\n"},
	{"odd names", `
		d=$(printf 'a\nb'); mkdir -p "$d/ -x" "$d/\\040"; echo s >"$d/ -x/.e
v"; echo s >"$d/\\040/k"; echo s >"$(printf '\377\001')"
		printf 'sandbox: {egress_rules: [], cwd_hidden_scan_recursive: true, mask_paths: ["a\\nb/\\\\040/k"]}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'find . -type f -exec cat {} + '`, "s\n"},
	{"a name that is not there, and one below it", `
		echo 'sandbox: {write_paths: ["."], egress_rules: [], mask_paths: [none/deep, no]}' >/tmp/p.yaml; mkdir p; cd p
		e run -q --policy /tmp/p.yaml -- true 2>&1; ls -A`, "egressd: mask_paths[0]: none/deep does not exist\negressd: mask_paths[1]: no does not exist\n"},
	{"a file with another name", `
		echo s >key; ln key other; echo 'sandbox: {egress_rules: [], mask_paths: [key]}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'cat key' 2>&1`, "egressd: mask_paths[0]: the file of key has 2 names (hard links), and only this one is hidden\n"},
	{"a link and what it leads to", `
		mkdir d; echo s >d/real; ln -s d/real l; ln -s l l2; echo 'sandbox: {write_paths: ["."], egress_rules: [], mask_paths: [l2]}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'cat l l2 d/real; for f in l l2 d d/real; do mv $f x && echo moved; rm -rf $f; done; ln -s x l2' 2>/dev/null
		readlink l2; cat d/real`, "l\ns\n"},
	{"the working folder itself", `
		mkdir -p g/w; echo s >g/w/f; echo 'sandbox: {write_paths: [., ..], egress_rules: [], mask_paths: [.]}' >/tmp/p.yaml; cd g/w
		e run -q --policy /tmp/p.yaml -- sh -c 'pwd; ls -A . ..; touch x || echo refused' 2>/dev/null; ls -A`, "/home/ann/g/w\n.:\n\n..:\nw\nrefused\nf\n"},
	{"a folder above what is granted", `
		mkdir -p app/w app/out; echo s >app/f; echo s >app/w/f; cd app/w; echo 'sandbox: {write_paths: [., ../out], read_paths: [/home/ann], egress_rules: [], mask_paths: [/home/ann/app]}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'ls -A . .. /home/ann/app/out; touch ../out/x || echo refused; touch x || echo refused' 2>/dev/null`, ".:\n\n..:\nw\nrefused\nrefused\n"},
	{"the system's own", `
		echo 'sandbox: {egress_rules: [], mask_paths: [/usr/bin/tty, /usr/share, /etc/passwd, /nowhere]}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'cat /usr/bin/tty /etc/passwd; ls -A /usr/share; echo x >/usr/bin/tty' 2>/dev/null; echo end`, "end\n"},
	{"all of it", `
		echo 'sandbox: {egress_rules: [], mask_paths: [/]}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- true 2>/dev/null; echo $?`, "125\n"},
	{"what the host replaces", own + await + `
		mkdir -p a/b; for i in 1 2 3 4 5 6 7 8 9; do echo s >a/b/k$i; echo s >a/.k$i; done
		echo 'sandbox: {write_paths: ["."], read_paths: [a/ro], egress_rules: [], cwd_hidden_scan_recursive: true, mask_paths: [a/b/k1, a/b/k2, a/b/k3, a/b/k4, a/b/k5, a/b/k6]}' >/tmp/p.yaml
		echo ro >a/ro
		own; e run -q --policy /tmp/p.yaml -- sh -c '` + await + `touch ready; await go; sleep 0.3; cat a/b/k1 a/.k1; (echo x >a/ro); echo x >>a/b/k9 && cat a/b/k9 a/ro' 2>/dev/null &
		await ready; sleep 0.2
		for f in a/b/k1 a/.k1 a/ro; do echo new >new; mv new $f; done; touch go; wait; cat a/ro`, "s\nx\nnew\nnew\n"},
	{"a granted folder that the host replaces", await + `
		mkdir -p g; echo s >g/.env; echo 'sandbox: {write_paths: ["."], read_paths: [g], egress_rules: []}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c '` + await + `touch ready; await go; sleep 5; cat g/.env; echo still there' 2>/dev/null &
		await ready; sleep 0.2
		mv g old; mkdir g; echo new >g/.env; touch go; wait; echo ended`, "ended\n"},
	{"a link that is turned while it starts", `
		mkdir -p p/in out; echo s >out/secret; echo 'sandbox: {write_paths: [l], egress_rules: []}' >/tmp/p.yaml; cd p; ln -s in l
		(while [ ! -e stop ]; do ln -sfn ../out l; ln -sfn in l; done) &
		for i in 1 2 3 4 5 6 7 8; do e run -q --policy /tmp/p.yaml -- sh -c 'cat l/secret ../out/secret; touch l/planted ../out/planted' 2>/dev/null | grep s; done; touch stop; wait
		ls ../out`, "secret\n"},
	{"a writable file", own + `
		mkdir d; echo one >d/f; ln -s d/f l; echo 'sandbox: {write_files: [l, d/f], egress_rules: []}' >/tmp/p.yaml
		own; e run -q --policy /tmp/p.yaml -- sh -c 'echo two >l; echo three >>d/f; rm -f d/f; mv d/f d/g; echo x >d/h' 2>/dev/null; cat d/*
		for w in d /dev/null; do echo "sandbox: {write_files: [$w], egress_rules: []}" >/tmp/p.yaml; e run -q --policy /tmp/p.yaml -- true 2>/dev/null; echo $?; done`, "two\nthree\n125\n125\n"},
	{"sockets by whatever name", bound + `
		mkdir -p p/deep/er q lnk; ln -s $PWD/p/deep lnk/l; cd q
		bound /home/ann/p/deep/one /home/ann/lnk/l/two ./rel "$(printf '%s\nx' /home/ann/p/deep/er)" /home/ann/p/deep/er/hard; ln /home/ann/p/deep/er/hard /home/ann/p/deep/er/linked; mkdir -p /home/ann/q/w; cd /home/ann/q/w
		echo 'sandbox: {read_paths: [/home/ann/p, /home/ann/q], write_paths: ["."], egress_rules: []}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c "$reach"' /home/ann/p/deep/one /home/ann/p/deep/two /home/ann/q/rel "$(printf "%s\nx" /home/ann/p/deep/er)" /home/ann/p/deep/er/hard /home/ann/p/deep/er/linked; ls /home/ann/p/deep | wc -l'; kill $!`,
		"out\nout\nout\nout\nout\nout\n5\n"},
	{"a socket that is made anew", bound + `
		bound /home/ann/s; echo 'sandbox: {write_paths: ["."], egress_rules: []}' >/tmp/p.yaml
		e run -q --policy /tmp/p.yaml -- sh -c 'mv s t; rm -f s; ln s t; ln -s s t; '"$reach"' s t' 2>/dev/null; kill $!`, "out\nout\n"},
}

// As an ordinary user's run and as root's in that user's folder.
func TestHidden(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		h := newSandboxHost(t)
		for name, uid := range map[string]int{"user": annUID, "root": 0} {
			for _, a := range hidingAttacks {
				t.Run(name+"/"+a.name, func(t *testing.T) { h.attack(t, a, uid, map[int]string{annUID: "/home/" + annName, 0: "/srv"}[uid]) })
			}
		}
	})
}
