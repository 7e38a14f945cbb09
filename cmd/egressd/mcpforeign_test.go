package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// foreignAgent is a client written with the package of npm. It prints what it
// finds, one line a step.
const foreignAgent = `
import { Client } from "/usr/local/lib/node_modules/@modelcontextprotocol/sdk/dist/esm/client/index.js";
import { StdioClientTransport } from "/usr/local/lib/node_modules/@modelcontextprotocol/sdk/dist/esm/client/stdio.js";
const transport = new StdioClientTransport({ command: process.argv[2], args: process.argv.slice(3), env: process.env, stderr: "inherit" });
const client = new Client({ name: "foreign", version: "1" });
await client.connect(transport);
const say = async (name, args, options) => {
  const r = await client.callTool({ name, arguments: args }, undefined, options);
  return (r.isError ? "refused: " : "") + r.content.map(c => c.text).join("");
};
console.log((await client.listTools()).tools.map(t => t.name + (t.annotations.readOnlyHint ? " (reads)" : "")).join(", "));
console.log(await say("file_write", { path: "a/b.txt", content: "one\ntwo ü\n" }));
console.log(await say("grep", { pattern: "ü" }));
console.log(await say("shell", { script: "cat a/b.txt | wc -l; echo kept > /tmp/kept" }));
console.log(await say("shell", { argv: ["cat", "/tmp/kept"] }));
console.log(await say("file_edit", { path: "a/b.txt", old_string: "one", new_string: "1" }));
console.log(await say("file_read", { path: "a/b.txt" }));
console.log(await say("file_read", { path: "/etc/passwd" }));
console.log(await say("rm", {}));
const big = "x".repeat(3 << 20);
console.log((await say("file_write", { path: "big", content: big })).trim());
const stop = new AbortController();
setTimeout(() => stop.abort(), 400);
console.log(await say("shell", { script: "sleep 1000" }, { signal: stop.signal }).catch(e => "given up"));
console.log(await say("shell", { script: "left() { ps -e -o args= | grep -cx 'sleep 1000'; }; for i in $(seq 100); do left >/tmp/n || break; sleep 0.1; done; left" }));
await client.close();
`

func TestMCPForeignClient(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		for _, uid := range []int{annUID, 0} {
			r := newRunPlace(t, uid)
			policy := r.write(t, "mcp-policy.yaml", "sandbox: {write_paths: [.], egress_rules: []}\ntools: {preset: full, deny: [glob]}\n")
			egressd := r.command(t, "mcp", "--policy", policy)
			node, err := exec.LookPath("node")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), node, append([]string{r.write(t, "agent.mjs", foreignAgent), egressd.Path}, egressd.Args[1:]...)...)
			cmd.Dir, cmd.Env, cmd.SysProcAttr = egressd.Dir, egressd.Env, egressd.SysProcAttr
			r.own(t)
			out, errs, code := finish(t, cmd)
			const want = `file_edit, file_read (reads), file_write, grep (reads), shell
wrote 11 bytes to a/b.txt

a/b.txt:2:two ü

{"stdout":"2\n","stderr":"","exit_code":0,"truncated":false,"isolator":"linux_bwrap"}
{"stdout":"kept\n","stderr":"","exit_code":0,"truncated":false,"isolator":"linux_bwrap"}
changed 1 place in a/b.txt

1
two ü

refused: reading /etc/passwd leaves cwd (${cwd}): sandbox.read_paths opens what lies outside
refused: not granted: tools.allow in the policy grants tools
wrote 3145728 bytes to big
given up
{"stdout":"0\n","stderr":"","exit_code":1,"truncated":false,"isolator":"linux_bwrap"}
`
			if code != 0 || errs != "" || out != strings.ReplaceAll(want, "${cwd}", r.path("proj")) {
				t.Errorf("status %d\n%s\n%s", code, out, errs)
			}
			nothingRuns(t)
		}
	})
}
