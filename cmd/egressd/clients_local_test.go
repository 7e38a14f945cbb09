package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What reaches no network, and yet breaks in sandboxes.
func TestClientsLocal(t *testing.T) {
	clients(t, func(t *testing.T, h *clientsHost) {
		h.javaProgram(t)
		jdk := h.unpackedJDK(t)
		const server = `echo dev >"$HOME/f"; python3 -m http.server -d "$HOME" -b :: 8000 >/dev/null 2>&1 &
for i in 1 2 3 4 5 6 7 8 9; do curl -s --noproxy '*' -o /dev/null http://127.0.0.1:8000/f && break; sleep 0.1; done; `
		runClients(t, h, []clientCase{
			// FAULTS.md C11 and C12: loopback is the sandbox's own, whatever the client makes of NO_PROXY.
			{name: "loopback", needs: []string{"curl", "wget", "node", "/usr/bin/python3"}, quiet: true, steps: []step{
				{run: server + "for u in 127.0.0.1 localhost [::1]; do curl -sS http://$u:8000/f; wget -qO- http://$u:8000/f; ./client get http://$u:8000/f; " +
					`python3 -c "import urllib.request as u; print(u.urlopen('http://$u:8000/f').read())"; ` +
					`python3 -c "import requests as r; print(r.get('http://$u:8000/f').text)"; ` +
					nodeScript("fetch(process.argv[1]).then(async r => console.log(await r.text()))") + " http://$u:8000/f; done | grep -c dev", says: `^18$`},
			}},
			{name: "lookups", needs: []string{"getent", "awk", "node"}, quiet: true, by: map[way][]step{explicit: {
				{run: "getent ahostsv4 ok.test", fails: true, says: `^$`},
				{run: "getent hosts localhost | awk '{print $2; exit}'", says: `^localhost$`},
			}}, root: true, steps: []step{
				{run: "getent ahostsv4 ok.test | awk '{print $1; exit}'", says: `^198\.1[89]\.\d+\.\d+$`},
				{run: "getent ahostsv4 other.test | awk '{print $1; exit}'", says: `^198\.18\.0\.1$`},
				{run: nodeScript(`console.log(Object.keys(require("os").networkInterfaces()).join())`), says: `^lo$`},
			}},
			{name: "vi", needs: []string{"vi", "awk"}, quiet: true, by: map[way][]step{explicit: nil}, steps: []step{
				{run: `cd && echo one >f && printf ':s/one/two/\n:wq\n' | vi -e -s f; awk '{print toupper($0)}' f`, says: `^TWO$`},
			}},
			// FAULTS.md T16: a JDK that was unpacked has a truststore of its own.
			{name: "unpacked JDK", by: map[way][]step{explicit: nil}, sandbox: map[string]any{"read_paths": []string{jdk}}, steps: []step{
				{run: jdk + "/bin/java -cp . Get https://ok.test/pub/a", says: `^200 HTTP_2 ok$`},
			}},
			{name: "JDK in a folder", by: map[way][]step{explicit: nil}, sandbox: map[string]any{"read_paths": []string{filepath.Dir(jdk)}}, steps: []step{
				{run: jdk + "/bin/java -cp . Get https://ok.test/pub/a", says: `^200 HTTP_2 ok$`},
			}},
			// One that is hidden, and one that is no folder of a JDK, stop nothing.
			{name: "hidden JDK", by: map[way][]step{explicit: nil}, sandbox: map[string]any{"read_paths": []string{"~"}}, steps: []step{
				{run: "ls ~/.jdks/hidden/lib/security/cacerts", fails: true, says: `No such file`},
				{run: "java -cp . Get https://ok.test/pub/a", says: `^200 HTTP_2 ok$`},
			}},
			{name: "writable JDK", by: map[way][]step{explicit: nil}, sandbox: map[string]any{"write_paths": []string{filepath.Dir(jdk)}}, steps: []step{
				{run: jdk + "/bin/java -cp . Get https://ok.test/pub/a", says: `(?s)^Picked up JAVA_TOOL_OPTIONS: [^\n]*\n200 HTTP_2 ok$`},
			}},
		})
	})
}

// unpackedJDK is the host's JDK as a tarball of it would be: files alone, with
// the truststore beside them, in a folder of the user's home.
func (h *clientsHost) unpackedJDK(t *testing.T) string {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		t.Fatal(err)
	}
	if java, err = filepath.EvalSymlinks(java); err != nil {
		t.Fatal(err)
	}
	jdk := "/home/" + annName + "/jdks/unpacked"
	script := `mkdir -p "$2"/bin && cp "$1"/bin/java "$2"/bin && cp -r "$1"/lib "$2" && cp -rL "$1"/conf "$2" &&
cd "$2"/lib/security && rm cacerts && cp -L "$1"/lib/security/cacerts . &&
mkdir -p "${2%/*/*}"/.jdks/hidden/lib/security && cp cacerts "${2%/*/*}"/.jdks/hidden/lib/security && chown -R ` + annName + ` "${2%/*}"`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", strings.TrimSuffix(java, "/bin/java"), jdk).CombinedOutput()
	if err != nil {
		t.Fatalf("copying the JDK: %v\n%s", err, out)
	}
	return jdk
}
