package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Programs in languages that bring their own dialling, roots and protocols.
func TestClientsLanguages(t *testing.T) {
	clients(t, func(t *testing.T, h *clientsHost) {
		h.javaProgram(t)
		runClients(t, h, []clientCase{
			{name: "go", root: true, steps: []step{
				{run: "./client get https://ok.test/pub/a", says: `^200 OK HTTP/2\.0 ok$`},
				{run: "./client get http://ok.test/pub/a", says: `^200 OK HTTP/1\.1 ok$`},
				{run: "./client get https://ok.test/private", fails: true, says: `^403 Forbidden HTTP/2\.0 .*"code":"path_not_allowed"`},
				{run: "./client put https://ok.test/sink 3000000", says: `3000000$`},
				{run: "./client put https://ok.test/private 3000000", fails: true, says: `^403 Forbidden`},
			}},
			{name: "grpc", steps: []step{
				{run: "./client grpc ok.test Once", says: `^hello over gRPC, echoed \[1\]$`},
				{run: "./client grpc ok.test Stream", fails: true, says: `code = PermissionDenied desc = unexpected HTTP status code received from server: 403`},
				{run: "./client grpc other.test Once", fails: true, says: `code = PermissionDenied`},
			}},
			{name: "websocket", steps: []step{
				{run: "./client ws wss://ok.test/ws", says: `^hello over WebSocket$`},
				{run: "./client ws ws://ok.test/ws", says: `^hello over WebSocket$`},
				{run: "./client ws wss://ok.test/private", fails: true, says: `expected handshake response status code 101 but got 403`},
				{run: "./client ws wss://other.test/ws", fails: true, says: `got 403`},
			}},
			// FAULTS.md T20: a first hello in pieces, with the hybrid key share.
			{name: "hello in pieces", by: map[way][]step{explicit: nil}, steps: []step{
				{run: "./client hello ok.test whole", says: `^HTTP/1\.1 200 OK`},
				{run: "./client hello ok.test bytes", says: `^HTTP/1\.1 200 OK`},
				{run: "./client hello ok.test records", says: `^HTTP/1\.1 200 OK`},
				{run: "./client hello other.test records", says: `^HTTP/1\.1 403 Forbidden`},
			}},
			h.node(t),
			{name: "node ws", needs: []string{"node"}, steps: nodeWebSocket(`^hello$`, `Unexpected server response: 403`), by: map[way][]step{
				// It takes no variables: where nothing is captured it fails at once (FAULTS.md C5).
				explicit: {{run: nodeSocket("wss://ok.test/ws"), fails: true, says: `getaddrinfo E[A-Z_]+ ok\.test`}, {run: anyRequest}},
			}},
			{name: "java", needs: []string{"java", "javac"}, root: true, steps: []step{
				{run: "java -cp . Get https://ok.test/pub/a", says: `^200 HTTP_2 ok$`},
				// An offer of h2c is ignored, not a failure.
				{run: "java -cp . Get http://ok.test/pub/a", says: `^200 HTTP_1_1 ok$`},
				{run: "java -cp . Get https://ok.test/private https://other.test/ http://other.test/ https://" + longName + "/pub/a", fails: true,
					says: `(?s)^403 HTTP_2 .*path_not_allowed.*403 HTTP_2 .*no_rule.*403 HTTP_1_1 .*no_rule.*200 HTTP_2 ok$`},
			}, by: map[way][]step{variables: nil, explicit: {
				// Java reads no proxy variable: where nothing is captured it is told by one of its own.
				{run: "java -cp . Get https://ok.test/pub/a http://ok.test/pub/a", says: `(?s)^Picked up JAVA_TOOL_OPTIONS: [^\n]*\n200 HTTP_2 ok\n200 HTTP_1_1 ok$`},
				{run: "java -cp . Get https://ok.test/private http://other.test/", fails: true, says: `(?s)\n403 HTTP_2 .*path_not_allowed.*\n403 HTTP_1_1 .*no_rule`},
			}}},
		})
	})
}

// anyRequest makes one request, where a case's own clients make none.
const anyRequest = "curl -sS https://ok.test/pub/a"

func nodeScript(script string) string { return "node -e " + quote(script) }

func nodeFetch(url string) string {
	return nodeScript("fetch('" + url + "').then(async r => { console.log(r.status, await r.text()); process.exitCode = r.ok ? 0 : 1 })")
}

func nodeHTTPS(url string) string {
	return nodeScript("require('" + url[:strings.Index(url, ":")] + "').get('" + url + "', r => { r.on('data', d => console.log(r.statusCode, String(d))) })")
}

func nodeSocket(url string) string {
	return nodeScript(`const W = require("/usr/share/nodejs/ws"); const w = new W("` + url + `");
w.on("open", () => w.send("hello")); w.on("message", m => { console.log(String(m)); w.close() });
w.on("error", e => { console.error(e.message); process.exitCode = 1 })`)
}

func nodeWebSocket(open, denied string) []step {
	return []step{
		{run: nodeSocket("wss://ok.test/ws"), says: open},
		{run: nodeSocket("ws://ok.test/ws"), says: open},
		{run: nodeSocket("wss://ok.test/private"), fails: true, says: denied},
		{run: nodeSocket("wss://other.test/ws"), fails: true, says: denied},
	}
}

// node is fetch and https of Node. From 22.21 and 24 on both heed the proxy
// variables, since NODE_USE_ENV_PROXY is set inside; older ones are caught, and
// fail at once where nothing is captured (FAULTS.md C4).
func (h *clientsHost) node(t *testing.T) clientCase {
	t.Helper()
	c := clientCase{name: "node", needs: []string{"node"}, root: true, steps: []step{
		{run: nodeFetch("https://ok.test/pub/a"), says: `^200 ok$`},
		{run: nodeFetch("http://ok.test/pub/a"), says: `^200 ok$`},
		{run: nodeHTTPS("https://ok.test/pub/a"), says: `^200 ok$`},
		{run: nodeHTTPS("http://ok.test/pub/a"), says: `^200 ok$`},
		{run: nodeFetch("https://ok.test/private"), fails: true, says: `^403 \{.*path_not_allowed`},
		{run: nodeHTTPS("https://other.test/"), says: `^403 \{.*no_rule`},
	}, by: map[way][]step{variables: nil}}
	out, err := exec.CommandContext(t.Context(), "node", "-p", "process.versions.node").CombinedOutput()
	if err != nil {
		t.Fatalf("asking node for its version: %v: %s", err, out)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "%d.%d", &major, &minor); err != nil || major < 20 {
		t.Fatalf("node is %s: .ci/deps test installs 20 or newer", out)
	}
	if major < 24 && !(major == 22 && minor >= 21) {
		c.by[explicit] = []step{
			{run: nodeFetch("https://ok.test/pub/a"), fails: true, says: `getaddrinfo E[A-Z_]+ ok\.test`},
			{run: nodeHTTPS("https://ok.test/pub/a"), fails: true, says: `getaddrinfo E[A-Z_]+ ok\.test`},
			{run: anyRequest},
		}
	}
	return c
}

//go:embed testdata/client/Get.java
var javaSource []byte

func (h *clientsHost) javaProgram(t *testing.T) {
	t.Helper()
	h.write(t, "/srv/Get.java", javaSource, 0o644)
	cmd := exec.CommandContext(t.Context(), "javac", "-d", filepath.Join("/home", annName, "proj"), "/srv/Get.java")
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/srv"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	class, err := os.ReadFile(filepath.Join("/home", annName, "proj/Get.class"))
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, "/home/root/proj/Get.class", class, 0o644)
}
